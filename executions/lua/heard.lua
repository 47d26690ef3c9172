-- The outcome of an attempt is recorded: its claim keeps duplicates out for a while more, and goes. A worker that died after
-- it had published the outcome has left no such claim: then a mark keeps them out.
-- KEYS: 1 claim (see claim.lua), 2 mark ("<attempt>": no attempt up to this one may be claimed), 3 mark that it was sent again
-- ARGV: 1 attempt, 2 for how long, ms, 3 for how long where it was sent again, ms
local keep = redis.call('EXISTS', KEYS[3]) == 1 and ARGV[3] or ARGV[2]
local attempt, status = (redis.call('GET', KEYS[1]) or '0 none '):match('^(%d+) (%a+) ')
if attempt == ARGV[1] and status == 'done' then
    redis.call('PEXPIRE', KEYS[1], keep, 'LT')
elseif tonumber(attempt) <= tonumber(ARGV[1]) then
    local marked = tonumber(redis.call('GET', KEYS[2]) or '0')
    if marked < tonumber(ARGV[1]) then
        redis.call('SET', KEYS[2], ARGV[1], 'PX', keep)
    else  -- an outcome that comes again, or late: a later attempt has ended, too
        redis.call('PEXPIRE', KEYS[2], keep, 'GT')
    end
end
return 1
