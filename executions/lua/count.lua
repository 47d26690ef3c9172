-- Counts one more of something in a window of time that begins with the first; how many, and what is left of it, ms.
-- KEYS: 1 the count; ARGV: 1 length of the window, ms
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return {count, left}
