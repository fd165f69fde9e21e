"""Plain Parquet files keep the contract of stores; a batch is one file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headrace.base.errors import StoreRefused
from headrace.expr.types import Columns
from headrace.model.output import Guarantee
from headrace.model.target import ParquetFiles, Target, files
from headrace.stores.files import FilesStore
from tests.stores.bench import SMALL, Bench, Row
from tests.stores.contract import A, Appended, B, C


class FilesBench(Bench):
    """A directory of its own."""

    def target(self, key: str = "k") -> ParquetFiles:
        return files(self.name)

    def recipe(self, target: Target, columns: Columns, guarantee: Guarantee) -> partial[Any]:
        return partial(FilesStore, self.folder / "files", target, columns, guarantee)

    def rows(self, columns: Columns = SMALL) -> list[Row]:
        found = [row for file in self.parquet for row in pq.read_table(file).to_pylist()]
        return [{c.name: row.get(c.name) for c in columns} for row in found]

    @property
    def path(self) -> Path:
        return self.folder / "files" / self.name

    @property
    def parquet(self) -> list[Path]:
        return sorted(self.path.glob("*.parquet"))


class TestFiles(Appended):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> FilesBench:
        return FilesBench(tmp_path)


@pytest.fixture
def bench(tmp_path: Path) -> FilesBench:
    return FilesBench(tmp_path)


def test_a_batch_is_one_file_with_the_stable_ids_of_its_rows(bench: FilesBench) -> None:
    bench.store().commit(bench.batch(7, [A, B], [C | {"_id": "mine"}]))
    (file,) = bench.parquet
    assert file.stem.endswith("-000000007")
    assert pq.read_table(file)["hr_id"].to_pylist() == ["id-0", "id-1", "mine"]


def test_nothing_but_data_lies_beside_the_data(bench: FilesBench) -> None:
    """So that `read_parquet('.../*.parquet')` reads all of it and nothing else."""
    with bench.driver(bench.batch(0, [A]), failpoint="after-rows@0") as driver:
        driver.await_death()
    bench.store().commit(bench.batch(0, [A]))
    assert [path.name for path in bench.path.iterdir() if path not in bench.parquet] == ["_headrace"]
    assert list((bench.path / "_headrace").glob("*.parquet")) == []  # what the dead driver left is removed


def test_a_place_that_cannot_be_written_is_told(bench: FilesBench) -> None:
    bench.path.parent.mkdir()
    bench.path.write_text("in the way")
    with pytest.raises(StoreRefused, match="cannot be written"):
        bench.store()
