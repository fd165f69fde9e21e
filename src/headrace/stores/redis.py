"""The store in Redis: a key for each row, written by a script that checks driver and batch at every call.

`headrace_epochs:<pattern>` says for each owner who may write: a number, raised by every driver that opens the store and
whenever it connects again, so that what is still under way on a lost connection comes too late, and who that is.
`headrace_ledger:<pattern>` says for each flow which batch was written last, and whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.base.duration import millis
from headrace.base.errors import Fenced, StoreLost, StoreRefused, StoreUnreachable
from headrace.base.ids import random_id
from headrace.expr.types import Columns
from headrace.model.output import Guarantee
from headrace.model.target import RedisKeys
from headrace.stores import redis_catalogue
from headrace.stores.away import patiently
from headrace.stores.failpoint import reach
from headrace.stores.redis_rows import NOTHING, pieces_of
from headrace.stores.store import Batch, Store

_PIPELINED = 20
_SCANNED = 1_000
_TIMEOUT = 10

# KEYS: epochs, ledger. ARGV: owner, our number and name, flow, batch, the last batch we noted, whether a batch that is
# noted is skipped, whether to note it, ttl in milliseconds or 0, a piece of rows.
_WRITE = """
local number, holder = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '0:', '^(%d+):(.*)$')
if tonumber(number) < tonumber(ARGV[2]) then return 'lost' end
if number ~= ARGV[2] or holder ~= ARGV[3] then return 'fenced' end
local last = tonumber(redis.call('HGET', KEYS[2], ARGV[4]) or -1)
if last < tonumber(ARGV[6]) then return 'lost' end
if ARGV[7] == '1' and last >= tonumber(ARGV[5]) then return 'known' end
local rows = cmsgpack.unpack(ARGV[10])
for i = 1, #rows, 2 do
  if rows[i + 1] == '' then redis.call('DEL', rows[i])
  elseif ARGV[9] == '0' then redis.call('SET', rows[i], rows[i + 1])
  else redis.call('SET', rows[i], rows[i + 1], 'PX', ARGV[9]) end
end
if ARGV[8] == '1' then redis.call('HSET', KEYS[2], ARGV[4], ARGV[5]) end
return 'written'
"""
# KEYS: epochs. ARGV: owner, holder, and our number if we only connect again, else 0.
_TAKE = """
local number, holder = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '0:', '^(%d+):(.*)$')
if tonumber(number) < tonumber(ARGV[3]) then return 'lost' end
if ARGV[3] ~= '0' and holder ~= ARGV[2] then return 'fenced' end
redis.call('HSET', KEYS[1], ARGV[1], (number + 1) .. ':' .. ARGV[2])
return tostring(number + 1)
"""
# KEYS: epochs. After it nobody may write.
_CLOSE_ALL = """
for _, owner in ipairs(redis.call('HKEYS', KEYS[1])) do
  local number = string.match(redis.call('HGET', KEYS[1], owner), '^(%d+)')
  redis.call('HSET', KEYS[1], owner, (number + 1) .. ':')
