"""The lake keeps the contract of stores; and what is Delta's own: partitions, other writers, tidying."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, TableFeatures, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType

from headrace.base.errors import Fenced, StoreLost, StoreRefused, TableMismatch
from headrace.expr.types import INT, TEXT, TIME, Column, Columns
from headrace.model.output import Guarantee
from headrace.model.target import LakeTable, Target, lake
from headrace.stores import lake as store
from headrace.stores import lake_tidy
from headrace.stores.lake import LakeStore
from headrace.stores.store import Batch
from tests.stores.bench import FLOW, OWNER, SMALL, Bench, Row, by_key
from tests.stores.contract import Appended, Keyed


class LakeBench(Bench):
    """A table of its own in a lake of its own."""

    keyed = False

    def target(self, key: str = "k") -> LakeTable:
        return lake(self.name, key=key if self.keyed else None)

    def recipe(self, target: Target, columns: Columns, guarantee: Guarantee) -> partial[Any]:
        return partial(LakeStore, self.folder / "lake", target, columns, guarantee)

    def rows(self, columns: Columns = SMALL) -> list[Row]:
        table = self.table.to_pyarrow_table()
        return [{c.name: row.get(c.name) for c in columns} for row in table.to_pylist()]

    @property
    def path(self) -> Path:
        return self.folder / "lake" / self.name

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(str(self.path))


class KeyedBench(LakeBench):
    keyed = True


@pytest.fixture
def lakes(tmp_path: Path) -> Iterator[LakeBench]:
    bench = LakeBench(tmp_path)
    yield bench
    bench.close()


class TestAppended(Appended):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> LakeBench:
        return LakeBench(tmp_path)


class TestKeyed(Keyed):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> KeyedBench:
        return KeyedBench(tmp_path)


# -- partitions

TIMED = (Column("k", TEXT, nullable=True), Column("n", INT, nullable=True), Column("at", TIME, nullable=True))


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, 30, 0, 5, tzinfo=UTC)


def row(k: str | None, n: int, when: datetime | None) -> Row:
    return {"k": k, "n": n, "at": when}


def files(bench: LakeBench) -> list[str]:
    """The partitions of the table's files, and how many rows each has."""
    folders = sorted(
        (Path(file).relative_to(bench.path).parent, pq.read_metadata(file).num_rows) for file in _uris(bench)
    )
    return [f"{folder} {rows}" for folder, rows in folders]


def _uris(bench: LakeBench) -> list[str]:
    return bench.table.file_uris()


@pytest.mark.parametrize(
    ("partition", "column", "values"),
    [
        ("day(at)", "at_day", [date(2026, 11, 3), date(2026, 11, 4), None]),
        ("hour(at)", "at_hour", [datetime(2026, 11, 3, 7, tzinfo=UTC), datetime(2026, 11, 4, 7, tzinfo=UTC), None]),
        ("month(at)", "at_month", [date(2026, 11, 1), None]),
        ("year(at)", "at_year", [date(2026, 1, 1), None]),
        ("n", "n", [0, 1, 2]),
        ("k", "k", ["Zoë / 50 % = ☃", "a", None]),
    ],
)
def test_rows_go_to_their_partitions(lakes: LakeBench, partition: str, column: str, values: list[Any]) -> None:
    given = [row("a", 0, at(3, 7)), row("Zoë / 50 % = ☃", 1, at(4, 7)), row(None, 2, None)]
    made = LakeStore(lakes.folder / "lake", lake(lakes.name, partition=partition), TIMED)
    made.open(OWNER)
    made.commit(lakes.batch(0, given, columns=TIMED))
    assert sorted(lakes.rows(TIMED), key=lambda r: r["n"]) == given
    found = lakes.table.to_pyarrow_table()[column].to_pylist()
    assert sorted(set(found), key=lambda v: (v is None, v)) == values
    assert len(_uris(lakes)) == len(values)


def test_a_file_whose_rows_are_of_one_partition_is_linked_others_are_split(lakes: LakeBench) -> None:
    made = LakeStore(lakes.folder / "lake", lake(lakes.name, partition="day(at)"), TIMED)
    made.open(OWNER)
    whole, mixed = [row("a", n, at(3, n)) for n in range(3)], [row("b", n, at(3 + n)) for n in range(3)]
    batch = lakes.batch(0, whole, mixed, columns=TIMED)
    made.commit(batch)
    assert files(lakes) == ["at_day=2026-11-03 1", "at_day=2026-11-03 3", "at_day=2026-11-04 1", "at_day=2026-11-05 1"]
    assert batch.files[0].stat().st_nlink == 2
    assert batch.files[1].stat().st_nlink == 1


