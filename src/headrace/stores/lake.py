"""The lake: a Delta table. A batch is one entry of the table's log, and the note that it is there stands in the same.

Delta lets an application keep numbers in the log. Two are kept: the last batch of a flow, and the epoch of its owner,
which every driver raises when it opens the table. An entry is made on the version that was read, or not at all: the log
has one file a version, and only one writer can create it. Who comes second reads again; it finds that it was fenced, or
that a stranger wrote, and goes on top.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace.base.errors import Fenced, StoreLost, StoreRefused, TableMismatch
from headrace.expr.types import Columns
from headrace.model.output import Guarantee
from headrace.model.target import GONE, LakeTable
from headrace.stores import disk, lake_files, lake_schema, lake_tidy, staged
from headrace.stores.failpoint import reach
from headrace.stores.lake_files import Placed
from headrace.stores.store import Batch, Store, fenced

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

LOG = "_delta_log"
"""The directory of a table's log; what has none is no table."""
CHECKPOINT_EVERY = 50
"""Entries of the log after which Delta writes all of it down anew, so that opening a table stays quick."""
TIDY_EVERY = 100
"""Entries of the log after which small files are made into large ones."""
ATTEMPTS = 20
"""How often an entry is tried again because others wrote to the table at the same moment."""
DROPPED = "headrace.dropped"
"""The property of a table that was dropped. Its log goes on, so that drivers know their order."""

log = logging.getLogger("headrace.stores")


