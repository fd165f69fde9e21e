"""Rules J5 to J7 for tables and views, through a plan: the view is the join of the current tables, in net changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.base.clock import from_micros
from headrace.plan.plan import Plan, build
from headrace.reference.batch import Arrival, Batch, Tombstone
from headrace.reference.engine import Engine
from tests.properties import examples
from tests.reference.shop import Order, User, order, shop, user


def test_j5_a_view_follows_both_tables() -> None:
    with hr.testing.run(shop()[0]) as t:
        t.send(order(t, "10:00"), user(t, "10:01"), user(t, "10:02", name="Anna"), order(t, "10:03", amount=20))

        assert t.read("view", "order_id, amount, name") == [
            {"order_id": "o1", "amount": 10, "name": "Ann"},
            {"order_id": "o1", "amount": 10, "name": "Anna"},
            {"order_id": "o1", "amount": 20, "name": "Anna"},
        ]


def test_j5_there_is_one_net_change_per_key_and_batch() -> None:
    with hr.testing.run(shop()[0]) as t:
        t.batch(order(t, "10:00"), user(t, "10:00"), user(t, "10:01", name="Anna"), order(t, "10:02", amount=20))
        t.batch(order(t, "10:03", amount=30), order(t, "10:04", amount=20), user(t, "10:05", name="Anna"))

        assert t.read("view", "amount, name") == [{"amount": 20, "name": "Anna"}] * 2  # at and since have changed
        assert t.records("view")[1].time == t.time("10:05")


def test_j5_a_foreign_key_that_changes_moves_the_row() -> None:
    with hr.testing.run(shop()[0]) as t:
        t.send(user(t, "10:00"), user(t, "10:00", "u2", "Bob"), order(t, "10:01"), order(t, "10:02", user="u2"))
        t.send(user(t, "10:03", name="Anna"))
        assert [row.name for row in t.read("view")] == ["Ann", "Bob"]

        t.batch(user(t, "10:04", "u2", "Bobby"), order(t, "10:05", user="u1"))
        assert [row.name for row in t.table("view")] == ["Anna"]
        assert len(t.read("view")) == 3


def test_j5_null_keys_join_nothing() -> None:
    with hr.testing.run(shop()[0]) as t:
        t.send(user(t, "10:00"), order(t, "10:01"), order(t, "10:02", user=None))
        assert t.table("view") == []
    with hr.testing.run(shop("left")[0]) as t:
        t.send(user(t, "10:00"), order(t, "10:01"), order(t, "10:02", user=None), order(t, "10:03", "o2", "u9"))
        assert [(row.order_id, row.name) for row in t.table("view")] == [("o1", None), ("o2", None)]


@pytest.mark.parametrize(("how", "left"), [("inner", []), ("left", [("o1", None)])])
def test_j5_a_tombstone_removes(how: str, left: list[tuple[str, None]]) -> None:
    with hr.testing.run(shop(how)[0]) as t:
        t.send(user(t, "10:00"), order(t, "10:01"))
        t.delete(User, "u1", at=t.time("10:02"))
        assert [(row.order_id, row.name) for row in t.table("view")] == left

        t.send(user(t, "10:03", name="Ann again"))
        assert [row.name for row in t.table("view")] == ["Ann again"]
        t.delete(Order, "o1", at=t.time("10:04"))
        assert t.table("view") == []
        assert t.read("view")[-1].as_dict() | {"order_id": ""} == dict.fromkeys(t.read("view").columns) | {
            "order_id": ""
        }
        assert t.read("view")[-1].order_id == "o1"


def test_j6_an_older_version_that_comes_late_changes_nothing() -> None:
    with hr.testing.run(shop()[0]) as t:
        t.send(order(t, "10:00"), user(t, "10:05"), user(t, "10:04", name="before"))
        t.delete(Order, "o1", at=t.time("09:59"))

        assert [row.name for row in t.read("view")] == ["Ann"]


def test_j5_a_filter_lets_rows_in_and_out() -> None:
    app = hr.App("shop")
    app.table(Order).where("amount > 10").select("order_id, amount > 100 as large").to(app.topic("some", compact=True))
    with hr.testing.run(app) as t:
        t.send(*(order(t, f"10:0{n}", amount=amount) for n, amount in enumerate((5, 20, 30, 200, 7))))

        assert [row.large for row in t.read("some")] == [False, True, None]
        assert (t.counts("where-1").filtered, t.counts("select-1").filtered) == (1, 1)


def test_b2_a_row_that_does_not_fit_is_a_dead_letter_and_not_there() -> None:
    app = hr.App("shop")
    app.table(Order).select("order_id, amount * 9000000000 as huge").to(app.topic("huge", compact=True))
    with hr.testing.run(app) as t:
        t.send(order(t, "10:00", amount=1), order(t, "10:01", amount=2_000_000_000))
        assert t.table("huge") == []
        assert [(letter.step, letter.reason) for letter in t.dead()] == [("select-1", "does-not-fit")]

        t.send(order(t, "10:02", amount=2))
        assert [row.huge for row in t.table("huge")] == [18_000_000_000]
        counts = t.counts("select-1")
        assert (counts.received, counts.used, counts.dead) == (3, 2, 1)


def test_j5_a_group_gives_back_what_leaves_it() -> None:
    app, view = shop("left")
    by_city = view.group_by("city").agg(orders=hr.count(), spent=hr.sum("amount"), most=hr.max("amount"))
    by_city.to(app.topic("cities", compact=True))
    with hr.testing.run(app) as t:
        t.send(user(t, "10:00"), user(t, "10:00", "u2", city="Oslo"))
        t.send(order(t, "10:01"), order(t, "10:02", "o2", amount=5), order(t, "10:03", "o3", "u2", 7))
        assert t.table("cities") == [
            {"city": "Oslo", "orders": 1, "spent": 7, "most": 7},
            {"city": "Rome", "orders": 2, "spent": 15, "most": 10},
        ]

        t.send(order(t, "10:04", user="u2"))
        assert t.table("cities") == [
            {"city": "Oslo", "orders": 2, "spent": 17, "most": 10},
            {"city": "Rome", "orders": 1, "spent": 5, "most": 5},
        ]


def test_j5_a_group_that_loses_its_last_row_is_removed() -> None:
    app, view = shop()
    view.group_by("city").agg(orders=hr.count()).to(app.topic("cities", compact=True))
    with hr.testing.run(app) as t:
        t.send(user(t, "10:00"), order(t, "10:01"), user(t, "10:02", city="Oslo"))

        assert t.read("cities") == [
            {"city": "Rome", "orders": 1},
            {"city": "Rome", "orders": None},
            {"city": "Oslo", "orders": 1},
        ]
        assert t.table("cities", "city") == [{"city": "Oslo"}]


def test_j5_a_row_whose_group_is_null_is_in_none() -> None:
    app, view = shop("left")
    view.group_by("city").agg(orders=hr.count()).to(app.topic("cities", compact=True))
    with hr.testing.run(app) as t:
        t.send(order(t, "10:00"), user(t, "10:01", city=None))
        assert t.table("cities") == []

        t.send(user(t, "10:02", city="Rome"), user(t, "10:03", city=None))
        assert t.read("cities", "orders") == [{"orders": 1}, {"orders": None}]


def test_j6_a_self_join_needs_another_name() -> None:
    app = hr.App("shop")
    users = app.table(User)
    friends = users.join(
        users.alias("friend"),
        on="users.friend_id = friend.user_id",
        take="users.user_id, users.name, friend.name as of",
    )
    friends.to(app.topic("friends", compact=True))
    with hr.testing.run(app) as t:
        t.batch(user(t, "10:00", "u1", "Ann", friend="u2"), user(t, "10:00", "u2", "Bob", friend="u2"))
        t.send(user(t, "10:01", "u2", "Bobby", friend="u1"))

        assert t.table("friends") == [
            {"user_id": "u1", "name": "Ann", "of": "Bobby"},
            {"user_id": "u2", "name": "Bobby", "of": "Ann"},
        ]
        assert len(t.read("friends")) == 4
        assert [step.name for step in build(app).flows[0].steps] == ["users", "users.versions", "links-1", "view-1"]


def test_j5_a_view_is_joined_again_on_either_side() -> None:
    """Orders with their users, and with what their user's city has spent: the right side is a view too."""
    app = hr.App("shop")
    orders, users = app.table(Order), app.table(User)
    placed = orders.join(users, on="orders.user_id = users.user_id").named("placed")
    cities = placed.group_by("city").agg(spent=hr.sum("amount")).named("cities")
    placed.join(cities, on="placed.city = cities.city", take="placed.order_id, placed.name, cities.spent").to(
        app.topic("view", compact=True)
    )
    with hr.testing.run(app) as t:
        t.send(user(t, "10:00"), order(t, "10:01"), order(t, "10:02", "o2", amount=5))
        assert t.table("view") == [
            {"order_id": "o1", "name": "Ann", "spent": 15},
            {"order_id": "o2", "name": "Ann", "spent": 15},
        ]

        t.send(user(t, "10:03", name="Anna", city="Oslo"))
        assert t.table("view", "name, spent") == [{"name": "Anna", "spent": 15}] * 2