def test_a_file_of_other_types_is_written_anew(lakes: LakeBench) -> None:
    made = lakes.store()
    staged = lakes.folder / "old.parquet"
    pq.write_table(pa.table({"k": pa.array(["a"], pa.large_string()), "n": pa.array([1], pa.int32())}), staged)
    made.commit(Batch(flow=FLOW, number=0, files=(staged,)))
    assert lakes.rows() == [{"k": "a", "n": 1}]


def test_the_log_says_which_rows_a_file_can_have(lakes: LakeBench) -> None:
    lakes.store(TIMED).commit(lakes.batch(0, [row("a", 5, at(3)), row("b" * 65, 7, None)], columns=TIMED))
    told = pa.table(lakes.table.get_add_actions(flatten=True)).to_pylist()[0]
    assert (told["num_records"], told["min.n"], told["max.n"]) == (2, 5, 7)
    assert (told["min.at"], told["null_count.at"]) == (at(3), 1)
    assert told.get("max.k") is None  # too long to be worth its place
    for asked, count in (("n = 7", 1), ("n > 7", 0)):
        name, sign, value = asked.split()
        assert len(lakes.table.to_pyarrow_table(filters=[(name, sign, int(value))])) == count


# -- others write too


def test_what_others_append_stays(lakes: LakeBench) -> None:
    made = lakes.store()
    made.commit(lakes.batch(0, [{"k": "a", "n": 1}]))
    write_deltalake(str(lakes.path), pa.table({"k": ["x"], "n": [9]}), mode="append")
    made.commit(lakes.batch(1, [{"k": "b", "n": 2}]))
    assert by_key(lakes.rows()) == [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "x", "n": 9}]


@pytest.mark.parametrize("kind", [LakeBench, KeyedBench])
def test_what_others_write_at_the_same_moment_is_seen_and_stays(tmp_path: Path, kind: type[LakeBench]) -> None:
    bench = kind(tmp_path)
    batches = [bench.batch(0, [{"k": "a", "n": 1}]), bench.batch(1, [{"k": "b", "n": 2}])]
    with bench.driver(*batches, failpoint="after-rows@1@stop") as driver:
        driver.await_stop()
        write_deltalake(str(bench.path), pa.table({"k": ["b"], "n": [9]}), mode="append")
        assert driver.go_on() == "ok"
    found = [{"k": "a", "n": 1}, {"k": "b", "n": 2}]
    assert by_key(bench.rows()) == (found if bench.keyed else [*found, {"k": "b", "n": 9}])


def test_a_column_that_others_add_is_null_in_our_rows(lakes: LakeBench) -> None:
    made = lakes.store()
    lakes.table.alter.add_columns([Field("more", PrimitiveType("string"))])
    made.commit(lakes.batch(0, [{"k": "a", "n": 1}]))
    assert lakes.table.to_pyarrow_table().to_pylist() == [{"k": "a", "n": 1, "more": None}]


