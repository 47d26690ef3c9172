-- Purpose: put what is new of a live log into its blocks, where it may lie already.
-- KEYS: the end, the times, then the blocks. ARGV: time to live in ms, the position of the end,
-- the new times, the most bytes of times kept, then for each block an offset and bytes.
local ttl = ARGV[1]
for i = 3, #KEYS do
    redis.call('SETRANGE', KEYS[i], ARGV[2 * i - 1], ARGV[2 * i])
    redis.call('PEXPIRE', KEYS[i], ttl)
end
if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[1], ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ttl)
local most = tonumber(ARGV[4])
if redis.call('APPEND', KEYS[2], ARGV[3]) > most then
    redis.call('SET', KEYS[2], redis.call('GETRANGE', KEYS[2], -most / 2, -1))
end
redis.call('PEXPIRE', KEYS[2], ttl)
return redis.status_reply('OK')
