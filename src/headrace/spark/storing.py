"""A flow's stores while its query runs: opened before it starts, told by the JVM of every batch, closed after it."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headrace.base.errors import HeadraceError, StoreError
from headrace.spark.session import Spark
from headrace.stores.store import Batch, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """A batch that is being given to a store."""

    store: int
    batch: int
    since: datetime


class Storing:
    """What the JVM calls at a batch's commit (jvm/StoreCommits.scala), on a thread of py4j's."""

    def __init__(self, stores: tuple[Store, ...]) -> None:
        self._stores = stores
        self.waits: Waits | None = None
        self.error: HeadraceError | None = None
        """Why the last batch was not committed: the JVM is told only its code and what it says."""

    def commit(self, flow: str, number: int, store: int, files: str) -> str:
        """Commits the files of a batch, a path a line, to the n-th store; "" or "code: what"."""
        batch = Batch(flow=flow, number=number, files=tuple(Path(file) for file in files.split("\n")))
        self.waits = Waits(store=store, batch=number, since=datetime.now(UTC))
        try:
            self._stores[store].commit(batch)
        except HeadraceError as refused:
            self.error = refused
        except Exception as broken:
            self.error = StoreError(f"a store broke: {broken!r}", why=traceback.format_exc())
        else:
            return ""
        finally:
            self.waits = None
        return f"{self.error.code}: {self.error.what}"

    def tidy(self) -> None:
        for store in self._stores:
            store.tidy()

    class Java:
        implements = ("headrace.StoreCommits",)


@contextmanager
def storing(spark: Spark, stores: tuple[Store, ...], owner: str, staged: Path) -> Iterator[Storing]:
    """Lets queries that stage rows in this folder commit them to the stores, which `owner` takes over."""
    told = Storing(stores)
    if not stores:
        yield told
        return
    shutil.rmtree(staged, ignore_errors=True)  # what a driver that died had staged
    try:
        for store in stores:
            store.open(owner)
        spark.answer()
        spark.jvm.StoreCommits.join(str(staged), told)
        yield told
    finally:
        with suppress(Exception):  # py4j raises many kinds when the JVM has gone
            spark.jvm.StoreCommits.leave(str(staged))
        for store in stores:
            store.close()
