-- Lets a run start in no generation below the given one, unless somebody has begun this attempt already.
-- KEYS: 1 fence, 2 claim; ARGV: 1 generation, 2 attempt, 3 how long it is kept in ms
-- Returns 1 where it may not start otherwise now, 0 where it has begun (nothing is changed)
local attempt = (redis.call('GET', KEYS[2]) or ''):match('^(%d+)')
if attempt and tonumber(attempt) >= tonumber(ARGV[2]) then return 0 end
local known = tonumber(redis.call('GET', KEYS[1]) or -1)
redis.call('SET', KEYS[1], math.max(known, tonumber(ARGV[1])), 'PX', ARGV[3])
return 1
