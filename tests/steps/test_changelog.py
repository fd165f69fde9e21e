"""Aggregates over a changing table: after every batch each group is what its rows give from scratch."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import aggregate, changelog
from headrace.steps.change import DELETE, INSERT, NO_VERSION, UPDATE, Change
from headrace.steps.changelog import Delta, Spec
from headrace.steps.row import NAN, USED
from tests.properties import examples
from tests.steps.test_view_join import KEYS, Changes, Rows, Table, apply, dated, drop_empty, due_keys

KEEP = 1_000_000
COUNT = aggregate.Spec(name="rows", kind="count")
SUM = aggregate.Spec(name="total", kind="sum", of="int")
SPEC = Spec(keep=KEEP, aggregates=(COUNT, SUM))
ALL = Spec(
    keep=KEEP,
    aggregates=(
        COUNT,
        SUM,
        aggregate.Spec(name="least", kind="min", of="int"),
        aggregate.Spec(name="most", kind="max", of="int"),
        aggregate.Spec(name="kinds", kind="distinct", of="int"),
        aggregate.Spec(name="best", kind="top", of="int", n=2),
        aggregate.Spec(name="mean", kind="avg", of="int"),
    ),
)


class Grouped:
    """Rows (group, value) of a table, by group; the groups that a reader of the changes would have."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.states, self.dead = spec, {}, 0
        self.rows: Rows = {}
        self.versions: dict[Any, int] = {}

    def take(self, changes: Changes, watermark: int | None = None) -> Changes:
        touched = set()
        for change in changes.values():
            for group, delta in changelog.deltas(
                self._placed(change.before), self._placed(change.after), change.version
            ):
                verdict = changelog.step(self.spec, self.states.setdefault(group, changelog.State()), delta)
                assert verdict in (USED, NAN)
                self.dead += verdict == NAN
                touched.add(group)
        told: Changes = {}
        for group in touched | due_keys(changelog, self.spec, self.states, watermark):
            made, used = changelog.on_time(self.spec, self.states[group], watermark)
            assert used == 0
            assert changelog.on_time(self.spec, self.states[group], watermark) == ([], 0)
            assert len(made) <= 1
            told |= {group: made[0]} if made else {}
        drop_empty(self.states)
        for group, change in told.items():
            assert change.version > self.versions.get(group, NO_VERSION)
            self.versions[group] = change.version
        apply(self.rows, told)
        return told

    def _placed(self, row: tuple[Any, ...] | None) -> tuple[Any, tuple[Any, ...]] | None:
        return None if row is None else (row[0], (row[1],) * len(self.spec.aggregates))


def insert(group: str, value: Any, version: int = 1) -> Change:
    return Change(INSERT, None, (group, value), version)


def test_j5_a_retraction_subtracts_and_an_empty_group_is_removed() -> None:
    groups = Grouped(SPEC)

    assert groups.take({"u1": insert("DE", 10), "u2": insert("DE", 5)}) == {"DE": Change(INSERT, None, (2, 15), 1)}
    assert groups.take({"u1": Change(UPDATE, ("DE", 10), ("FR", 10), 2)}) == {
        "DE": Change(UPDATE, (2, 15), (1, 5), 2),
        "FR": Change(INSERT, None, (1, 10), 2),
    }
    assert groups.take({"u2": Change(DELETE, ("DE", 5), None, 3)}) == {"DE": Change(DELETE, (1, 5), None, 3)}


def test_j5_a_group_of_nulls_is_not_empty() -> None:
    assert Grouped(SPEC).take({"u1": insert("DE", None)}) == {"DE": Change(INSERT, None, (1, None), 1)}


def test_j5_a_batch_that_leaves_a_group_as_it_was_tells_nothing() -> None:
    groups = Grouped(SPEC)
    groups.take({"u1": insert("DE", 10), "u2": insert("FR", 10)})

    swap = {"u1": Change(UPDATE, ("DE", 10), ("FR", 10), 2), "u2": Change(UPDATE, ("FR", 10), ("DE", 10), 2)}

    assert groups.take(swap) == {}


