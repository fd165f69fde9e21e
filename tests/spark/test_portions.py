"""Portions: rows of a key and slice come together in one place, however many there are and however alike keys look."""

from __future__ import annotations

import random

from headrace.spark.session import Spark


def test_every_key_and_slice_has_a_portion_of_its_own(spark: Spark) -> None:
    chance = random.Random(7)
    portions = spark.jvm.Portions(2)
    base = spark.session._jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET  # type: ignore[union-attr]
    # Of every length from none on, each a beginning of longer ones; and slices in which the same keys come again.
    keys = [bytes([letter]) * length for letter in (0, 7, 255) for length in range(80)]
    wanted: dict[tuple[int, bytes], list[int]] = {}
    for _ in range(4_000):
        start, key = chance.choice((-60_000_000, 0, 1, 60_000_000, 1 << 60)), chance.choice(keys)
        numbered = wanted.setdefault((start, key), [len(wanted), 0])
        numbered[1] += 1
        around = chance.randbytes(3)  # keys lie among other bytes
        assert portions.add(start, around + key + around, base + 3, len(key)) == numbered[0]

    assert portions.size() == len(wanted) > 1_000
    for (start, key), (number, rows) in wanted.items():
        assert (portions.start(number), portions.key(number), portions.rows(number)) == (start, key, rows)

    portions.clear()
    assert portions.size() == 0
    assert portions.add(0, b"again", base, 5) == 0
    assert (portions.key(0), portions.rows(0)) == (b"again", 1)
