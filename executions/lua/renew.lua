-- Renews a worker's lease on one attempt; makes it anew where Redis has lost it.
-- KEYS: 1 claim, 2 tombstone; ARGV: 1 attempt, 2 token, 3 lease in ms
-- Returns: held, stopped (somebody asked the run to stop; the lease is renewed all the same), fenced (no longer ours)
local mine = ARGV[1] .. ' held ' .. ARGV[2]
local current = redis.call('GET', KEYS[1])
if current and current ~= mine then return 'fenced' end
redis.call('SET', KEYS[1], mine, 'PX', ARGV[3])
if redis.call('EXISTS', KEYS[2]) == 1 then return 'stopped' end
return 'held'
