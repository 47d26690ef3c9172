-- Places in pools: at most so many runs of a job, of a team and of a named pool at once; who finds one full waits in line.
-- KEYS: 1 limits (pool -> most at once; the field "" says that all limits are there)
-- ARGV: 1 prefix of the keys, 2 what to do, then by that:
--   enter    run, member, rank, lease in ms, 1 to come in whatever the limits, 1 to wait where limits are unknown, pools...
--   renew    lease in ms, then for each run: run, number of pools, pools...
--   leave    run, pools...           (ends its places and its waiting)
--   confirm  lease in ms, runs...    (they were called, and are on their way)
--   line     run                     (for what it waits)
--   call                             (whoever may come in by now)
-- Returns: enter {pool that is full or "", its limit, called...}; leave, call {called...};
--   line {pool or "", how many go before, its limit}; called: run, member, run, member...
-- Keys: in:<pool> ZSET run -> end of its lease; line:<pool> ZSET run -> rank; waiters HASH run -> what it waits with;
--   called ZSET run -> until when the call holds; lines SET of pools that have a line; exceeded HASH pool -> times
local prefix, what = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local CALL_MS, MOST = 10000, 200
local waiters, called, lines = prefix .. 'waiters', prefix .. 'called', prefix .. 'lines'
local function inside(pool) return prefix .. 'in:' .. pool end
local function line(pool) return prefix .. 'line:' .. pool end
local known = redis.call('HEXISTS', KEYS[1], '') == 1

local function limit_of(pool) return tonumber(redis.call('HGET', KEYS[1], pool) or nil) end

local function is_full(pool, run)
    local limit = limit_of(pool)
    if not limit then return false end
    redis.call('ZREMRANGEBYSCORE', inside(pool), '-inf', now)
    if redis.call('ZSCORE', inside(pool), run) then return false end
    return redis.call('ZCARD', inside(pool)) >= limit
end

local function come_in(run, pools, lease)
    for _, pool in ipairs(pools) do
        if limit_of(pool) then redis.call('ZADD', inside(pool), now + lease, run) end
    end
end

-- A place for what runs already, whatever the limit; one too many is counted once. While the limits are unknown it
-- has a place in each of its pools, so that they hold from the moment in which they are there again.
local function keep_place(run, pool, lease)
    local limit = limit_of(pool)
    if known and not limit then return end
    redis.call('ZREMRANGEBYSCORE', inside(pool), '-inf', now)
    local new = redis.call('ZADD', inside(pool), now + lease, run) == 1
    if limit and new and redis.call('ZCARD', inside(pool)) > limit then
        redis.call('HINCRBY', prefix .. 'exceeded', pool, 1)
    end
end

local function waiter(run)
    local packed = redis.call('HGET', waiters, run)
    return packed and cmsgpack.unpack(packed)
end

local function line_up(run, found, pool)
    found.line = pool
    redis.call('HSET', waiters, run, cmsgpack.pack(found))
    redis.call('ZADD', line(pool), found.rank, run)
    redis.call('SADD', lines, pool)
end

local function forget(run)
    local found = waiter(run)
    if found then
        redis.call('ZREM', line(found.line), run)
        redis.call('HDEL', waiters, run)
        redis.call('ZREM', called, run)
    end
    return found
end

-- Whether somebody who goes first waits in the line of a pool.
local function is_behind(pool, rank)
    local first = redis.call('ZRANGE', line(pool), 0, 0, 'WITHSCORES')
    return first[2] and tonumber(first[2]) < rank
end

-- Calls those of a line that may come in: a place in all their pools is theirs while the call holds.
local function call_from(pool, out)
    if not known then return end
    for _ = 1, MOST do
        local run = redis.call('ZRANGE', line(pool), 0, 0)[1]
        if not run then
            redis.call('SREM', lines, pool)
            return
        end
        if is_full(pool, run) then return end
        redis.call('ZREM', line(pool), run)
        local found = waiter(run)
        if found then
            local other
            for _, name in ipairs(found.pools) do
                if not other and (is_full(name, run) or is_behind(name, found.rank)) then other = name end
            end
            if other then
                line_up(run, found, other)
            else
                come_in(run, found.pools, CALL_MS)
                redis.call('ZADD', called, now + CALL_MS, run)
                out[#out + 1] = run
                out[#out + 1] = found.member
            end
        end
    end
end

local function rest_from(first)
    local rest = {}
    for i = first, #ARGV do rest[#rest + 1] = ARGV[i] end
    return rest
end

if what == 'enter' then
    local run, lease, pools = ARGV[3], tonumber(ARGV[6]), rest_from(9)
    if ARGV[7] == '1' then
        forget(run)
        for _, pool in ipairs(pools) do keep_place(run, pool, lease) end
        return {'', 0}
    end
    local blocked
    for _, pool in ipairs(pools) do
        if is_full(pool, run) then blocked = pool break end
        local outside = limit_of(pool) and not redis.call('ZSCORE', inside(pool), run)
        if outside and redis.call('ZCARD', line(pool)) > 0 then blocked = pool break end
    end
    if not known and ARGV[8] == '1' then blocked = blocked or pools[1] end
    forget(run)
    if not blocked then
        come_in(run, pools, lease)
        return {'', 0}
    end
    local out = {}
    line_up(run, {member = ARGV[4], rank = tonumber(ARGV[5]), pools = pools}, blocked)
    for _, pool in ipairs(pools) do
        redis.call('ZREM', inside(pool), run)
    end
    for _, pool in ipairs(pools) do call_from(pool, out) end
    local others, entered = {}, false
    for i = 1, #out, 2 do
        if out[i] == run then
            entered = true
        else
            others[#others + 1] = out[i]
            others[#others + 1] = out[i + 1]
        end
    end
    if entered then
        forget(run)
        come_in(run, pools, lease)
        return {'', 0, unpack(others)}
    end
    local found = waiter(run)
    return {found.line, limit_of(found.line) or -1, unpack(others)}
elseif what == 'renew' then
    local lease, at = tonumber(ARGV[3]), 4
    while at <= #ARGV do
        local run, count = ARGV[at], tonumber(ARGV[at + 1])
        for i = at + 2, at + 1 + count do keep_place(run, ARGV[i], lease) end
        at = at + 2 + count
    end
    return {}
elseif what == 'leave' then
    local out, pools = {}, rest_from(4)
    local found = forget(ARGV[3])
    for _, pool in ipairs(found and found.pools or {}) do pools[#pools + 1] = pool end
    for _, pool in ipairs(pools) do redis.call('ZREM', inside(pool), ARGV[3]) end
    for _, pool in ipairs(pools) do call_from(pool, out) end
    return out
elseif what == 'line' then
    local found = waiter(ARGV[3])
    local ahead = found and redis.call('ZRANK', line(found.line), ARGV[3])
    if not ahead then return {'', 0, 0} end
    return {found.line, ahead, known and limit_of(found.line) or -1}
elseif what == 'confirm' then
    for _, run in ipairs(rest_from(4)) do
        local found = redis.call('ZSCORE', called, run) and forget(run)
        if found then come_in(run, found.pools, tonumber(ARGV[3])) end
    end
    return {}
end
local out = {}
for _, run in ipairs(redis.call('ZRANGEBYSCORE', called, '-inf', now)) do
    redis.call('ZREM', called, run)
    local found = waiter(run)
    if found then line_up(run, found, found.line) end
end
for _, pool in ipairs(redis.call('SMEMBERS', lines)) do call_from(pool, out) end
return out
