-- A run is sent once more while an earlier message of it may be in a queue, for however long: whichever comes second must
-- find that it is done. So its outcome is kept for long, also where it has been heard already.
-- KEYS: 1 claim (see claim.lua), 2 mark of what was heard (see heard.lua), 3 mark that it was sent again
-- ARGV: 1 for how long, ms
redis.call('SET', KEYS[3], '1', 'PX', ARGV[1])
if (redis.call('GET', KEYS[1]) or ''):match('^%d+ done ') then redis.call('PEXPIRE', KEYS[1], ARGV[1], 'GT') end
redis.call('PEXPIRE', KEYS[2], ARGV[1], 'GT')
return 1
