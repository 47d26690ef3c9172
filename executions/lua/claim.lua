-- Claims one attempt of one run for a worker. The attempt is the fence: a lower one never passes a higher one.
-- The fence says which generation of a run may start: what was sent before it was moved or changed may not.
-- KEYS: 1 claim ("<attempt> held <token>" or "<attempt> done <token> <event of the outcome>"), 2 tombstone, 3 fence, 4 sent
-- ARGV: 1 attempt, 2 token of the worker, 3 lease in ms, 4 whether it takes up what has begun (1): to stop it, if need be,
--       5 generation (its low 16 bits), 6 its member of sent
-- Returns: won, held (by somebody else), done, stale (a later attempt or generation exists), stopped (a tombstone)
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
if ARGV[4] ~= '1' then
    local fence = redis.call('GET', KEYS[3])
    if fence and (tonumber(ARGV[5]) - tonumber(fence)) % 65536 >= 32768 then
        redis.call('ZREM', KEYS[4], ARGV[6])  -- it was sent in vain, so that the sweep need not wait for it
        return 'stale'
    end
end
redis.call('SET', KEYS[1], ARGV[1] .. ' held ' .. ARGV[2], 'PX', ARGV[3])
return 'won'
