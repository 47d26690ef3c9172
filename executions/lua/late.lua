-- Says whether a run of one shard waits in its bucket though it has been due for some time, by Redis' clock.
-- KEYS: 1 index of buckets (minute -> minute); ARGV: 1 prefix of the buckets' keys, 2 how late is late, ms
-- Returns 1 or 0
local time = redis.call('TIME')
local late = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[2])
for _, minute in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if tonumber(minute) * 60000 > late then return 0 end
    local head = redis.call('ZRANGE', ARGV[1] .. minute, 0, 0, 'WITHSCORES')
    if head[2] then return tonumber(head[2]) <= late and 1 or 0 end
end
return 0
