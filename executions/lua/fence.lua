-- Lets a run start in no generation below the given one, unless somebody has begun this attempt already.
-- KEYS: 1 fence, 2 claim, 3 site; ARGV: 1 generation, 2 attempt, 3 how long it is kept in ms
-- Returns 1 where it may not start otherwise now, 0 where it has begun (nothing is changed)
local function of(key) return tonumber((redis.call('GET', key) or ''):match('^(%d+)') or -1) end
-- A site without a claim: its worker is gone, or has handed over what it had begun.
if math.max(of(KEYS[2]), of(KEYS[3])) >= tonumber(ARGV[2]) then return 0 end
local known = tonumber(redis.call('GET', KEYS[1]) or -1)
redis.call('SET', KEYS[1], math.max(known, tonumber(ARGV[1])), 'PX', ARGV[3])
return 1