def test_a_change_of_columns_by_others_is_refused(lakes: LakeBench) -> None:
    made = lakes.store()
    other = pa.table({"k": ["x"], "n": ["text"]})
    write_deltalake(str(lakes.path), other, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(TableMismatch, match="n is string there, and int64 here"):
        made.commit(lakes.batch(0, [{"k": "a", "n": 1}]))
    assert lakes.table.to_pyarrow_table().to_pylist() == other.to_pylist()


def test_a_table_of_others_is_filled_but_not_dropped(lakes: LakeBench) -> None:
    write_deltalake(str(lakes.path), pa.table({"k": ["x"], "n": [9]}))
    made = lakes.store()
    made.commit(lakes.batch(0, [{"k": "a", "n": 1}]))
    with pytest.raises(StoreRefused, match="was not made by Headrace"):
        made.drop()
    assert by_key(lakes.rows()) == [{"k": "a", "n": 1}, {"k": "x", "n": 9}]


def test_a_directory_of_other_files_is_left_alone(lakes: LakeBench) -> None:
    lakes.path.mkdir(parents=True)
    (lakes.path / "notes.txt").write_text("mine")
    with pytest.raises(TableMismatch, match="is no lake table"):
        lakes.store()
    assert [file.name for file in lakes.path.iterdir()] == ["notes.txt"]


def test_a_table_of_which_only_the_directory_was_made_is_made(lakes: LakeBench) -> None:
    (lakes.path / "_delta_log").mkdir(parents=True)
    lakes.store().commit(lakes.batch(0, [{"k": "a", "n": 1}]))
    assert lakes.rows() == [{"k": "a", "n": 1}]


def test_drivers_that_make_the_table_at_once_get_epochs_of_their_own(lakes: LakeBench) -> None:
    made = [LakeStore(lakes.folder / "lake", lakes.target(), SMALL) for _ in range(4)]
    with ThreadPoolExecutor(len(made)) as pool:
        list(pool.map(lambda one: one.open(OWNER), made))
    assert sorted(one._epoch for one in made) == [1, 2, 3, 4]


def test_a_table_that_was_removed_while_the_flow_runs_is_missed(lakes: LakeBench) -> None:
    made = lakes.store()
    made.commit(lakes.batch(0, [{"k": "a", "n": 1}]))
    lakes.path.rename(lakes.path.with_name("elsewhere"))
    with pytest.raises(StoreLost, match="is gone"):
        made.commit(lakes.batch(1, [{"k": "b", "n": 2}]))
    with pytest.raises(StoreLost, match="is gone"):
        made.open(OWNER)
    assert not lakes.path.exists()


def test_another_partition_is_refused(lakes: LakeBench) -> None:
    lakes.store()
    with pytest.raises(TableMismatch, match="partitioned by none there, and n here"):
        LakeStore(lakes.folder / "lake", lake(lakes.name, partition="n"), SMALL).open(OWNER)


# -- the log and the files


def test_changes_by_key_can_be_read(tmp_path: Path) -> None:
    bench = KeyedBench(tmp_path)
    made = bench.store()
    made.commit(bench.batch(0, [{"k": "a", "n": 1}, {"k": "b", "n": 1}]))
    start = bench.table.version() + 1
    made.commit(bench.batch(1, [{"k": "a", "n": 2}, {"k": "b", "_gone": True}]))
    changes = pa.table(bench.table.load_cdf(start)).to_pylist()
    assert sorted((c["_change_type"], c["k"], c["n"]) for c in changes) == [
        ("delete", "b", 1),
        ("update_postimage", "a", 2),
        ("update_preimage", "a", 1),
    ]


def test_a_batch_that_changes_nothing_is_noted_too(tmp_path: Path) -> None:
    bench = KeyedBench(tmp_path)
    made = bench.store()
    made.commit(bench.batch(0, [{"k": "a", "n": 1}]))
    made.commit(bench.batch(1, [{"k": "never", "_gone": True}]))
    made.commit(bench.batch(1, [{"k": "b", "n": 2}]))
    assert bench.rows() == [{"k": "a", "n": 1}]


def test_small_files_become_large_ones_and_no_reader_loses_its_files(
    lakes: LakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "TIDY_EVERY", 10)
    made = lakes.store()
    first = lakes.table
    for name, age in (("old.parquet", timedelta(days=8)), ("new.parquet", timedelta(days=6))):
        left = (datetime.now(UTC) - age).timestamp()  # by a driver that died before its entry
        (lakes.path / name).touch()
        os.utime(lakes.path / name, (left, left))
    for number in range(12):
        made.commit(lakes.batch(number, [{"k": "a", "n": number}]))
        made.tidy()
        first = lakes.table if number == 3 else first
    assert len(_uris(lakes)) <= 3
    assert [r["n"] for r in by_key(lakes.rows())] == list(range(12))
    assert len(first.to_pyarrow_table()) == 4
    assert not (lakes.path / "old.parquet").exists()
    assert (lakes.path / "new.parquet").exists()  # it may be on its way into the log
    made.commit(lakes.batch(3, [{"k": "again", "n": 3}]))
    assert len(lakes.rows()) == 12


@pytest.mark.parametrize("partition", [None, "k", "hour(at)", "n, day(at)"])
def test_joined_files_have_the_same_rows(
    lakes: LakeBench, monkeypatch: pytest.MonkeyPatch, partition: str | None
) -> None:
    given = [row("a", 0, at(3, 7)), row("Zoë / 50 % = ☃", 1, at(4, 7)), row(None, 1, None)]
    target = lake(lakes.name, partition=partition)
    made = LakeStore(lakes.folder / "lake", target, TIMED)
    made.open(OWNER)
    for number in range(3):
        made.commit(lakes.batch(number, given, columns=TIMED))
    more = (*TIMED, Column("city", TEXT, nullable=True))
    made = LakeStore(lakes.folder / "lake", target, more)
    made.open(OWNER)
    monkeypatch.setattr(store, "TIDY_EVERY", 1)
    made.commit(lakes.batch(3, [one | {"city": "Ulm"} for one in given], columns=more))
    made.tidy()

    expected = [one | {"city": city} for one in given for city in (None, None, None, "Ulm")]
    assert sorted(lakes.rows(more), key=repr) == sorted(expected, key=repr)
    values = {None: 1, "k": 3, "hour(at)": 3, "n, day(at)": 3}
    assert len(_uris(lakes)) == values[partition]


@pytest.mark.parametrize("kind", [LakeBench, KeyedBench])
def test_two_flows_write_and_tidy_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[LakeBench]
) -> None:
    monkeypatch.setattr(store, "TIDY_EVERY", 3)
    bench = kind(tmp_path)

    def flow(name: str) -> None:
        made = LakeStore(tmp_path / "lake", bench.target(), SMALL)
        made.open(f"bank/v1/{name}")
        for number in range(15):
            made.commit(bench.batch(number, [{"k": f"{name}{number}", "n": number}], flow=name))
            made.tidy()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(flow, ["one", "other"]))
    assert by_key(bench.rows()) == by_key([{"k": f"{f}{n}", "n": n} for f in ("one", "other") for n in range(15)])


