"""Checksums beside the files of a checkpoint: Spark's own, one for a file, and Hadoop's, one for every 512 bytes.

`<file>.crc` is JSON with the CRC-32C and the size of the file; state stores have it from Spark, all else from
jvm/CheckedFiles.scala. `.<file>.crc` is Hadoop's, beside the tables of RocksDB: a header, then a CRC-32 for each chunk.
"""

from __future__ import annotations

import json
import struct
import sys
import time
import zlib
from array import array
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

State = Literal["good", "unchecked", "bad"]
"""`unchecked`: there is no checksum beside it."""

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected; zlib has CRC-32 only
_MAGIC = b"crc\0"


def sum_file(file: Path) -> Path:
    """Where Spark keeps a file's checksum."""
    return file.with_name(f"{file.name}.crc")


def hadoop_sum_file(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def check(file: Path) -> State:
    """Whether a file is what was written. A checksum that cannot be read is as bad as one that differs."""
    try:
        if (beside := sum_file(file)).exists():
            told = json.loads(beside.read_bytes())
            data = file.read_bytes()
            return "good" if (told["mainFileSize"], told["value"]) == (len(data), signed(crc32c(data))) else "bad"
        if (beside := hadoop_sum_file(file)).exists():
            return "good" if beside.read_bytes() == _hadoop(file.read_bytes(), beside.read_bytes()) else "bad"
    except (ValueError, KeyError, TypeError, struct.error):
        return "bad"
    return "unchecked"


def replace(file: Path, text: str) -> None:
    """Writes a file anew, with Spark's checksum. In this order, so that no crash leaves one that seems damaged."""
    data = text.encode()
    told = {"algorithm": "CRC32C", "value": signed(crc32c(data)), "mainFileSize": len(data)}
    told |= {"timestampMs": int(time.time() * 1000), "creator": {"executorId": "headrace", "taskInfo": ""}}
    sum_file(file).unlink(missing_ok=True)
    for to, content in ((file, data), (sum_file(file), json.dumps(told).encode())):
        fresh = to.with_name(f".{to.name}.tmp")
        fresh.write_bytes(content)
        fresh.replace(to)


def edit(file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes an entry of one of Spark's logs: the line after its version, which is a JSON object."""
    version, line, *rest = file.read_text().split("\n")
    replace(file, "\n".join((version, json.dumps(change(json.loads(line)), separators=(",", ":")), *rest)))


def _hadoop(data: bytes, told: bytes) -> bytes:
    """What Hadoop would have written beside this data, with the chunks that it says it has."""
    (chunk,) = struct.unpack_from(">i", told, len(_MAGIC))
    if chunk <= 0:
        raise ValueError(f"chunks of {chunk} bytes")
    sums = (zlib.crc32(data[at : at + chunk]) for at in range(0, len(data), chunk))
    return _MAGIC + struct.pack(">i", chunk) + b"".join(struct.pack(">I", found) for found in sums)


def signed(value: int) -> int:
    """As a Java int."""
    return value - (1 << 32) if value >> 31 else value


def crc32c(data: bytes) -> int:
    """Two bytes at a time: 20 MB a second, where no library has it."""
    table = _table()
    crc = 0xFFFFFFFF
    even = len(data) & ~1
    words = array("H", data[:even])
    if sys.byteorder == "big":
        words.byteswap()
    for word in words:
        crc = table[(crc ^ word) & 0xFFFF] ^ (crc >> 16)
    if even < len(data):
        crc = table[((crc ^ data[even]) & 0xFF) << 8] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> list[int]:
    """The sum of every two bytes. That of one byte is the sum of a zero and it."""
    found = []
    for start in range(1 << 16):
        crc = start
        for _ in range(16):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        found.append(crc)
    return found