def test_f2_changes_say_what_was_before_and_is_after() -> None:
    app = hr.App("shop")
    small = app.table(Order).select("order_id, amount")
    small.to(app.topic("changes"), as_changes=True)
    with hr.testing.run(app) as t:
        t.send(order(t, "10:00"), order(t, "10:01", amount=20))
        t.delete(Order, "o1", at=t.time("10:02"))

        one, other = {"order_id": "o1", "amount": 10}, {"order_id": "o1", "amount": 20}
        assert t.read("changes") == [
            {"op": "insert", "key": "o1", "before": None, "after": one, "version": t.time("10:00")},
            {"op": "update", "key": "o1", "before": one, "after": other, "version": t.time("10:01")},
            {"op": "delete", "key": "o1", "before": other, "after": None, "version": t.time("10:02")},
        ]


def test_changes_go_on_as_a_stream() -> None:
    app = hr.App("shop")
    changes = app.table(Order).select("order_id, amount").changes()
    changes.to(app.topic("changes"))
    counted = changes.key_by("op").window(hr.tumbling("5 min"), lateness="0 s").agg(times=hr.count())
    counted.to(app.topic("counted"))
    with hr.testing.run(app) as t:
        t.send(order(t, "10:00"), order(t, "10:01", amount=20), order(t, "10:02", "o2"))
        t.end()

        assert t.read("changes")[1] == {
            "op": "update", "order_id": "o1", "before_amount": 10, "after_amount": 20, "version": t.time("10:01")
        }  # fmt: skip
        assert t.read("counted", "op, times") == [{"op": "insert", "times": 2}, {"op": "update", "times": 1}]


