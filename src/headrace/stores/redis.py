"""The store in Redis: a key for each row, written by a script that checks driver and batch at every call.

`headrace_epochs:<pattern>` says for each owner who may write: a number, raised by every driver that opens the store and
whenever it connects again, so that what is still under way on a lost connection comes too late, and who that is.
`headrace_ledger:<pattern>` says for each flow which batch was written last, and whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager

import redis

from headrace.base.duration import millis
from headrace.base.errors import StoreLost, StoreRefused
from headrace.base.ids import random_id
from headrace.expr.types import Columns
from headrace.model.output import Guarantee
from headrace.model.target import RedisKeys
from headrace.stores import redis_catalogue, redis_link
from headrace.stores.away import patiently
from headrace.stores.failpoint import reach
from headrace.stores.redis_rows import NOTHING, pieces_of
from headrace.stores.redis_scripts import CLOSE_ALL, TAKE, WRITE
from headrace.stores.store import Batch, Store, fenced

_PIPELINED = 20
_SCANNED = 1_000
_TIMEOUT = 10


class RedisStore(Store):
    """`GET spend:c1` gives the row as JSON. Readers see every row whole, and a large batch in pieces."""

    WRITE = WRITE

    def __init__(self, url: str, target: RedisKeys, columns: Columns, guarantee: Guarantee = "exactly-once") -> None:
        self._url = url
        self._target = target
        self._columns = columns
        self._guarantee = guarantee
        self._epochs = f"headrace_epochs:{target.name}"
        self._ledger = f"headrace_ledger:{target.name}"
        self._keep: tuple[int, ...] = (0 if target.ttl is None else millis(target.ttl),)
        self._owner = ""
        self._name = ""
        self._number = 0
        self._noted: dict[str, int] = {}
        self._scripts: dict[str, str] = {}
        self._client: redis.Redis | None = None

    def open(self, owner: str) -> None:
        self.close()
        self._owner, self._name = owner, random_id()
        with self._told("opened"):
            client = self._made()
            _check_server(client, self._target, self._guarantee)
            redis_catalogue.settle(client, self._target, self._columns)
            if redis_catalogue.is_lost(client, self._target) and self._guarantee != "at-most-once":
                raise self._lost()
            self._take(client, again=False)

    def commit(self, batch: Batch) -> None:
        pieces = self._pieces(batch)
        with self._told(f"given batch {batch.number}"):
            patiently(lambda: self._attempt(batch, pieces), redis_link.passes)

    def drop(self) -> None:
        with self._told("dropped"), self._made() as client:
            client.eval(CLOSE_ALL, 1, self._epochs)
            redis_catalogue.mark_lost(client, self._target, self._columns)  # until all of it is gone, it is not whole
            ours = re.sub(r"([*?\[\]\\])", r"\\\1", self._target.prefix) + "*"
            cursor = None
            while cursor != 0:
                cursor, found = client.scan(cursor or 0, match=ours, count=_SCANNED)
                if found:
                    client.unlink(*found)
            client.delete(self._ledger)
            client.hdel(redis_catalogue.CATALOGUE, self._target.prefix)
        self.close()
        self._number = 0
        self._noted.clear()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # -- a batch

    def _pieces(self, batch: Batch) -> list[bytes]:
        return pieces_of(batch, self._target, self._columns)

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
        head = self._owner, self._number, self._name, batch.flow, batch.number, noted, int(skip), int(note)
        for piece in pieces:
            pipe.evalsha(self._scripts[self.WRITE], 2, self._epochs, self._ledger, *head, piece, *self._keep)
        answers = {answer.decode() for answer in pipe.execute()}
        self._check(client, answers)
        if note and answers == {"written"} and self._guarantee != "at-most-once":
            self._noted[batch.flow] = batch.number
        return answers == {"written"}

    def _check(self, client: redis.Redis, answers: set[str]) -> None:
        if "fenced" in answers:
            raise fenced(self._target.label)
        if "lost" in answers:
            if self._guarantee == "at-most-once":
                self.close()  # what is left of the batch is lost as well
                return
            redis_catalogue.mark_lost(client, self._target, self._columns)
            raise self._lost()

    def _lost(self) -> StoreLost:
        return StoreLost(
            f"{self._target.label} lost rows that were written",
            why=f"Redis at {redis_link.place(self._url)} came back empty, or as it was before: "
            "it does not keep all it is given",
            fix=f"`headrace rebuild {self._target.label}` fills it again; `appendfsync always` in Redis prevents it",
        )

    # -- the connection

    def _connected(self) -> redis.Redis:
        if self._client is None:
            self._take(self._made(), again=True)
        assert self._client is not None
        return self._client

    def _take(self, client: redis.Redis, *, again: bool) -> None:
        """Scripts are loaded with each connection, and its number is new."""
        self._scripts = {text: client.script_load(text) for text in (TAKE, self.WRITE)}
        call = self._scripts[TAKE], 1, self._epochs, self._owner
        said = client.evalsha(*call, self._number, self._name, int(again)).decode()
        if said == "lost" and self._guarantee == "at-most-once":
            said = client.evalsha(*call, 0, self._name, 0).decode()
        self._check(client, {said})
        self._number, self._client = int(said), client

    def _made(self) -> redis.Redis:
        return redis_link.connect(self._url, self._target.label, timeout=_TIMEOUT)

    def _told(self, done: str) -> AbstractContextManager[None]:
        fix = "correct what it says; the batch is not lost, and written then"
        return redis_link.told(self._url, f"{self._target.label} could not be {done}", fix)


def _check_server(client: redis.Redis, target: RedisKeys, guarantee: Guarantee) -> None:
    """Refuses what would lose rows without a word."""
    told = client.info()
    if told.get("redis_mode") == "cluster":
        raise StoreRefused(
            f"this Redis cannot hold {target.label}",
            why="it is a cluster, and a script sees only the keys of one node",
            fix="use a Redis of one node, with or without replicas",
        )
    evicted = "allkeys" if target.ttl is None else ("allkeys", "volatile")  # "volatile": keys that have a ttl
    if told["maxmemory"] and told["maxmemory_policy"].startswith(evicted) and guarantee != "at-most-once":
        raise StoreRefused(
            f"this Redis cannot hold {target.label} {guarantee}",
            why=f"it evicts keys that are in use (maxmemory-policy {told['maxmemory_policy']})",
            fix='set maxmemory-policy to noeviction, or say guarantee="at-most-once"',
        )