end
"""


def redis_store(url: str, target: RedisKeys, columns: Columns, guarantee: Guarantee = "exactly-once") -> RedisStore:
    return RedisStore(url, target, columns, guarantee)


class RedisStore(Store):
    """`GET spend:c1` gives the row as JSON. Readers see every row whole, and a large batch in pieces."""

    def __init__(self, url: str, target: RedisKeys, columns: Columns, guarantee: Guarantee) -> None:
        self._url = url
        self._target = target
        self._columns = columns
        self._guarantee = guarantee
        self._epochs = f"headrace_epochs:{target.name}"
        self._ledger = f"headrace_ledger:{target.name}"
        self._ttl = 0 if target.ttl is None else millis(target.ttl)
        self._owner = ""
        self._holder = ""
        self._number = 0
        self._noted: dict[str, int] = {}
        self._scripts: dict[str, str] = {}
        self._client: redis.Redis | None = None

    def open(self, owner: str) -> None:
        self.close()
        self._owner, self._holder, self._number = owner, random_id(), 0
        self._noted.clear()
        with self._told("opened"), self._made() as client:
            _check_server(client, self._target.label, self._guarantee)
            redis_catalogue.settle(client, self._target, self._columns)
            if redis_catalogue.is_lost(client, self._target) and self._guarantee != "at-most-once":
                raise self._lost()
            self._connected()

    def commit(self, batch: Batch) -> None:
        pieces = pieces_of(batch, self._target, self._columns)
        with self._told(f"given batch {batch.number}"):
            patiently(lambda: self._attempt(batch, pieces), _passes)

    def drop(self) -> None:
        with self._told("dropped"), self._made() as client:
            client.eval(_CLOSE_ALL, 1, self._epochs)
            ours = re.sub(r"([*?\[\]\\])", r"\\\1", self._target.prefix) + "*"
            cursor, found = client.scan(0, match=ours, count=_SCANNED)
            while cursor or found:
                if found:
                    client.unlink(*found)
                cursor, found = client.scan(cursor, match=ours, count=_SCANNED) if cursor else (0, [])
            client.delete(self._ledger)
            client.hdel(redis_catalogue.CATALOGUE, self._target.prefix)
        self.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # -- a batch

    def _attempt(self, batch: Batch, pieces: list[bytes]) -> None:
        try:
            self._write(batch, pieces)
        except redis.RedisError:
            self.close()  # what became of the last call is not known: the next connection gets another number
            raise
        reach("redis-after-commit", batch.number)

    def _write(self, batch: Batch, pieces: list[bytes]) -> None:
        """All pieces but the last, then the last with the note that the batch is whole; at most once the note first."""
        at_most_once, skip = self._guarantee == "at-most-once", self._guarantee == "exactly-once"
        if at_most_once and not self._send(batch, [NOTHING], skip=True, note=True):
            return
        reach("redis-before-rows", batch.number)
        *most, last = pieces
        for at in range(0, len(most), _PIPELINED):
            if not self._send(batch, most[at : at + _PIPELINED], skip=skip):
                return
        reach("redis-after-rows", batch.number)
        self._send(batch, [last], skip=skip, note=not at_most_once)

    def _send(self, batch: Batch, pieces: Sequence[bytes], *, skip: bool, note: bool = False) -> bool:
        """Whether the rows were written. `skip`: not if the batch is noted. `note`: the batch is whole with them."""
        client = self._connected()
        pipe = client.pipeline(transaction=False)
        noted = self._noted.get(batch.flow, -1)
        head = self._owner, self._number, self._holder, batch.flow, batch.number, noted, int(skip), int(note), self._ttl
        for piece in pieces:
            pipe.evalsha(self._scripts[_WRITE], 2, self._epochs, self._ledger, *head, piece)
        answers = {answer.decode() for answer in pipe.execute()}
        self._check(client, answers)
        if note and answers == {"written"} and self._guarantee != "at-most-once":
            self._noted[batch.flow] = batch.number
        return answers == {"written"}

    def _check(self, client: redis.Redis, answers: set[str]) -> None:
        if "fenced" in answers:
            raise Fenced(
                f"another driver writes {self._target.label} for {self._owner}",
                why="it opened the store after this one did; nothing more of the batch was written",
                fix="keep one of the two drivers; run the other under another version",
            )
        if "lost" in answers:
            if self._guarantee == "at-most-once":
                self.close()  # what is left of the batch is lost as well
                return
            redis_catalogue.mark_lost(client, self._target, self._columns)
            raise self._lost()

    def _lost(self) -> StoreLost:
        return StoreLost(
            f"{self._target.label} lost rows that were written",
            why=f"Redis at {_place(self._url)} came back empty, or as it was before: it does not keep all it is given",
            fix=f"`headrace rebuild {self._target.label}` fills it again; `appendfsync always` in Redis prevents it",
        )

    # -- the connection

    def _connected(self) -> redis.Redis:
        """Scripts are loaded and our number is new with each connection."""
        if self._client is None:
            client = self._made()
            self._scripts = {text: client.script_load(text) for text in (_WRITE, _TAKE)}
            self._take(client)
            self._client = client
        return self._client

    def _take(self, client: redis.Redis) -> None:
        call = self._scripts[_TAKE], 1, self._epochs, self._owner, self._holder
        said = client.evalsha(*call, self._number).decode()
        if said == "lost" and self._guarantee == "at-most-once":
            said = client.evalsha(*call, 0).decode()
        self._check(client, {said})
        self._number = int(said)

    def _made(self) -> redis.Redis:
        # Once: the client would try again by itself, and write what somebody else has overwritten since.
        how = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": 3, "retry": Retry(NoBackoff(), 0)}
        return redis.Redis.from_url(self._url, **how)

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        """Redis's errors in our words."""
        try:
            yield
        except (redis.RedisError, ValueError) as broken:
            if _passes(broken):
                raise StoreUnreachable(
                    f"Redis at {_place(self._url)} does not answer",
                    why=str(broken),
                    fix="start it: `headrace up` if it is the embedded one; the setting redis.url says where it is",
                ) from broken
            raise StoreRefused(
                f"{self._target.label} could not be {done}: Redis at {_place(self._url)} refused",
                why=str(broken)
                if isinstance(broken, redis.RedisError)
                else "the URL cannot be read: write redis://...",
                fix="correct what it says; the batch is not lost, and written then",
            ) from broken


def _check_server(client: redis.Redis, label: str, guarantee: Guarantee) -> None:
    """Refuses what would lose rows without a word."""
    told = client.info()
    evicts = told["maxmemory"] > 0 and told["maxmemory_policy"].startswith("allkeys")
    if told["redis_mode"] == "cluster" or (evicts and guarantee != "at-most-once"):
        raise StoreRefused(
            f"this Redis cannot hold {label} {guarantee}",
            why=f"it evicts keys that are in use ({told['maxmemory_policy']})"
            if evicts
            else "it is a cluster: its scripts cannot see the keys of other nodes",
            fix='set maxmemory-policy to noeviction, or say guarantee="at-most-once"' if evicts else "use a single one",
        )


def _passes(broken: Exception) -> bool:
    """Whether it may work in a moment; a script that Redis has forgotten is loaded with the next connection."""
    refused = redis.AuthenticationError, redis.exceptions.AuthorizationError
    away = redis.ConnectionError, redis.TimeoutError, redis.exceptions.NoScriptError
    return isinstance(broken, away) and not isinstance(broken, refused)


def _place(url: str) -> str:
    try:
        found = urlsplit(url)
        return f"{found.hostname or 'localhost'}:{found.port or 6379}"
    except ValueError:
        return "an address that cannot be read"
