-- Claims one attempt of one run for a worker. The attempt is the fence: a lower one never passes a higher one.
-- The fence says which generation of a run may start: what was sent before it was moved or changed may not.
-- KEYS: 1 claim ("<attempt> held <token>" or "<attempt> done <token> <event of the outcome>"), 2 tombstone, 3 fence, 4 sent,
--       5 site ("<attempt> <when it was last taken off a queue, ms> <when it began, micros> <engine, if known>"),
--       6 mark (see heard.lua)
-- ARGV: 1 attempt, 2 token of the worker, 3 lease in ms, 4 whether it takes up what has begun (1): to stop it, if need be,
--       5 generation (its low 16 bits), 6 its member of sent, 7 engine of the worker, 8 when it begins, micros,
--       9 how long the site is kept, ms
-- Returns: won, held (by somebody else), done, stale (a later attempt or generation exists), stopped (a tombstone)
local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
local function take(begun, engine)
    redis.call('SET', KEYS[5], table.concat({ARGV[1], now, begun, engine}, ' '), 'PX', ARGV[9])
end
local function taken_again()
    local of, begun, engine = (redis.call('GET', KEYS[5]) or ''):match('^(%d+) %d+ (%d+) (%S*)$')
    if of == ARGV[1] then take(begun, engine) end
    return of == ARGV[1]
end
if ARGV[4] ~= '1' and redis.call('EXISTS', KEYS[2]) == 1 then
    taken_again()
    return 'stopped'
end
local current = redis.call('GET', KEYS[1])
if current then
    local attempt, status, token = current:match('^(%d+) (%a+) (.*)$')
    attempt = tonumber(attempt)
    if attempt > tonumber(ARGV[1]) then return 'stale' end
    if attempt == tonumber(ARGV[1]) then
        if status == 'done' then return 'done' end
        if token ~= ARGV[2] then
            taken_again()
            return 'held'
        end
    end
end
local heard = redis.call('GET', KEYS[6])
if heard and tonumber(heard) >= tonumber(ARGV[1]) then return 'done' end
if ARGV[4] ~= '1' then
    local fence = redis.call('GET', KEYS[3])
    if fence and (tonumber(ARGV[5]) - tonumber(fence)) % 65536 >= 32768 then
        redis.call('ZREM', KEYS[4], ARGV[6])  -- it was sent in vain, so that the sweep need not wait for it
        return 'stale'
    end
end
redis.call('SET', KEYS[1], ARGV[1] .. ' held ' .. ARGV[2], 'PX', ARGV[3])
-- What has begun stays where, and since when, it is; nobody knows where, once Redis has lost it.
if ARGV[4] ~= '1' then take(ARGV[8], ARGV[7]) elseif not taken_again() then take('0', '') end
return 'won'