class LakeStore(Store):
    """A table of the lake, in the directory of its name. Rows are appended; or they replace each other by key, and the
    table has a change feed."""

    def __init__(self, root: Path, target: LakeTable, columns: Columns, guarantee: Guarantee = "exactly-once") -> None:
        self._folder = root / target.name
        self._target = target
        self._columns = columns
        self._guarantee = guarantee
        self._names = lake_schema.names(target, columns)
        self._owner = ""
        self._epoch = 0
        self._opened: DeltaTable | None = None
        self._table = ""  # the id of the table that was opened; one that was dropped and made anew has another
        self._tidied = 0

    def open(self, owner: str) -> None:
        self._owner = f"{owner}#epoch"
        with self._errors():
            self._repeat(self._take)

    def commit(self, batch: Batch) -> None:
        with self._errors():
            if self._guarantee != "at-least-once" and self._noted(batch):
                return
            if self._guarantee == "at-most-once":
                self._repeat(lambda: self._enter(self._mine(), batch=batch))
            reach("lake-before-rows", batch.number)
            if self._target.key:
                self._upsert(batch)
            else:
                self._append(batch)
        reach("lake-after-commit", batch.number)

    def drop(self) -> None:
        with self._errors():
            if self._there():
                self._repeat(self._empty)

    def close(self) -> None:
        self._opened = None

    def _take(self) -> None:
        """Makes the table, or checks and extends the one that is there, and raises the owner's epoch."""
        from deltalake import Field

        if not self._there():
            if self._table:  # a table made anew would lack what this flow has written
                raise self._gone()
            self._create(lake_schema.schema(self._target, self._columns), mode="ignore")
        elif DROPPED in self._load().metadata().configuration:
            self._create(lake_schema.schema(self._target, self._columns), mode="overwrite")
        table = self._load()
        if added := lake_schema.missing(table, self._target, self._columns):
            table.alter.add_columns([Field.from_arrow(field) for field in added])
            table = self._load()
        self._opened, self._table, self._tidied = table, table.metadata().id, table.version()
        self._epoch = (table.transaction_version(self._owner) or 0) + 1
        self._enter(table)

    def _mine(self) -> DeltaTable:
        """The table as it is now, if this driver may still write to it."""
        table = self._opened
        assert table is not None, "open it first"
        table.update_incremental()
        if table.metadata().id != self._table or table.transaction_version(self._owner) != self._epoch:
            raise fenced(self._target.label)
        if gone := lake_schema.missing(table, self._target, self._columns):
            raise TableMismatch(
                f"{self._target.label} has lost columns while the flow ran",
                why=f"somebody removed {', '.join(field.name for field in gone)}",
                fix="start the flow again: it adds them",
            )
        return table

    def _ready(self, batch: Batch) -> DeltaTable:
        """The same, at the worst moment to be stopped: Delta itself must find what comes in between."""
        table = self._mine()
        reach("lake-after-rows", batch.number)
        return table

    def _noted(self, batch: Batch) -> bool:
        last = self._mine().transaction_version(self._note(batch))
        return last is not None and last >= batch.number

    def _note(self, batch: Batch) -> str:
        return f"{batch.flow}@{self._table}"

    def _append(self, batch: Batch) -> None:
        placed = lake_files.place(self._folder, self._target, self._columns, batch.files)
        with self._kept(placed):
            actions = [file.action(self._folder, self._names) for file in placed]
            self._repeat(lambda: self._enter(self._ready(batch), actions, batch))

    def _upsert(self, batch: Batch) -> None:
        rows = staged.latest(batch.files, self._target, self._columns)
        rows = lake_files.typed(rows, self._target, self._columns, GONE)
        self._repeat(lambda: self._merge(rows, batch))

    def _merge(self, rows: pa.Table, batch: Batch) -> None:
        values = {f'"{name}"': f's."{name}"' for name in self._names}
        same = dict.fromkeys([*self._target.key, *lake_schema.partitions(self._target)])
        table = self._ready(batch)
        done = (
            table.merge(
                rows,
                " and ".join(f't."{name}" = s."{name}"' for name in same),
                source_alias="s",
                target_alias="t",
                streamed_exec=False,  # then Delta knows the bounds of the new rows, and reads only files they can be in
                commit_properties=self._numbers(batch),
            )
            .when_matched_delete(f's."{GONE}"')
            .when_matched_update(values)
            .when_not_matched_insert(values, predicate=f'not s."{GONE}"')
            .execute()
        )
        if not done["num_target_files_added"] and not done["num_target_files_removed"]:
            self._enter(table, batch=batch)  # Delta makes no entry when nothing changed

    @contextmanager
    def _kept(self, placed: Sequence[Placed]) -> Iterator[None]:
        """Files that come into no entry are removed. Delta can fail when it has made one: what the log names stays."""
        try:
            yield
        except BaseException:
            named = {Path(file).name for file in self._load().file_uris()}
            lake_files.remove(self._folder, [file for file in placed if Path(file.path).name not in named])
            raise

    def _enter(
        self, table: DeltaTable, actions: Sequence[AddAction | RemoveAction] = (), batch: Batch | None = None
    ) -> None:
        """One entry of the log: files that come and go, and the numbers."""
        parts = table.metadata().partition_columns
        numbers = self._numbers(batch)
        table.create_write_transaction(list(actions), "append", table.schema(), parts, commit_properties=numbers)

    def _numbers(self, batch: Batch | None) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        numbers = [Transaction(self._owner, self._epoch)]
        if batch is not None:
            numbers.append(Transaction(self._note(batch), batch.number))
        return CommitProperties(app_transactions=numbers, max_commit_retries=0)

    def _empty(self) -> None:
        import pyarrow as pa

        table = self._load()
        if lake_schema.KEY not in table.metadata().configuration:
            raise StoreRefused(
                f"{self._target.label} was not made by Headrace, and is not dropped",
                why="it may hold more than what the log can give back",
                fix=f"if it does not: rm -r {self._folder}",
            )
        self._create(pa.schema(table.schema()), mode="overwrite", dropped=True)
        # Who drops a table wants its space; readers of it are told that files are gone.
        self._load().vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)

    def _create(self, schema: pa.Schema, *, mode: Literal["ignore", "overwrite"], dropped: bool = False) -> None:
        from deltalake import CommitProperties, DeltaTable, Schema

        properties = {
            "delta.checkpointInterval": str(CHECKPOINT_EVERY),
            "delta.enableChangeDataFeed": str(bool(self._target.key)).lower(),
            lake_schema.KEY: ", ".join(self._target.key),
        }
        DeltaTable.create(
            str(self._folder),
            Schema.from_arrow(schema),
            mode=mode,
            partition_by=[] if dropped else lake_schema.partitions(self._target),
            configuration=properties | ({DROPPED: "true"} if dropped else {}),
            raise_if_key_not_exists=False,
            commit_properties=CommitProperties(max_commit_retries=0),  # rows that came in between would stay
        )

    def _there(self) -> bool:
        inside = {path.name for path in self._folder.iterdir()} if self._folder.exists() else set()
        if inside and LOG not in inside:
            raise TableMismatch(
                f"{self._folder} is there, and is no lake table",
                why=f"it has files, but no {LOG}; they could be taken for ours and be removed",
                fix="move them away, or write to another name",
                where=self._target.where,
            )
        return any((self._folder / LOG).glob("*.json"))  # a driver that died may have made only the directory

    def _load(self) -> DeltaTable:
        from deltalake import DeltaTable

        return DeltaTable(str(self._folder))

    def _repeat(self, attempt: Callable[[], None]) -> None:
        """Until Delta takes the entry: it refuses one that was made while another came in between."""
        from deltalake.exceptions import CommitFailedError

        for left in reversed(range(ATTEMPTS)):
            try:
                attempt()
                return
            except CommitFailedError:
                if not left:
                    raise

    def tidy(self) -> None:
        """Now and then small files are made into large ones, and what no reader can need any more is removed."""
        from deltalake.exceptions import DeltaError

        table = self._opened
        if table is None or table.version() // TIDY_EVERY == self._tidied // TIDY_EVERY:
            return
        self._tidied = table.version()
        try:
            self._join_files(self._mine())
            table.vacuum(dry_run=False, full=True)
        except (DeltaError, OSError, Fenced) as failed:
            log.warning("%s could not be tidied: %s", self._target.label, failed)

    def _join_files(self, table: DeltaTable) -> None:
        placed: list[Placed] = []
        gone: list[RemoveAction] = []
        with self._kept(placed):
            for group in lake_tidy.groups(table):
                placed.append(lake_tidy.joined(group, table, self._folder))
                gone += group.removals()
            if placed:
                self._enter(table, [*gone, *(file.action(self._folder, self._names, change=False) for file in placed)])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Delta's and the system's errors as ours."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as failed:
            if self._opened is not None and not self._there():
                raise self._gone() from failed
            raise disk.told(failed, self._target.label, self._folder, "lake.path") from failed

    def _gone(self) -> StoreLost:
        return StoreLost(
            f"{self._target.label} is gone",
            why=f"somebody removed {self._folder} while the flow ran",
            fix=f"put it back, or fill it from the log: `headrace rebuild {self._target.label}`",
        )
