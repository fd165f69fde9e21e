"""A disk that fills up under the lake or under files: a loud stop, no half batch, and then it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_disk import on_small_disk

WRITE_UNTIL_FULL = """
import shutil
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from deltalake import DeltaTable
from headrace.base.errors import DiskFull
from headrace.base.ids import random_id
from headrace.expr.types import INT, TEXT, Column
from headrace.model.target import files, lake
from headrace.stores import lake as store
from headrace.stores.files import FilesStore
from headrace.stores.lake import LakeStore
from headrace.stores.store import Batch

disk, beside, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
TARGETS = {"append": lake("t"), "split": lake("t", partition="n"), "key": lake("t", key="k"), "files": files("t")}
COLUMNS = (Column("k", TEXT), Column("n", INT))
ROWS = 300
store.CHECKPOINT_EVERY = 4  # so that the disk can fill up while one is written

def batch(number):
    rows = {"k": [random_id() for _ in range(ROWS)], "n": [n % 2 for n in range(ROWS)]}
    extra = {"key": {"_gone": [False] * ROWS, "_time": [0] * ROWS}, "files": {"_id": rows["k"]}}.get(kind, {})
    file = beside / f"{number}.parquet"
    pq.write_table(pa.table(rows | extra), file)
    return Batch(flow="q", number=number, files=(file,))

def there():
    plain = kind == "files"
    found = (disk / "t").glob("*.parquet") if plain else DeltaTable(str(disk / "t")).file_uris()
    return sum(pq.read_table(file).num_rows for file in found)

def fill(room):
    with (disk / "ballast").open("wb", buffering=0) as out:
        try:
            while out.write(b"x" * 4096):
                pass
        except OSError:
            out.truncate(out.tell() - room)

def run(room):
    made = (FilesStore if kind == "files" else LakeStore)(disk, TARGETS[kind], COLUMNS)
    made.open("o")
    made.commit(batch(0))
    fill(room)
    number = 0
    try:
        while number < 200:
            number += 1
            made.commit(batch(number))
    except DiskFull as full:
        print(full.code, full.what, sep="|")
    sure = there()
    assert sure in (number * ROWS, (number + 1) * ROWS), (sure, number)  # it may be full only after the commit
    (disk / "ballast").unlink()
    made.commit(batch(number))
    assert there() >= sure
    made.commit(batch(number + 1))
    assert there() == (number + 2) * ROWS, (there(), number)
    if kind in ("append", "split"):
        known = {Path(file).name for file in DeltaTable(str(disk / "t")).file_uris()}
        left = {file.name for file in (disk / "t").rglob("*.parquet") if "_delta_log" not in file.parts}
        assert left == known, left - known

for room in map(int, sys.argv[4:]):
    run(room)
    shutil.rmtree(disk / "t")
"""


@pytest.mark.parametrize("kind", ["append", "split", "key", "files"])
def test_a_full_disk_stops_the_flow_and_space_lets_it_go_on(tmp_path: Path, kind: str) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "staged").mkdir()
    rooms = (0, 12_288, 20_480, 40_960, 65_536)  # so that it is full at other moments
    said = on_small_disk("1m", tmp_path / "disk", WRITE_UNTIL_FULL, tmp_path / "staged", kind, *rooms).splitlines()
    assert [line.split("|")[0] for line in said] == ["disk-full"] * len(rooms)
    assert "t cannot be written: the disk is full" in said[0]
