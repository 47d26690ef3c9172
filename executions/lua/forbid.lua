-- Leaves a tombstone, in one step with a look whether somebody has begun this attempt already.
-- KEYS: 1 tombstone, 2 claim, 3 site; ARGV: 1 attempt, 2 how long it is kept in ms, 3 whether a site without a claim counts (1)
-- Returns 1 where nobody has begun it, so that it will not start; 0 where it has begun, and is asked to stop
local function of(key) return tonumber((redis.call('GET', key) or ''):match('^(%d+)') or -1) end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[2])
local begun = of(KEYS[2])
if ARGV[3] == '1' then begun = math.max(begun, of(KEYS[3])) end
if begun >= tonumber(ARGV[1]) then return 0 end
return 1
