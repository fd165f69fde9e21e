"""What runs inside Redis: scripts, each carried out alone and as a whole. Those that write say a word, or a number.

An epoch is kept as "<number>:<name of the driver>". One that is lower than ours says that Redis has forgotten: 'lost'.
"""

from __future__ import annotations

_IF_OURS = """
local owner, ours, name, flow, batch, noted, skip, note, rows, ttl, reach, lateness, least = unpack(ARGV)
local number, holder = string.match(redis.call('HGET', KEYS[1], owner) or '0:', '^(%d+):(.*)$')
if tonumber(number) < tonumber(ours) then return 'lost' end
if number ~= ours or holder ~= name then return 'fenced' end
local last = tonumber(redis.call('HGET', KEYS[2], flow) or -1)
if last < tonumber(noted) then return 'lost' end
if skip == '1' and last >= tonumber(batch) then return 'known' end
rows = cmsgpack.unpack(rows)
"""
_NOTED = """
if note == '1' then redis.call('HSET', KEYS[2], flow, batch) end
return 'written'
"""

WRITE = f"""{_IF_OURS}
for i = 1, #rows, 2 do
  local key, value = rows[i], rows[i + 1]
  if value == '' then redis.call('DEL', key)
  elseif ttl == '0' then redis.call('SET', key, value)
  else redis.call('SET', key, value, 'PX', ttl) end
end
{_NOTED}"""
"""Writes a piece of rows (stores/redis_rows.py). KEYS: epochs, ledger. `ours`, `name`: who we are; `noted`: the last
batch that we noted, or -1; `skip`: not if the batch is noted; `note`: it is whole with these rows; `ttl` in
milliseconds, or 0."""

ADD = f"""{_IF_OURS}
for i = 1, #rows, 2 do
  local key = rows[i]
  redis.call('ZADD', key, unpack(rows[i + 1]))
  local oldest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] - lateness
  local outside = redis.call('ZCOUNT', key, '-inf', oldest - reach)
  local gone = math.min(outside, redis.call('ZCOUNT', key, '-inf', oldest) - least)
  if gone > 0 then redis.call('ZREMRANGEBYRANK', key, 0, gone - 1) end
  redis.call('PEXPIRE', key, ttl)
end
{_NOTED}"""
"""Adds a piece of rows to the sets of their keys (stores/redis_sets.py), and removes those that nobody can ask for any
more who is not older than `oldest`: they are outside of all windows, and `least` others are before it."""

TAKE = """
local owner, ours, name, again = unpack(ARGV)
local number, holder = string.match(redis.call('HGET', KEYS[1], owner) or '0:', '^(%d+):(.*)$')
if tonumber(number) < tonumber(ours) then return 'lost' end
if again == '1' and holder ~= name then return 'fenced' end
redis.call('HSET', KEYS[1], owner, (number + 1) .. ':' .. name)
return tostring(number + 1)
"""
"""Gives the next number to a driver. KEYS: epochs. `ours`: the last number it had, or 0; `again`: it had the store, and
only connects again."""

CLOSE_ALL = """
for _, owner in ipairs(redis.call('HKEYS', KEYS[1])) do
  local number = string.match(redis.call('HGET', KEYS[1], owner), '^(%d+)')
  redis.call('HSET', KEYS[1], owner, (number + 1) .. ':')
end
"""
"""Takes the store from everybody. KEYS: epochs."""

READ = """
local found = {}
for i, prefix in ipairs(ARGV) do found[i] = redis.call('HGET', KEYS[1], prefix) or '' end
for i = 2, #KEYS do
  if redis.call('TYPE', KEYS[i]).ok == 'zset' then
    found[#found + 1] = '[' .. table.concat(redis.call('ZRANGE', KEYS[i], 0, -1), ',') .. ']'
  else
    found[#found + 1] = redis.call('GET', KEYS[i]) or ''
  end
end
return found
"""
"""What the catalogue says of stores that begin with these words, then what they hold under keys: a row, or the members
of a set as one JSON array, one value to read instead of one for each; '' where there is nothing. KEYS: the catalogue,
theirs."""
