"""A bench to test a store on: stages rows as Spark's tasks do, makes stores, and reads what is in them."""

from __future__ import annotations

import base64
import os
import pickle
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.base.ids import random_id
from headrace.expr.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    TEXT,
    TIME,
    Column,
    Columns,
    DecimalType,
    ListType,
    Type,
)  # fmt: skip
from headrace.model.output import Guarantee
from headrace.model.target import GONE, Target
from headrace.stores.failpoint import NAME
from headrace.stores.store import Batch, Store

Row = dict[str, Any]

OWNER = "bank/v1/spend"
FLOW = f"{OWNER}/query-1"
SMALL = (Column("k", TEXT), Column("n", INT, nullable=True))
ROOT = Path(__file__).parents[2]

_ARROW = {
    BOOL: pa.bool_(),
    INT: pa.int64(),
    FLOAT: pa.float64(),
    TEXT: pa.string(),
    TIME: pa.timestamp("us", "UTC"),
    BYTES: pa.binary(),
}


class Bench(ABC):
    """One table, or whatever the store has; a fresh one for each test."""

    atomic = True
    """Whether readers see a batch whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"t_{random_id()[:12].lower()}"
        self._opened: list[Store] = []

    @abstractmethod
    def target(self, key: str = "k") -> Target:
        """The declared store; a store without keys pays no attention to `key`."""

    @abstractmethod
    def recipe(self, target: Target, columns: Columns, guarantee: Guarantee) -> partial[Store]:
        """How to make the store, here or in another process."""

    @abstractmethod
    def rows(self, columns: Columns = SMALL) -> list[Row]:
        """What a reader finds, in any order: values as they were given, null where a row has no such column."""

    def store(
        self, columns: Columns = SMALL, *, guarantee: Guarantee = "exactly-once", key: str = "k", owner: str = OWNER
    ) -> Store:
        """Another driver's store, open; a test closes none."""
        store = self.recipe(self.target(key), columns, guarantee)()
        self._opened.append(store)
        store.open(owner)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()

    def batch(self, number: int, *files: list[Row], columns: Columns = SMALL, flow: str = FLOW) -> Batch:
        """A batch of staged rows, a list for each file. A row may say `_gone`, `_time` and `_id`."""
        staged = [self._stage(f"{random_id()}.parquet", rows, columns) for rows in files]
        return Batch(flow=flow, number=number, files=tuple(staged))

    def _stage(self, name: str, rows: list[Row], columns: Columns) -> Path:
        path = self.folder / name
        extra: dict[str, Callable[[int, Row], Any]] = {
            "_gone": lambda _, row: row.get(GONE, False),
            "_time": lambda _, row: row.get("_time", 0),
            "_id": lambda place, row: row.get("_id", f"id-{place}"),
        }
        arrays = {c.name: pa.array([row.get(c.name) for row in rows], _arrow(c.type)) for c in columns}
        for found in self.target().extra:
            arrays[found] = pa.array([extra[found](place, row) for place, row in enumerate(rows)])
        pq.write_table(pa.table(arrays), path)
        return path

    @contextmanager
    def driver(self, *batches: Batch, failpoint: str, guarantee: Guarantee = "exactly-once") -> Iterator[Driver]:
        """A driver in a process of its own that opens the store and commits batches; `failpoint` without the kind."""
        target = self.target()
        work = pickle.dumps((self.recipe(target, SMALL, guarantee), OWNER, batches))
        env = {**os.environ, NAME: f"{target.KIND}-{failpoint}", "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-m", "tests.stores.driver"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=env) as process:
            assert process.stdin is not None
            process.stdin.write(work)
            process.stdin.close()
            process.stdin = None
            try:
                yield Driver(process)
            finally:
                process.kill()


class Driver:
    """A process that may die or stop."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def await_death(self) -> None:
        assert self._process.wait(60) == -signal.SIGKILL

    def await_stop(self) -> None:
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self) -> str:
        """What became of it in the end: "ok", or the code of its error."""
        self._process.send_signal(signal.SIGCONT)
        said, _ = self._process.communicate(timeout=60)
        return said.decode().strip()


def by_key(rows: list[Row]) -> list[Row]:
    """In a fixed order, without what a store adds."""
    return sorted(({"k": row["k"], "n": row["n"]} for row in rows), key=lambda row: (row["k"], row["n"]))


def from_wire(value: Any, type: Type) -> Any:
    """A value out of JSON as it was given."""
    if value is None:
        return None
    if isinstance(type, ListType):
        return [from_wire(one, type.item) for one in value]
    if isinstance(type, DecimalType):
        return Decimal(value)
    if type == TIME:
        return datetime.fromisoformat(value)
    return base64.b64decode(value) if type == BYTES else value


def _arrow(type: Type) -> pa.DataType:
    if isinstance(type, DecimalType):
        return pa.decimal128(type.precision, type.scale)
    return pa.list_(_arrow(type.item)) if isinstance(type, ListType) else _ARROW[type]