def test_t4_a_table_whose_changes_become_rows_counts_in_the_watermark() -> None:
    app = hr.App("shop")
    users = app.table(User)
    app.stream(Order, disorder="0 s").enrich(users, on="user_id").to(app.topic("enriched"))
    (flow,) = build(app).flows
    assert [flow.counts(source) for source in flow.sources] == [True, False]

    users.where("name <> ''").to(app.topic("named", compact=True))
    (flow,) = build(app).flows
    assert [flow.counts(source) for source in flow.sources] == [True, False]

    users.where("name <> ''").changes().to(app.topic("changes"))
    (flow,) = build(app).flows
    assert [flow.counts(source) for source in flow.sources] == [True, True]


def test_t4_a_table_whose_rows_end_in_views_counts_in_the_watermark() -> None:
    app = hr.App("shop")
    users = app.table(User, ttl="1 h")
    app.stream(Order, disorder="0 s").enrich(users, on="user_id").to(app.topic("enriched"))
    (flow,) = build(app).flows
    assert [flow.counts(source) for source in flow.sources] == [True, False]

    users.to(app.topic("people", compact=True))
    (flow,) = build(app).flows
    assert [flow.counts(source) for source in flow.sources] == [True, True]


@pytest.mark.parametrize(("how", "left"), [("inner", []), ("left", [("o1", None)])])
def test_j7_a_row_that_is_not_renewed_leaves_the_views(how: str, left: list[tuple[str, None]]) -> None:
    app = hr.App("shop")
    users = app.table(User, ttl="30 min")
    view = app.table(Order).join(users, on="orders.user_id = users.user_id", how=how)
    view.to(app.topic("view", compact=True))
    users.group_by("city").agg(people=hr.count()).to(app.topic("cities", compact=True))
    users.to(app.topic("told"), as_changes=True)
    with hr.testing.run(app) as t:
        t.send(user(t, "10:00"), order(t, "10:01"), user(t, "10:20", "u2", "Bob"), order(t, "10:29"))
        t.send(user(t, "10:29:59", "u2", "Bob"))
        assert [(row.order_id, row.name) for row in t.table("view")] == [("o1", "Ann")]
        assert [row.people for row in t.table("cities")] == [2]

        t.batch(user(t, "10:45", "u2", "Bob"), order(t, "10:45", "o2", "u2"))

        assert [(row.order_id, row.name) for row in t.table("view")] == [*left, ("o2", "Bob")]
        assert [row.people for row in t.table("cities")] == [1]
        gone = [row for row in t.read("told") if row.op == "delete"]
        assert [(row.before["name"], row.version) for row in gone] == [("Ann", t.time("10:30"))]


