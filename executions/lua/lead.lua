-- Takes or renews the lead in a piece of work that one of many is to do; somebody else's stays theirs.
-- KEYS: 1 leader; ARGV: 1 token of the caller, 2 how long it leads, ms. Returns 1 where the caller leads.
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
