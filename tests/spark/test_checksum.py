"""Checksums as Spark and Hadoop write them."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest

from headrace.spark.checksum import check, crc32c, hadoop_sum_file, replace, sum_file


@pytest.mark.parametrize(
    ("data", "known"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_crc32c_gives_the_known_values(data: bytes, known: int) -> None:
    assert crc32c(data) == known  # RFC 3720, B.4


def test_a_file_that_was_replaced_is_good_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "7"
    file.write_text("old")
    assert check(file) == "unchecked"

    replace(file, "new")

    assert (file.read_text(), check(file)) == ("new", "good")
    assert json.loads(sum_file(file).read_text())["mainFileSize"] == 3
    file.write_text("nem")
    assert check(file) == "bad"
    replace(file, "new")
    sum_file(file).write_text("{")
    assert check(file) == "bad"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["7", "7.crc"]


def test_hadoops_sums_are_of_chunks(tmp_path: Path) -> None:
    file, data = tmp_path / "1.sst", bytes(range(256)) * 5
    file.write_bytes(data)
    sums = [zlib.crc32(data[at : at + 512]) for at in (0, 512, 1024)]
    hadoop_sum_file(file).write_bytes(b"crc\0" + struct.pack(">iIII", 512, *sums))
    assert check(file) == "good"

    file.write_bytes(data[:-1])
    assert check(file) == "bad"
    file.write_bytes(data)
    hadoop_sum_file(file).write_bytes(b"crc\0")
    assert check(file) == "bad"