def test_j7_time_passes_for_quiet_tables_too_and_the_end_of_input_deletes_nothing() -> None:
    app = hr.App("shop")
    app.table(User, ttl="10 min").to(app.topic("people", compact=True))
    with hr.testing.run(app) as t:
        t.send(user(t, "10:00"), user(t, "10:08", "u2"))
        t.advance("2 min")
        t.advance("10 s")
        assert [row.user_id for row in t.table("people")] == ["u2"]
        t.end()
        assert [row.user_id for row in t.table("people")] == ["u2"]


def test_d2_the_same_change_has_the_same_id() -> None:
    ids = []
    for _ in range(2):
        with hr.testing.run(shop()[0]) as t:
            t.send(order(t, "10:00"), order(t, "10:00", "o2"), user(t, "10:01"), user(t, "10:02", name="Anna"))
            records = t.records("view")
            assert [record.key for record in records] == ["o1", "o2", "o1", "o2"]
            ids.append([record.id for record in records])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 4


# -- against the join of the tables, from scratch

KEYS = st.sampled_from(("a", "b", "c"))
POINTER = st.sampled_from(("a", "b", "c", None))
ORDERS = st.tuples(st.just("orders"), KEYS, st.integers(0, 20), st.none() | st.tuples(POINTER, st.integers(0, 3)))
USERS = st.tuples(
    st.just("users"), KEYS, st.integers(0, 20), st.none() | st.tuples(st.sampled_from("xy"), POINTER, POINTER)
)
BATCHES = st.lists(st.lists(ORDERS | USERS, max_size=4), max_size=8)
START = 1_793_664_000_000_000
Rows = dict[str, tuple[Any, ...]]


def the_join(orders: Rows, users: Rows, how: str) -> Rows:
    found: Rows = {}
    for key, (user_id, amount) in orders.items():
        partner = users.get(user_id)
        if partner is not None or how == "left":
            found[key] = (key, amount, *(partner or (None, None))[:2])
    return found


def the_groups(view: Rows) -> Rows:
    found: dict[str, list[int]] = {}
    for _, amount, _, city in view.values():
        if city is not None:
            found.setdefault(city, []).append(amount)
    return {city: (city, len(amounts), sum(amounts), max(amounts)) for city, amounts in found.items()}


def both_levels(how: str, ttl: timedelta | None = None) -> Plan:
    app = hr.App("shop")
    orders, users = app.table(Order, ttl=ttl), app.table(User, ttl=ttl and 2 * ttl)
    view = orders.join(
        users, on="orders.user_id = users.user_id", how=how,
        take="orders.order_id, orders.amount, users.name, users.city",
    )  # fmt: skip
    view.to(app.topic("view", compact=True))
    view.where("amount > 1").to(app.topic("large", compact=True))
    groups = view.group_by("city").agg(orders=hr.count(), spent=hr.sum("amount"), most=hr.max("amount"))
    groups.to(app.topic("groups", compact=True))
    friends = users.alias("friend")
    users.join(friends, on="users.friend_id = friend.user_id", take="users.user_id, friend.name").to(
        app.topic("friends", compact=True)
    )
    return build(app)


def arrivals(batch: list[Any], offset: int) -> list[Arrival]:
    found = []
    for n, (topic, key, time, row) in enumerate(batch):
        at = START + time
        values: Any = Tombstone((key,)) if row is None else (key, *row, from_micros(at))
        found.append(Arrival(at, ("orders", "users").index(topic), 0, offset + n, values))
    return found


