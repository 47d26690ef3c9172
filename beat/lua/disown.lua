-- Gives up the lease on one shard, where it is still the caller's, so that a neighbour need not wait for its end.
-- What the caller has in flight it will see through itself.
-- KEYS: 1 owner, 2 who held it last and has not given it up; ARGV: 1 identity of the beat
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
