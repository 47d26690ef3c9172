-- Claims one fire of a periodic entry: of any number of beats one wins.
-- KEYS: 1 entries (name -> time of its last fire); ARGV: 1 name, 2 last fire as the caller knows it ('' for none), 3 this fire
-- Returns 1 where the caller fires it, 0 where another has
local last = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if last ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
