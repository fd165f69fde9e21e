"""Tables and views: what is refused, with its reason and a way out; what they are called and print as."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import headrace as hr
from headrace.base.errors import BadApp, DeclarationError
from headrace.plan.plan import build
from tests.reference.shop import Order, User, shop


@hr.event(topic="notes", key="note_id")
class Note:
    note_id: str


app = hr.App("shop")
orders, users = app.table(Order), app.table(User)
stream = hr.App("other").stream(Order, disorder="0 s")
visits = app.stream(User, disorder="0 s", name="visits")
ON = "orders.user_id = users.user_id"

REFUSED: dict[str, tuple[Callable[[], object], str, str]] = {
    "a table without version time": (lambda: app.table(Note), "has no time", "time="),
    "a select without the key": (lambda: orders.select("amount"), "key of orders gets lost", '"order_id, ..."'),
    "a select that renames the key": (lambda: orders.select("order_id as id"), "gets lost", "order_id"),
    "a take without the key": (lambda: orders.join(users, on=ON, take="users.name"), "gets lost", "order_id"),
    "a take of the other's key": (
        lambda: users.join(users.alias("friend"), on="users.friend_id = friend.user_id", take="friend.user_id"),
        "gets lost", "user_id",
    ),
    "a join by another column": (
        lambda: orders.join(users, on="orders.user_id = users.name"), "not asked by its key", 'on="user_id"',
    ),
    "a join by too much": (
        lambda: orders.join(users, on="user_id, orders.user_id = users.name"), "not asked by its key", "user_id",
    ),
    "a right join": (lambda: orders.join(users, on=ON, how="right"), "how='right' is not known", "turn the two around"),
    "a table with a stream": (lambda: orders.join(visits, on="user_id"), "visits is a stream", "visits.enrich(orders"),
    "a stream with a table": (
        lambda: visits.join(users, on="user_id", within="1 min"), "users is a table", "visits.enrich(users",
    ),
    "a stream with a view": (lambda: visits.enrich(orders.where("amount > 1"), on="user_id"), "is a view", "app.table"),
    "a table with nothing": (lambda: orders.join("users", on="user_id"), "is no table", "app.table"),  # type: ignore[arg-type]
    "a table of another app": (
        lambda: orders.join(hr.App("other").table(User), on=ON), "belongs to App('shop')", "",
    ),
    "a self join without another name": (
        lambda: users.join(users, on="users.friend_id = users.user_id"), "both sides are called 'users'", ".alias(",
    ),
    "columns of one name": (
        lambda: orders.join(orders.alias("next"), on="orders.user_id = next.order_id"), "both have", 'prefix="next_"',
    ),
    "keys of other types": (
        lambda: users.join(users.group_by("since").agg(n=hr.count()).named("days"), on="users.user_id = days.since"),
        "is text, since of days is time", "cast",
    ),
    "a key that may not fit": (
        lambda: orders.join(
            orders.group_by("amount").agg(n=hr.count()).named("sums"), on="orders.amount * 9 = sums.amount"
        ),
        "may not fit", ".select(...) before",
    ),
    "an aggregate that may not fit": (
        lambda: orders.group_by("user_id").agg(n=hr.sum("amount * 2")), "may not fit", ".select(...) before",
    ),
    "the first row of a group": (
        lambda: orders.group_by("user_id").agg(n=hr.first("amount")), "first(amount) over a table", "another",
    ),
    "a sketch of a group": (
        lambda: orders.group_by("user_id").agg(n=hr.distinct("amount", approx=True)), "over a table", "another",
    ),
    "an aggregate called like a group": (lambda: orders.group_by("user_id").agg(user_id=hr.count()), "is taken", ""),
    "a group of nothing": (lambda: orders.group_by("user_id").agg(), "agg() of nothing", "hr.count()"),
    "a topic that is not compacted": (lambda: orders.to(app.topic("plain")), "is not compacted", "compact=True"),
    "changes to a compacted topic": (
        lambda: orders.to(app.topic("tight", compact=True), as_changes=True), "only the last change", 'topic("tight")',
    ),
    "a sink that is none": (lambda: orders.to("orders"), "is no sink", "app.topic"),  # type: ignore[arg-type]
    "a column that changes have too": (
        lambda: orders.group_by("user_id as op").agg(n=hr.count()).changes(), "'op' is taken", "rename",
    ),
    "a name for a table": (lambda: orders.named("mine"), "names a table", "name="),
    "an alias that is none": (lambda: orders.alias("my orders"), "cannot name rows", "letters"),
    "an unknown column": (lambda: orders.where("amont > 1"), "amont", "amount"),
    "an unknown group": (lambda: orders.group_by("town"), "town", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_b4_is_refused_at_its_line(case: str) -> None:
    declare, what, fix = REFUSED[case]
    with pytest.raises(DeclarationError) as caught:
        declare()

    assert what in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.where is not None
    assert "test_view.py" in str(caught.value.where)


def test_a_view_over_a_stream_cannot_be_said() -> None:
    assert not hasattr(stream, "group_by")


def test_one_line_says_what_it_is() -> None:
    view = shop()[1]
    assert repr(orders) == "<table of order_id, user_id, amount, at by order_id>"
    assert repr(view).startswith("<view of order_id, user_id, amount, at, name, ")
    assert repr(orders.select("*, 1 as a, 2 as b, 3 as c, 4 as d, 5 as e")).endswith(" d, ... by order_id>")
    assert repr(view.group_by("city")).endswith(" in groups by city>")


def test_j6_rows_are_called_by_alias_step_or_table() -> None:
    assert (orders.called, orders.where("amount > 1").called, orders.alias("o").where("amount > 1").called) == (
        "orders", "orders", "o"
    )  # fmt: skip
    joined = orders.join(users, on=ON)
    assert (joined.called, joined.named("order-view").called) == ("orders", "order_view")


def test_one_step_serves_all_views_of_a_table() -> None:
    shared, view = shop()
    view.join(shared.table(User).alias("again"), on="seen.user_id = again.user_id", prefix="again_").to(
        shared.topic("twice", compact=True)
    )
    names = [step.name for step in build(shared).flows[0].steps]
    assert names == ["orders", "orders.versions", "users", "users.versions", "links-1", "seen", "links-2", "view-1"]


def test_rows_and_upserts_do_not_share_a_topic() -> None:
    mixed = hr.App("mixed")
    topic = mixed.topic("same", compact=True)
    mixed.table(Order).to(topic)
    mixed.stream(Order, disorder="0 s", name="again").to(topic)
    with pytest.raises(BadApp, match="two shapes"):
        build(mixed)


def test_groups_of_what_may_be_null_are_never_null() -> None:
    by_city = shop("left")[1].group_by("city").agg(spent=hr.sum("amount"))
    assert [str(column) for column in by_city.columns] == ["city text", "spent int?"]
