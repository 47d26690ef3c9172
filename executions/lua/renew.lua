-- Renews a worker's lease on one attempt, and where its container is; makes both anew where Redis has lost them.
-- KEYS: 1 claim, 2 tombstone, 3 site (see claim.lua)
-- ARGV: 1 attempt, 2 token, 3 lease in ms, 4 engine of the worker, 5 how long the site is kept, ms
-- Returns: held, stopped (somebody asked the run to stop; the lease is renewed all the same), fenced (no longer ours)
local mine = ARGV[1] .. ' held ' .. ARGV[2]
local current = redis.call('GET', KEYS[1])
if current and current ~= mine then return 'fenced' end
redis.call('SET', KEYS[1], mine, 'PX', ARGV[3])
local attempt, taken, begun, engine = (redis.call('GET', KEYS[3]) or ''):match('^(%d+) (%d+) (%d+) (%S*)$')
if attempt == ARGV[1] and (engine ~= '' or ARGV[4] == '') then
    redis.call('PEXPIRE', KEYS[3], ARGV[5])
else
    if attempt ~= ARGV[1] then taken, begun = '0', '0' end
    redis.call('SET', KEYS[3], table.concat({ARGV[1], taken, begun, ARGV[4]}, ' '), 'PX', ARGV[5])
end
if redis.call('EXISTS', KEYS[2]) == 1 then return 'stopped' end
return 'held'
