"""A copy of a checkpoint names its own files, and a damaged file in it stays damaged."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.spark import checksum
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_place import settle
from tests.spark.keeping import Kept, flip


def schemas(checkpoint: Checkpoint) -> list[str]:
    """The schemas that the state names."""
    files = [file for file in checkpoint.spark.glob("state/*/_metadata/v2/*") if file.name.isdigit()]
    assert files
    assert {checksum.check(file) for file in files} == {"good"}
    told = [json.loads(file.read_text().split("\n")[1]) for file in files]
    return [path for one in told for store in one["stateStoreInfo"] for path in store["stateSchemaFilePaths"]]


def test_a_copy_names_its_own_schemas(kept: Kept, tmp_path: Path) -> None:
    copy = kept.copy(tmp_path / "copy")
    before = schemas(copy)
    assert all(path.startswith(f"file:{kept.folder}") for path in before)
    copy.open(kept.flowing.flow).close()
    assert schemas(copy) == [path.replace(str(kept.folder), str(copy.folder)) for path in before]
    assert all(Path(path.removeprefix("file:")).exists() for path in schemas(copy))
    assert schemas(kept.flowing.checkpoint) == before  # nobody else's files are touched


def test_a_damaged_file_does_not_seem_whole_afterwards(kept: Kept, tmp_path: Path) -> None:
    copy = kept.copy(tmp_path / "copy")
    (file,) = copy.spark.glob("state/0/_metadata/v2/0")
    flip(file)
    damaged = file.read_bytes()
    settle(copy.spark)
    assert file.read_bytes() == damaged
    assert checksum.check(file) == "bad"
