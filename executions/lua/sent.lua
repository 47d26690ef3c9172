-- The broker has confirmed runs of one shard: they are no longer in flight, but noted as sent. A recheck is not: it
-- may lie where nobody takes it, and the sweep would wait for it in place of what takes the run up.
-- KEYS: 1 in-flight, 2 sent (id, attempt and generation of a member -> when, ms)
-- ARGV: 1 when in ms, 2 forget what was sent before this, 3 bytes of a member, 4 the members one behind the other
local width = tonumber(ARGV[3])
for first = 1, #ARGV[4], width * 1000 do
    local members, sent = {}, {}
    for at = first, math.min(first + width * 1000, #ARGV[4] + 1) - width, width do
        local member = ARGV[4]:sub(at, at + width - 1)
        members[#members + 1] = member
        if math.floor(member:byte(width) / 2) % 2 == 0 then  -- Flag.RECHECK
            sent[#sent + 1] = ARGV[1]
            sent[#sent + 1] = member:sub(1, 16) .. member:sub(25, 27)
        end
    end
    redis.call('ZREM', KEYS[1], unpack(members))
    if #sent > 0 then redis.call('ZADD', KEYS[2], unpack(sent)) end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[2])
