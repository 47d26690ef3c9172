-- Says that a beat is alive, and lists those that are, by Redis' clock.
-- KEYS: 1 beats (identity -> end of its lease, ms); ARGV: 1 identity, 2 lease in ms (0: it leaves)
-- Returns the identities of the living beats
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if tonumber(ARGV[2]) > 0 then
    redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
else
    redis.call('ZREM', KEYS[1], ARGV[1])
end
return redis.call('ZRANGE', KEYS[1], 0, -1)
