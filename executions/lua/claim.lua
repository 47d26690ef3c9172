-- Claims one attempt of one run for a worker. The attempt is the fence: a lower one never passes a higher one.
-- KEYS: 1 claim ("<attempt> held <token>" or "<attempt> done <token> <event of the outcome>"), 2 tombstone
-- ARGV: 1 attempt, 2 token of the worker, 3 lease in ms, 4 whether it takes up what has begun (1): to stop it, if need be
-- Returns: won, held (by somebody else), done, stale (a later attempt exists), stopped (a tombstone)
if ARGV[4] ~= '1' and redis.call('EXISTS', KEYS[2]) == 1 then return 'stopped' end
local current = redis.call('GET', KEYS[1])
if current then
    local attempt, status, token = current:match('^(%d+) (%a+) (.*)$')
    attempt = tonumber(attempt)
    if attempt > tonumber(ARGV[1]) then return 'stale' end
    if attempt == tonumber(ARGV[1]) then
        if status == 'done' then return 'done' end
        if token ~= ARGV[2] then return 'held' end
    end
end
redis.call('SET', KEYS[1], ARGV[1] .. ' held ' .. ARGV[2], 'PX', ARGV[3])
return 'won'
