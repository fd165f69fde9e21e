"""HyperLogLog: the named hash, the error, and merging as if added."""

from __future__ import annotations

import pytest

from headrace.steps import hll


def registers(values: range) -> hll.Registers:
    found: hll.Registers = {}
    for value in values:
        hll.add(found, hll.hash64(str(value).encode()))
    return found


@pytest.mark.parametrize(
    ("data", "fnv"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_the_hash_is_fnv1a_then_the_finaliser_of_splitmix64(data: bytes, fnv: int) -> None:
    """The FNV values are those its authors publish; the finaliser is written out here once more."""
    mask = (1 << 64) - 1
    mixed = ((fnv ^ (fnv >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask

    assert hll.hash64(data) == mixed ^ (mixed >> 31)


@pytest.mark.parametrize("count", [0, 1, 2, 10, 100, 1_000, 10_000, 100_000])
def test_estimates_are_near(count: int) -> None:
    assert hll.estimate(registers(range(count))) == pytest.approx(count, rel=0.05)


def test_merged_sketches_are_the_sketch_of_all_values() -> None:
    left, right = registers(range(600)), registers(range(400, 1_000))

    hll.merge(left, right)

    assert left == registers(range(1_000))


def test_ranks_stay_in_their_range() -> None:
    found: hll.Registers = {}
    hll.add(found, 0)
    hll.add(found, (1 << 64) - 1)

    assert found == {0: hll.Q + 1, hll.M - 1: 1}
