"""Views of two tables: after every batch the view is the join of the current tables, in net changes only."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import settle, table, view_join
from headrace.steps.change import DELETE, INSERT, NO_VERSION, UPDATE, Change
from headrace.steps.row import USED
from headrace.steps.version import Version
from headrace.steps.view_join import Answer, Link, Spec
from tests.properties import examples

KEEP = 1_000_000
Rows = dict[Any, tuple[Any, ...]]
Changes = dict[Any, Change]
ForeignKey = Callable[[tuple[Any, ...]], Any]


class Table:
    """A table by key, and the rows that a reader of its changes would have."""

    def __init__(self, keep: int = KEEP) -> None:
        self.spec, self.states = table.Spec(keep=keep), {}
        self.rows: Rows = {}

    def take(self, versions: list[tuple[Any, Version]], watermark: int | None = None) -> Changes:
        for key, version in versions:
            assert table.step(self.spec, self.states.setdefault(key, table.State()), version) == USED
        told: Changes = {}
        for key in {key for key, _ in versions} | due_keys(table, self.spec, self.states, watermark):
            changes, _ = table.on_time(self.spec, self.states[key], watermark)
            told |= {key: changes[0]} if changes else {}
        drop_empty(self.states)
        apply(self.rows, told)
        return told


class View:
    """The three steps of a view, as an engine wires them; messages of a batch come in any order."""

    def __init__(self, spec: Spec, foreign_key: ForeignKey, chance: random.Random, keep: int = KEEP) -> None:
        self.spec, self.foreign_key, self.chance = spec, foreign_key, chance
        self.settle = settle.Spec(keep=keep)
        self.by_foreign_key: dict[Any, view_join.State] = {}
        self.by_output_key: dict[Any, settle.State] = {}
        self.rows: Rows = {}
        self.versions: dict[Any, int] = {}

    def take(self, left: Changes, right: Changes, watermark: int | None = None) -> Changes:
        messages: list[tuple[Any, Link | Change]] = list(right.items())
        answers: list[Answer] = []
        for key, change in left.items():
            links, at_once = view_join.links(self.spec, key, change, self._key(change.before), self._key(change.after))
            messages += links
            answers += at_once
        self.chance.shuffle(messages)
        for key, message in messages:
            state = self.by_foreign_key.setdefault(key, view_join.State())
            take = view_join.step if isinstance(message, Link) else view_join.learn
            verdict, made = take(self.spec, state, message)  # type: ignore[arg-type]
            assert verdict == USED
            assert view_join.due(self.spec, state) is None
            assert view_join.on_time(self.spec, state, watermark) == ([], 0)
            answers += made
        drop_empty(self.by_foreign_key)
        self.chance.shuffle(answers)
        return self._settle(answers, watermark)

    def _settle(self, answers: list[Answer], watermark: int | None) -> Changes:
        for answer in answers:
            assert settle.step(self.settle, self.by_output_key.setdefault(answer.key, settle.State()), answer) == USED
        told: Changes = {}
        touched = {answer.key for answer in answers}
        for key in touched | due_keys(settle, self.settle, self.by_output_key, watermark):
            state = self.by_output_key[key]
            changes, _ = settle.on_time(self.settle, state, watermark)
            assert settle.on_time(self.settle, state, watermark) == ([], 0)
            assert len(changes) <= 1
            told |= {key: changes[0]} if changes else {}
        drop_empty(self.by_output_key)
        for key, change in told.items():
            assert change.version > self.versions.get(key, NO_VERSION)
            self.versions[key] = change.version
        for key in self.versions.keys() - self.by_output_key.keys():
            del self.versions[key]  # forgotten
        apply(self.rows, told)
        return told

    def _key(self, row: tuple[Any, ...] | None) -> Any:
        return None if row is None else self.foreign_key(row)


def due_keys(step: Any, spec: Any, states: dict[Any, Any], watermark: int | None) -> set[Any]:
    dues = {key: step.due(spec, state) for key, state in states.items()}
    return {key for key, due in dues.items() if due is not None and watermark is not None and due <= watermark}


def drop_empty(states: dict[Any, Any]) -> None:
    for key in [key for key, state in states.items() if state.empty]:
        del states[key]


def apply(rows: Rows, changes: Changes) -> None:
    """What a reader of the changes does; every change fits what the reader has."""
    for key, change in changes.items():
        assert rows.get(key) == change.before
        assert change.before != change.after
        assert change.op == (INSERT if change.before is None else DELETE if change.after is None else UPDATE)
        if change.after is None:
            del rows[key]
        else:
            rows[key] = change.after


def joined(spec: Spec, left: Rows, right: Rows, foreign_key: ForeignKey) -> Rows:
    """The join of two tables, from scratch."""
    found: Rows = {}
    for key, row in left.items():
        partner = None if foreign_key(row) is None else right.get(foreign_key(row))
        if partner is not None:
            found[key] = row + partner
        elif spec.outer:
            found[key] = row + (None,) * spec.width
    return found


def version(time: int, values: tuple[Any, ...] | None, offset: int = 0) -> Version:
    return Version((time, 0, 0, offset, ""), values)


def user_of(order: tuple[Any, ...]) -> Any:
    return order[0]


class Shop:
    """Orders (user, amount) joined to users (name, city)."""

    def __init__(self, outer: bool = True) -> None:
        self.orders, self.users, self.time = Table(), Table(), 0
        self.view = View(Spec(outer=outer, width=2), user_of, random.Random(1))

    def batch(
        self, orders: dict[str, Any] | None = None, users: dict[str, Any] | None = None, watermark: int | None = None
    ) -> Changes:
        self.time += 1
        left = self.orders.take([(key, version(self.time, row)) for key, row in (orders or {}).items()], watermark)
        right = self.users.take([(key, version(self.time, row)) for key, row in (users or {}).items()], watermark)
        return self.view.take(left, right, watermark)


def test_j5_a_rename_reaches_every_row_that_points_to_it() -> None:
    shop = Shop()
    shop.batch({"o1": ("u1", 5), "o2": ("u1", 7), "o3": ("u2", 9)}, {"u1": ("Ann", "Bonn"), "u2": ("Bob", "Kiel")})

    told = shop.batch(users={"u1": ("Anna", "Bonn")})

    assert told == {
        "o1": Change(UPDATE, ("u1", 5, "Ann", "Bonn"), ("u1", 5, "Anna", "Bonn"), 2),
        "o2": Change(UPDATE, ("u1", 7, "Ann", "Bonn"), ("u1", 7, "Anna", "Bonn"), 2),
    }


def test_j5_a_foreign_key_change_moves_the_row_in_one_change() -> None:
    shop = Shop()
    shop.batch({"o1": ("u1", 5)}, {"u1": ("Ann", "Bonn"), "u2": ("Bob", "Kiel")})

    told = shop.batch({"o1": ("u2", 5)}, {"u1": ("Anna", "Bonn")})

    assert told == {"o1": Change(UPDATE, ("u1", 5, "Ann", "Bonn"), ("u2", 5, "Bob", "Kiel"), 2)}
    assert shop.batch(users={"u1": ("Annie", "Bonn")}) == {}  # nobody points to her any more


@pytest.mark.parametrize("outer", [True, False])
def test_j5_a_left_row_without_partner_stays_only_in_a_left_join(outer: bool) -> None:
    shop = Shop(outer)

    told = shop.batch({"o1": ("u1", 5)})

    assert told == ({"o1": Change(INSERT, None, ("u1", 5, None, None), 1)} if outer else {})
    assert shop.batch(users={"u1": ("Ann", "Bonn")})["o1"].after == ("u1", 5, "Ann", "Bonn")
    assert shop.batch(users={"u1": None})["o1"].after == (("u1", 5, None, None) if outer else None)


def test_j5_a_deleted_left_row_is_removed() -> None:
    shop = Shop()
    shop.batch({"o1": ("u1", 5)}, {"u1": ("Ann", "Bonn")})

    assert shop.batch({"o1": None}) == {"o1": Change(DELETE, ("u1", 5, "Ann", "Bonn"), None, 2)}
    assert shop.batch(users={"u1": ("Anna", "Bonn")}) == {}


@pytest.mark.parametrize("outer", [True, False])
def test_j5_a_null_key_joins_nothing(outer: bool) -> None:
    shop = Shop(outer)
    shop.batch({"o1": (None, 5)}, {None: ("Nobody", "Nowhere")})

    assert shop.view.rows == ({"o1": (None, 5, None, None)} if outer else {})
    shop.batch({"o1": ("u1", 5)}, {"u1": ("Ann", "Bonn")})
    shop.batch({"o1": (None, 6)})
    assert shop.view.rows == ({"o1": (None, 6, None, None)} if outer else {})


def test_j5_what_comes_back_to_where_it_was_is_no_change() -> None:
    shop = Shop(outer=False)
    shop.batch({"o1": ("u1", 5)})

    assert shop.batch({"o1": ("u2", 5)}) == {}
    assert shop.batch({"o1": ("u1", 5)}, {"u1": ("Ann", "Bonn")})["o1"].op == INSERT


def test_j5_versions_grow_though_the_right_table_is_dated_earlier() -> None:
    view = View(Spec(outer=True, width=1), user_of, random.Random(1))
    view.take({"o1": Change(INSERT, None, ("u1", 5), 100)}, {})
    view.take({}, {"u1": Change(INSERT, None, ("Ann",), 50)})
    view.take({}, {"u1": Change(UPDATE, ("Ann",), ("Anna",), 60)})

    assert view.versions == {"o1": 102}


def test_j5_the_greatest_cause_settles_whatever_comes_first() -> None:
    spec = settle.Spec(keep=KEEP)
    answers = [Answer("o", (7, 6), ("Annie",)), Answer("o", (9, 2), ("Bob",)), Answer("o", (9, NO_VERSION), None)]

    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]):
        state = settle.State()
        for at in order:
            settle.step(spec, state, answers[at])
        assert settle.on_time(spec, state, None) == ([Change(INSERT, None, ("Bob",), 9)], 0)


def test_j5_an_answer_stands_only_against_those_of_its_own_batch() -> None:
    """Where a deletion was forgotten by the table, its key can come back with a smaller version."""
    spec, state = settle.Spec(keep=KEEP), settle.State()
    settle.step(spec, state, Answer("o", (9, 2), ("Bob",)))
    settle.on_time(spec, state, None)

    settle.step(spec, state, Answer("o", (5, 2), ("Ann",)))

    assert settle.on_time(spec, state, None) == ([Change(UPDATE, ("Bob",), ("Ann",), 10)], 0)


def test_j5_a_right_row_that_returns_with_a_smaller_version_stands_against_its_deletion() -> None:
    spec, state = Spec(outer=False, width=1), view_join.State()
    view_join.step(spec, state, Link("o1", 1, ("u1",)))
    view_join.learn(spec, state, Change(DELETE, ("Ann",), None, 20))

    (before,) = view_join.step(spec, state, Link("o1", 2, ("u1",)))[1]
    (after,) = view_join.learn(spec, state, Change(INSERT, None, ("Ann",), 15))[1]

    assert (before.values, after.values) == (None, ("u1", "Ann"))
    assert after.cause > before.cause


def test_j5_a_deleted_key_is_forgotten_when_its_time_is_up() -> None:
    shop = Shop()
    shop.batch({"o1": ("u1", 5)})
    shop.batch({"o1": None}, watermark=0)
    assert set(shop.view.by_output_key) == {"o1"}

    shop.batch(watermark=1_000)
    assert set(shop.view.by_output_key) == {"o1"}
    shop.batch(watermark=1_001)
    assert shop.view.by_output_key == {}
    assert shop.view.by_foreign_key == {}
    assert shop.orders.states == {}


def test_the_specs_are_plain_json() -> None:
    assert Spec(outer=True, width=2).as_json() == {"step": "view_join", "outer": True, "width": 2}
    assert settle.Spec(keep=5).as_json() == {"step": "settle", "keep": 5}


KEYS = ["a", "b", "c"]
NEXT = st.sampled_from([*KEYS, None])
ROW = st.one_of(st.none(), st.tuples(NEXT, st.integers(0, 1)))
VERSIONS = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 30), ROW), max_size=4)


def dated(batch: list[tuple[str, int, Any]], offset: int) -> list[tuple[str, Version]]:
    return [(key, version(time, row, offset + n)) for n, (key, time, row) in enumerate(batch)]


def current(versions: list[tuple[str, Version]]) -> Rows:
    """The tables, from all versions."""
    latest: dict[str, Version] = {}
    for key, one in versions:
        if key not in latest or one.order > latest[key].order:
            latest[key] = one
    return {key: one.values for key, one in latest.items() if one.values is not None}


@examples(150)
@given(st.lists(st.tuples(VERSIONS, VERSIONS), max_size=7), st.booleans(), st.randoms(use_true_random=False))
def test_j5_after_every_batch_the_view_is_the_join_of_the_current_tables(
    batches: list[tuple[Any, Any]], outer: bool, chance: random.Random
) -> None:
    spec, left, right = Spec(outer=outer, width=2), Table(), Table()
    view = View(spec, user_of, chance)
    lefts: list[tuple[str, Version]] = []
    rights: list[tuple[str, Version]] = []
    for number, (some, others) in enumerate(batches):
        lefts += dated(some, 10 * number)
        rights += dated(others, 10 * number)

        view.take(left.take(dated(some, 10 * number)), right.take(dated(others, 10 * number)))

        assert left.rows == current(lefts)
        assert right.rows == current(rights)
        assert view.rows == joined(spec, current(lefts), current(rights), user_of)
    assert set(view.by_foreign_key) == set(right.rows) | {row[0] for row in left.rows.values() if row[0] is not None}


@examples(150)
@given(
    st.lists(st.tuples(VERSIONS, VERSIONS, st.integers(0, 12)), max_size=8),
    st.integers(0, 12),
    st.randoms(use_true_random=False),
)
def test_j5_tables_that_forget_deletions_and_the_view_still_agree(
    batches: list[tuple[Any, Any, int]], keep: int, chance: random.Random
) -> None:
    """A version older than a forgotten deletion brings the row back, in the table and in the view."""
    spec, left, right = Spec(outer=False, width=2), Table(keep * 1_000), Table(keep * 1_000)
    view = View(spec, user_of, chance, keep * 1_000)
    watermark = -1
    for number, (some, others, rise) in enumerate(batches):
        watermark += rise
        lefts, rights = ([(key, time * 1_000, row) for key, time, row in side] for side in (some, others))
        changes = left.take(dated(lefts, 10 * number), watermark), right.take(dated(rights, 10 * number), watermark)
        view.take(*changes, watermark)

        assert view.rows == joined(spec, left.rows, right.rows, user_of)
    view.take(left.take([], 10**6), right.take([], 10**6), 10**6)
    assert set(left.states) == set(left.rows)  # nothing is left of what was deleted
    assert set(view.by_output_key) == set(view.rows)


@examples(80)
@given(st.lists(VERSIONS, max_size=7), st.booleans(), st.randoms(use_true_random=False))
def test_j5_a_self_join_is_two_inputs(batches: list[Any], outer: bool, chance: random.Random) -> None:
    """Each row points to another row of the same table, or to itself."""
    spec, people = Spec(outer=outer, width=2), Table()
    view = View(spec, user_of, chance)
    for number, batch in enumerate(batches):
        changes = people.take(dated(batch, 10 * number))
        view.take(changes, changes)

        assert view.rows == joined(spec, people.rows, people.rows, user_of)


@examples(80)
@given(st.lists(st.tuples(VERSIONS, VERSIONS, VERSIONS), max_size=6), st.booleans(), st.randoms(use_true_random=False))
def test_j5_a_view_can_be_the_left_table_of_another(
    batches: list[tuple[Any, Any, Any]], outer: bool, chance: random.Random
) -> None:
    """Orders point to users, and by their user's first column to a third table."""
    spec, tables = Spec(outer=outer, width=2), (Table(), Table(), Table())
    first, second = View(spec, user_of, chance), View(spec, lambda row: row[2], chance)
    for number, batch in enumerate(batches):
        changes = [one.take(dated(some, 10 * number)) for one, some in zip(tables, batch, strict=True)]
        second.take(first.take(changes[0], changes[1]), changes[2])

        inner = joined(spec, tables[0].rows, tables[1].rows, user_of)
        assert second.rows == joined(spec, inner, tables[2].rows, lambda row: row[2])


@examples(60)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(KEYS), st.integers(0, 30), ROW), max_size=20), st.data())
def test_r4_the_view_is_the_same_under_every_schedule(events: list[Any], data: st.DataObject) -> None:
    """Same versions, other batches: other changes on the way, the same view in the end."""
    ends = []
    for cuts in (data.draw(st.lists(st.integers(0, len(events)), max_size=5)), list(range(len(events)))):
        left, right = Table(), Table()
        view = View(Spec(outer=True, width=2), user_of, random.Random(2))
        start = 0
        for end in [*sorted(cuts), len(events)]:
            batch = [(is_left, key, version(time, row, start + n))
                     for n, (is_left, key, time, row) in enumerate(events[start:end])]  # fmt: skip
            view.take(
                left.take([(key, one) for is_left, key, one in batch if is_left]),
                right.take([(key, one) for is_left, key, one in batch if not is_left]),
            )
            start = end
        ends.append(view.rows)

    assert ends[0] == ends[1]
