-- Says that a beat is alive and whether it sees PostgreSQL, and lists those that may own shards, by Redis' clock.
-- KEYS: 1 beats (identity -> end of its lease, ms), 2 those of them that do not see PostgreSQL, likewise
-- ARGV: 1 identity, 2 lease in ms (0: it leaves), 3 whether it sees (1)
-- Returns the identities of the living beats that see; of all of them where none does
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = now + tonumber(ARGV[2])
for _, key in ipairs(KEYS) do redis.call('ZREMRANGEBYSCORE', key, '-inf', now) end
redis.call('ZREM', KEYS[2], ARGV[1])
if ends > now then
    redis.call('ZADD', KEYS[1], ends, ARGV[1])
    if ARGV[3] ~= '1' then redis.call('ZADD', KEYS[2], ends, ARGV[1]) end
else
    redis.call('ZREM', KEYS[1], ARGV[1])
end
local beats, seeing = redis.call('ZRANGE', KEYS[1], 0, -1), {}
for _, beat in ipairs(beats) do
    if not redis.call('ZSCORE', KEYS[2], beat) then seeing[#seeing + 1] = beat end
end
return #seeing > 0 and seeing or beats
