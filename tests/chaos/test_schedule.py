"""The schedule: the same seed, the same faults; another seed, others."""

from __future__ import annotations

from itertools import islice

from headrace.chaos.faults import FAULTS
from headrace.chaos.schedule import schedule


def shown(seed: int, count: int = 300) -> list[tuple[str, float, float]]:
    return [(str(one), one.after, one.chance.random()) for one in islice(schedule(seed), count)]


def test_a_seed_gives_the_same_faults_each_time() -> None:
    assert shown(7) == shown(7)
    assert shown(7) != shown(8)


def test_every_kind_of_fault_has_its_turn() -> None:
    assert {one.fault.name for one in islice(schedule(7), 1000)} == FAULTS.keys()


def test_faults_that_are_wanted_come_in_turn_and_unwanted_ones_never() -> None:
    wanted = [one.fault.name for one in islice(schedule(7, ("cut", "poison")), 4)]
    assert wanted == ["cut", "poison", "cut", "poison"]
    assert "cut" not in {one.fault.name for one in islice(schedule(7, without=("cut",)), 300)}