@pytest.mark.parametrize("how", ["inner", "left"])
def test_j5_views_are_the_joins_and_groups_of_the_current_tables(how: str) -> None:
    plan = both_levels(how)

    @examples(60)
    @given(BATCHES)
    def check(batches: list[Any]) -> None:
        engine = Engine(plan, plan.flows[0])
        latest: dict[tuple[str, str], tuple[tuple[int, int], Any]] = {}
        for number, batch in enumerate(batches):
            for n, (topic, key, time, row) in enumerate(batch):
                own = ((time, 10 * number + n), row)
                latest[topic, key] = max(latest.get((topic, key), own), own, key=lambda version: version[0])
            engine.batch(Batch(arrivals(batch, 10 * number), None, START))

            orders, users = (
                {key: row for (topic, key), (_, row) in latest.items() if topic == wanted and row is not None}
                for wanted in ("orders", "users")
            )
            view = the_join(orders, users, how)
            assert held(engine, "view") == view
            assert held(engine, "large") == {key: row for key, row in view.items() if row[1] > 1}
            assert held(engine, "groups") == the_groups(view)
            pointing = {key: users.get(row[2]) for key, row in users.items()}
            assert held(engine, "friends") == {key: (key, row[0]) for key, row in pointing.items() if row is not None}

    check()


def held(engine: Engine, topic: str) -> Rows:
    """What a reader of the topic holds; versions of a key grow, so that a store may keep the greatest."""
    rows: Rows = {}
    times: dict[str, int] = {}
    for record in engine.records:
        if record.topic == topic:
            key = record.key or ""
            assert record.time > times.get(key, 0)
            times[key] = record.time
            if isinstance(record.values, Tombstone):
                del rows[key]
            else:
                assert rows.get(key) != record.values
                rows[key] = record.values
    return rows


def test_r4_the_view_is_the_same_however_its_input_is_cut() -> None:
    plan = both_levels("left")

    @examples(30)
    @given(BATCHES)
    def check(batches: list[Any]) -> None:
        whole = [one for batch in batches for one in batch]
        ends: list[Callable[[str], Rows]] = []
        for cut in (batches, [whole], [[one] for one in whole]):
            engine, offset = Engine(plan, plan.flows[0]), 0
            for batch in cut:
                engine.batch(Batch(arrivals(batch, offset), None, START))
                offset += len(batch)
            ends.append(lambda topic, engine=engine: held(engine, topic))  # type: ignore[misc]
        for topic in ("view", "large", "groups", "friends"):
            assert ends[0](topic) == ends[1](topic) == ends[2](topic)

    check()


def test_j7_views_are_made_of_the_rows_that_live_however_the_input_is_cut() -> None:
    """Times are whole milliseconds, as watermarks are; orders live for 5, users for 10."""
    plan = both_levels("left", ttl=timedelta(milliseconds=5))
    lives = {"orders": 5, "users": 10}

    @examples(60)
    @given(st.lists(st.tuples(st.lists(ORDERS | USERS, max_size=4), st.integers(0, 4)), max_size=8))
    def check(given: list[tuple[list[Any], int]]) -> None:
        engine, watermark = Engine(plan, plan.flows[0]), 0
        latest: dict[tuple[str, str], tuple[tuple[int, int], Any]] = {}
        for number, (batch, rise) in enumerate(given):
            watermark += rise
            for n, (topic, key, time, row) in enumerate(batch):
                own = ((time, 10 * number + n), row)
                latest[topic, key] = max(latest.get((topic, key), own), own, key=lambda version: version[0])
            moved = [(topic, key, 1_000 * time, row) for topic, key, time, row in batch]
            engine.batch(Batch(arrivals(moved, 10 * number), START // 1_000 + watermark, START // 1_000))

            orders, users = (
                {
                    key: row
                    for (topic, key), ((time, _), row) in latest.items()
                    if topic == wanted and row is not None and time + lives[topic] > watermark
                }
                for wanted in ("orders", "users")
            )
            view = the_join(orders, users, "left")
            assert held(engine, "view") == view
            assert held(engine, "large") == {key: row for key, row in view.items() if row[1] > 1}
            assert held(engine, "groups") == the_groups(view)

    check()
