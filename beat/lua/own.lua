-- Takes or renews the lease on one shard; a lease that somebody else holds stays theirs.
-- Whoever held it before and let it end is dead or cut off: what that one has in flight is due again at once.
-- KEYS: 1 owner, 2 who held it last and has not given it up, 3 in-flight (member -> end of lease, ms)
-- ARGV: 1 identity of the beat, 2 lease in ms
-- Returns 1 where the shard is now the caller's, 0 where it is somebody else's
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local last = redis.call('GET', KEYS[2])
if last == ARGV[1] then return 1 end
redis.call('SET', KEYS[2], ARGV[1])
if not last then return 1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. now, '+inf')) do
    redis.call('ZADD', KEYS[3], now, member)
end
return 1
