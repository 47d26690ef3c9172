-- Says that a worker of an engine is there, by Redis' clock; engines that were not seen for long are forgotten.
-- KEYS: 1 engines (identity -> when a worker of it was last seen, ms); ARGV: 1 identity, 2 how long one is known, ms
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
return now
