-- Ends a worker's lease on one attempt: done (kept for a while, so that duplicates are known), or given up.
-- Where its container is stays known of what was given up, unless nothing of it had begun.
-- KEYS: 1 claim, 2 site
-- ARGV: 1 attempt, 2 token, 3 how long "done" is kept in ms (0: give up, so that another may claim), 4 the outcome's event,
--       5 whether it had begun (1)
local mine = ARGV[1] .. ' held ' .. ARGV[2]
local current = redis.call('GET', KEYS[1])
if current and current ~= mine then return 0 end
if tonumber(ARGV[3]) == 0 then
    redis.call('DEL', KEYS[1])
    if ARGV[5] ~= '1' then redis.call('DEL', KEYS[2]) end
else
    redis.call('SET', KEYS[1], ARGV[1] .. ' done ' .. ARGV[2] .. ' ' .. ARGV[4], 'PX', ARGV[3])
    redis.call('DEL', KEYS[2])
end
return 1
