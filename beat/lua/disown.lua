-- Gives up the lease on one shard, where it is still the caller's, so that a neighbour need not wait for its end.
-- KEYS: 1 owner; ARGV: 1 identity of the beat
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
