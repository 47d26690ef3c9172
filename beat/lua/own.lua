-- Takes or renews the lease on one shard; a lease that somebody else holds stays theirs.
-- KEYS: 1 owner; ARGV: 1 identity of the beat, 2 lease in ms
-- Returns 1 where the shard is now the caller's, 0 where it is somebody else's
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