def test_j5_a_removed_group_is_forgotten_when_its_time_is_up() -> None:
    groups = Grouped(SPEC)
    groups.take({"u1": insert("DE", 10)}, 0)
    groups.take({"u1": Change(DELETE, ("DE", 10), None, 2_000)}, 2)

    groups.take({}, 1_001)
    assert set(groups.states) == {"DE"}
    groups.take({}, 1_002)
    assert groups.states == {}


def test_versions_of_a_group_grow_though_its_rows_are_dated_in_any_order() -> None:
    groups = Grouped(SPEC)
    groups.take({"u1": insert("DE", 10, 50)})
    groups.take({"u2": insert("DE", 10, 40)})
    assert groups.versions == {"DE": 51}

    groups.take({"u3": insert("DE", 10, 60), "u4": insert("DE", 10, 55)})
    assert groups.versions == {"DE": 60}


def test_b3_a_row_with_no_number_is_a_dead_letter_and_takes_nothing_with_it() -> None:
    groups = Grouped(Spec(keep=KEEP, aggregates=(COUNT, aggregate.Spec(name="total", kind="sum", of="float"))))
    groups.take({"u1": insert("DE", 1.5)})

    assert groups.take({"u2": insert("DE", math.nan, 2)}) == {}
    assert groups.dead == 1
    groups.take({"u2": Change(UPDATE, ("DE", math.nan), ("DE", 2.0), 3)})
    assert groups.rows == {"DE": (2, 3.5)}
    assert groups.dead == 1


def test_d5_a_total_too_great_for_its_type_is_null_while_that_lasts() -> None:
    groups = Grouped(SPEC)
    groups.take({"u1": insert("DE", 2**63 - 1), "u2": insert("DE", 1)})
    assert groups.rows == {"DE": (2, None)}

    groups.take({"u2": Change(DELETE, ("DE", 1), None, 2)})
    assert groups.rows == {"DE": (1, 2**63 - 1)}


def test_deltas_of_a_row_are_what_leaves_and_what_enters() -> None:
    assert changelog.deltas(None, ("DE", (1,)), 7) == [("DE", Delta(True, (1,), 7))]
    assert changelog.deltas(("DE", (1,)), None, 7) == [("DE", Delta(False, (1,), 7))]
    assert changelog.deltas(("DE", (1,)), ("DE", (2,)), 7) == [
        ("DE", Delta(False, (1,), 7)),
        ("DE", Delta(True, (2,), 7)),
    ]
    assert changelog.deltas(("DE", (1,)), ("DE", (1,)), 7) == []


def test_the_spec_is_plain_json() -> None:
    assert SPEC.as_json() == {"step": "changelog", "keep": KEEP, "aggregates": [COUNT.as_json(), SUM.as_json()]}


def recomputed(table: Rows) -> Rows:
    groups: dict[Any, list[Any]] = {}
    for group, value in table.values():
        groups.setdefault(group, []).append(value)
    found: Rows = {}
    for group, values in groups.items():
        known = sorted(value for value in values if value is not None)
        found[group] = (
            len(values),
            sum(known) if known else None,
            known[0] if known else None,
            known[-1] if known else None,
            len(set(known)),
            known[::-1][:2],
            sum(known) / len(known) if known else None,
        )
    return found


ROW = st.one_of(st.none(), st.tuples(st.sampled_from(["DE", "FR", None]), st.one_of(st.none(), st.integers(-2, 3))))
VERSIONS = st.lists(st.tuples(st.sampled_from([*KEYS, "d", "e"]), st.integers(0, 30), ROW), max_size=5)


@examples(150)
@given(st.lists(VERSIONS, max_size=8))
def test_j5_after_every_batch_each_group_is_what_its_rows_give(batches: list[Any]) -> None:
    table, groups = Table(), Grouped(ALL)
    for number, batch in enumerate(batches):
        groups.take(table.take(dated(batch, 10 * number)))

        assert groups.rows == recomputed(table.rows)
        assert groups.dead == 0
