"""Plain Parquet files in a directory: a file for each batch, there whole or not at all, for whoever reads Parquet.

The name of a file is the note that its batch is there: it says flow and number, and is given once. In `_headrace/` are
the epochs of drivers, the claims of at-most-once, and files that are being written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.base.errors import TableMismatch
from headrace.base.ids import random_id, stable_id
from headrace.expr.types import Columns
from headrace.model.output import Guarantee
from headrace.model.target import ID, ROW_ID, ParquetFiles
from headrace.stores import arrow, disk, staged
from headrace.stores.failpoint import reach
from headrace.stores.store import Batch, Store, fenced


class FilesStore(Store):
    """One directory; rows are appended, with their stable id in the column `hr_id`."""

    def __init__(
        self, root: Path, target: ParquetFiles, columns: Columns, guarantee: Guarantee = "exactly-once"
    ) -> None:
        self._folder = root / target.name
        self._own = self._folder / "_headrace"
        self._target = target
        self._columns = columns
        self._guarantee = guarantee
        self._owner = ""
        self._epoch = 0

    def open(self, owner: str) -> None:
        with self._errors():
            self._own.mkdir(parents=True, exist_ok=True)
            self._check()
            self._owner = stable_id(owner)
            self._epoch = self._raise(self._owner)
            for left in self._own.glob(f"{self._owner}-*.parquet"):  # by a driver that died in the middle of one
                left.unlink(missing_ok=True)

    def commit(self, batch: Batch) -> None:
        flow = stable_id(batch.flow)
        name = f"{flow}-{batch.number:09}"
        with self._errors():
            self._check_epoch()
            if self._guarantee == "at-least-once":
                name += f"-{random_id()}"
            elif batch.number <= self._noted(flow):
                return
            if self._guarantee == "at-most-once":
                (self._own / f"{name}.claim").touch()
            self._write(batch, name)

    def drop(self) -> None:
        with self._errors():
            for owner in {file.stem for file in self._own.glob("*.epoch*")}:
                self._raise(owner)
            # A driver that is just about to link its file finds it gone, or is fenced: so these first.
            for file in [*self._own.glob("*.parquet"), *self._own.glob("*.claim"), *self._folder.glob("*.parquet")]:
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is held between two batches."""

    def _write(self, batch: Batch, name: str) -> None:
        import pyarrow.parquet as pq

        rows = staged.read(batch.files, self._target, self._columns)
        rows = rows.rename_columns({ID: ROW_ID})
        written = self._own / f"{self._owner}-{random_id()}.parquet"
        reach("files-before-rows", batch.number)
        try:
            pq.write_table(rows, written, compression="zstd")
            reach("files-after-rows", batch.number)
            self._check_epoch()
            with suppress(FileExistsError):  # a driver that was thought dead may have been quicker, with the same rows
                os.link(written, self._folder / f"{name}.parquet")
        finally:
            written.unlink(missing_ok=True)
        reach("files-after-commit", batch.number)

    def _noted(self, flow: str) -> int:
        """The last batch of a flow that is there or claimed."""
        there = [*self._folder.glob(f"{flow}-*.parquet"), *self._own.glob(f"{flow}-*.claim")]
        return max((int(file.stem.split("-")[1]) for file in there), default=-1)

    def _check(self) -> None:
        """A column has one type in all files; the newest speaks for them."""
        import pyarrow.parquet as pq

        newest = max(self._folder.glob("*.parquet"), key=lambda file: file.stat().st_mtime, default=None)
        there = {} if newest is None else {field.name: field.type for field in pq.read_schema(newest)}
        wrong = [
            f"{field.name} is {there[field.name]} there, and {field.type} here"
            for field in arrow.fields(self._columns)
            if field.name in there and not arrow.same(there[field.name], field.type)
        ]
        if wrong:
            raise TableMismatch(
                f"{self._target.label} has files of other rows",
                why="; ".join(wrong),
                fix=f"`headrace rebuild {self._target.label}` makes them anew from the log, or write to another name",
                where=self._target.where,
            )

    def _raise(self, owner: str) -> int:
        """The next epoch of an owner: a file that only one driver can make."""
        epoch = self._newest(owner)
        while True:
            epoch += 1
            with suppress(FileExistsError):
                (self._own / f"{owner}.epoch{epoch:09}").touch(exist_ok=False)
                return epoch

    def _newest(self, owner: str) -> int:
        return max((int(file.suffix.removeprefix(".epoch")) for file in self._own.glob(f"{owner}.epoch*")), default=0)

    def _check_epoch(self) -> None:
        if self._newest(self._owner) != self._epoch:
            raise fenced(self._target.label)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as failed:
            raise disk.told(failed, self._target.label, self._folder, "files.path") from failed