def test_of_two_who_tidy_at_the_same_moment_one_does(lakes: LakeBench) -> None:
    one, other = (LakeStore(lakes.folder / "lake", lakes.target(), SMALL) for _ in range(2))
    one.open("bank/v1/one")
    other.open("bank/v1/other")
    for number in range(4):
        one.commit(lakes.batch(number, [{"k": "a", "n": number}]))
    seen = one._mine(), other._mine()
    one._join_files(seen[0])
    with pytest.raises(CommitFailedError):
        other._join_files(seen[1])
    assert [found["n"] for found in by_key(lakes.rows())] == [0, 1, 2, 3]
    assert len(list(lakes.path.glob("*.parquet"))) == 5  # four for readers of older versions, and the large one


def test_rows_that_others_only_marked_as_deleted_do_not_come_back(lakes: LakeBench) -> None:
    made = lakes.store()
    for number in range(2):
        made.commit(lakes.batch(number, [{"k": "a", "n": number}]))
    assert len(lake_tidy.groups(lakes.table)) == 1
    lakes.table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    assert lake_tidy.groups(lakes.table) == []


def test_large_files_are_left_and_none_grows_for_ever(lakes: LakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lakes.store()
    for number in range(9):
        made.commit(lakes.batch(number, [{"k": "a", "n": number}]))
    size = Path(_uris(lakes)[0]).stat().st_size
    monkeypatch.setattr(lake_tidy, "SMALL", size + 10)
    monkeypatch.setattr(lake_tidy, "LARGE", 4 * size + 10)
    assert [len(group.paths) for group in lake_tidy.groups(lakes.table)] == [4, 4]
    monkeypatch.setattr(lake_tidy, "SMALL", size - 10)
    assert lake_tidy.groups(lakes.table) == []


def test_notes_outlive_checkpoints_of_the_log(lakes: LakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHECKPOINT_EVERY", 3)
    made = lakes.store()
    for number in range(8):
        made.commit(lakes.batch(number, [{"k": "a", "n": number}]))
    assert list((lakes.path / "_delta_log").glob("*.checkpoint.parquet"))
    again = lakes.store()
    again.commit(lakes.batch(7, [{"k": "again", "n": 7}]))
    assert len(lakes.rows()) == 8
    with pytest.raises(Fenced):
        made.commit(lakes.batch(8, [{"k": "b", "n": 8}]))


def test_a_refused_batch_leaves_no_files(lakes: LakeBench) -> None:
    with lakes.driver(lakes.batch(0, [{"k": "a", "n": 1}]), failpoint="after-rows@0@stop") as zombie:
        zombie.await_stop()
        assert len(list(lakes.path.glob("*.parquet"))) == 1
        lakes.store()
        assert zombie.go_on() == "fenced"
    assert list(lakes.path.glob("*.parquet")) == []
