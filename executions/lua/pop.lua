-- Pops the runs of one shard that are due by Redis' clock and leases them to the caller.
-- Runs whose earlier lease has ended come first: their beat died before it cleared them.
-- Of those a message may be in a queue already.
-- What is overdue by more than the grace is dropped, not returned: the sweep decides about it (misfires).
-- KEYS: 1 index of buckets (minute -> minute), 2 in-flight (member -> end of lease, ms)
-- ARGV: 1 prefix of the buckets' keys, 2 lease in ms, 3 most runs to return, 4 grace in ms
-- Returns: now in ms, due time of the next waiting run in ms (-1: none known), how many had a lease that has ended, the
--   members one behind the other
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local room = tonumber(ARGV[3])
local missed = '(' .. (now - tonumber(ARGV[4]))
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', missed)
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, room)
room = room - #found
local again = #found
local next_due = -1
for _, minute in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    local bucket = ARGV[1] .. minute
    local past = tonumber(minute) * 60000 + 60000 <= now
    if room > 0 and tonumber(minute) * 60000 <= now then
        redis.call('ZREMRANGEBYSCORE', bucket, '-inf', missed)
        local due = redis.call('ZRANGEBYSCORE', bucket, '-inf', now, 'LIMIT', 0, room)
        if #due > 0 then
            redis.call('ZREMRANGEBYRANK', bucket, 0, #due - 1)
            for _, member in ipairs(due) do found[#found + 1] = member end
            room = room - #due
        end
    end
    local head = redis.call('ZRANGE', bucket, 0, 0, 'WITHSCORES')
    if head[2] then
        next_due = tonumber(head[2])
        break
    elseif past then
        redis.call('ZREM', KEYS[1], minute)
    end
end
for first = 1, #found, 1000 do
    local pairs_ = {}
    for i = first, math.min(first + 999, #found) do
        pairs_[#pairs_ + 1] = now + tonumber(ARGV[2])
        pairs_[#pairs_ + 1] = found[i]
    end
    redis.call('ZADD', KEYS[2], unpack(pairs_))
end
return {now, next_due, again, table.concat(found)}
