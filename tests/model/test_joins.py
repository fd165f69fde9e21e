"""Joins as declared: names, keys, columns, and every mistake refused at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import BadApp, BadStep, DeclarationError
from tests.reference.ads import Click, Impression, User


@hr.event(topic="card-swipes", key="card", time="at")
class Swipe:
    card: int
    user_id: str
    at: datetime


@pytest.fixture
def app() -> hr.App:
    return hr.App("ads")


def streams(app: hr.App) -> tuple[hr.Stream, hr.Stream]:
    return app.stream(Impression, disorder="0 s"), app.stream(Click, disorder="0 s")


def names(stream: hr.Stream) -> list[str]:
    return [column.name for column in stream.columns]


def test_a_key_that_both_call_the_same_comes_out_once(app: hr.App) -> None:
    impressions, clicks = streams(app)

    seen = impressions.join(clicks, on="ad_id, user_id", within="10 min", prefix="click_")

    assert names(seen) == ["impression_id", "ad_id", "user_id", "at", "click_click_id", "click_at"]


def test_keys_may_have_different_names_and_stand_on_either_side(app: hr.App) -> None:
    impressions, clicks = streams(app)
    other = clicks.select("user_id as visitor, at as clicked_at, click_id")

    one = impressions.join(other, on="impressions.user_id = clicks.visitor", within="10 min")
    two = impressions.join(other, on="clicks.visitor = impressions.user_id", within="10 min")

    assert [tuple(map(str, pair)) for pair in one.node.on] == [("user_id", "visitor")]  # type: ignore[union-attr]
    assert one.node.on == two.node.on  # type: ignore[union-attr]


def test_take_chooses_columns_of_both_rows(app: hr.App) -> None:
    impressions, clicks = streams(app)

    seen = impressions.join(
        clicks, on="user_id", within="10 min", how="left", take="impressions.at, clicks.at as clicked"
    )

    assert [(c.name, c.nullable) for c in seen.columns] == [("at", False), ("clicked", True)]


@pytest.mark.parametrize(("how", "nullable"), [("inner", [False, False]), ("left", [False, True]),
                                               ("right", [True, False]), ("full", [True, True])])  # fmt: skip
def test_columns_of_a_side_that_may_be_missing_are_nullable(app: hr.App, how: str, nullable: list[bool]) -> None:
    impressions, clicks = streams(app)

    seen = impressions.join(clicks, on="user_id", within="1 min", how=how, take="impressions.at, clicks.at as clicked")

    assert [column.nullable for column in seen.columns] == nullable


def test_take_may_say_every_column_of_a_row(app: hr.App) -> None:
    impressions, clicks = streams(app)

    seen = impressions.join(
        clicks, on="user_id", within="10 min", how="left", take="impressions.*, clicks.at as clicked"
    )

    assert names(seen) == ["impression_id", "ad_id", "user_id", "at", "clicked"]
    assert [name for name, _ in seen.key] == [name for name, _ in impressions.key]


def test_names_with_dashes_are_written_with_underscores(app: hr.App) -> None:
    clicks, swipes = app.stream(Click, disorder="0 s"), app.stream(Swipe, disorder="0 s")

    assert names(clicks.join(swipes, on="user_id", within="1 min", take="card_swipes.card")) == ["card"]


def mistakes() -> dict[str, tuple[Callable[[hr.App], Any], str]]:
    def joined(**changed: Any) -> Callable[[hr.App], Any]:
        said = {"on": "user_id", "within": "10 min", "prefix": "click_"} | changed

        def declare(app: hr.App) -> Any:
            impressions, clicks = streams(app)
            return impressions.join(clicks, **said)

        return declare

    def enriched(history: str | None = "1 h", **changed: Any) -> Callable[[hr.App], Any]:
        return lambda app: app.stream(Click, disorder="0 s").enrich(
            app.table(User, history=history), **({"on": "user_id"} | changed)
        )

    return {
        "no time bound": (joined(within=None), "a join without a time bound"),
        "bounds turned round": (joined(within=("10 min", "0 s")), "leaves no time"),
        "a bound before itself": (joined(within="-5 min"), "leaves no time"),
        "half a pair of bounds": (joined(within=("0 s",)), "is no time bound"),
        "unknown how": (joined(how="outer"), "how='outer' is not known"),
        "a row of another name": (joined(on="impressions.user_id = click.user_id"), "no row named 'click'"),
        "a key of one row alone": (joined(on="impressions.user_id = impressions.ad_id"), "is no key of clicks"),
        "a constant as key": (joined(on="impressions.user_id = 'ann'"), "'ann' is no key of clicks"),
        "a star as key": (joined(on="*"), "is no key"),
        "everything of nobody": (joined(take="*"), "* does not say of which row"),
        "everything of a stranger": (joined(take="click.*"), "no row named 'click'"),
        "the other row of a semi join": (joined(how="semi", take="clicks.at"), "take asks for columns of clicks"),
        "unknown column": (joined(on="users_id"), "there is no column 'users_id'"),
        "no key": (joined(on="impressions.at > clicks.at"), "is no key"),
        "types differ": (joined(on="impressions.at = clicks.user_id"), "is time, user_id of clicks is text"),
        "columns collide": (joined(prefix=None), "both have ad_id, at"),
        "no stream": (lambda app: streams(app)[0].join("clicks", on="user_id", within="1 min"), "is no stream"),
        "itself": (lambda app: streams(app)[0].join(streams(app)[0], on="user_id", within="1 min"), "both sides are"),
        "another app": (
            lambda app: streams(app)[0].join(streams(hr.App("other"))[1], on="user_id", within="1 min"),
            "belongs to App('ads')",
        ),
        "a stream as table": (lambda app: streams(app)[0].enrich(streams(app)[1], on="user_id"), "is no table"),
        "not the table's key": (enriched(on="clicks.click_id = users.city"), "users is not asked by its key"),
        "as of without history": (enriched(history=None, as_of="at"), "users keeps no history"),
        "as of another time": (enriched(as_of="click_id"), "is not the time of clicks"),
        "as of a time that the row does not have": (
            lambda app: (
                streams(app)[0]
                .join(streams(app)[1], on="user_id", within="1 min", prefix="click_")
                .enrich(app.table(User, history="1 h"), on="user_id", as_of="at")
            ),
            "no column is the time of impressions here",
        ),
        "as of no name": (enriched(as_of=hr.col.at), "is not the time of clicks"),
        "a wait for some time": (enriched(as_of="at", wait="5 s"), "wait='5 s' is not known"),
        "a wait for the present": (enriched(wait="0 s"), "wait without as_of"),
        "a union with a table": (lambda app: streams(app)[0].union(app.table(User)), "users is a table"),
        "a union of different columns": (lambda app: streams(app)[0].union(streams(app)[1]), "have different columns"),
        "a union of one": (lambda app: streams(app)[0].union(), "a union of one"),
        "late of a filter": (lambda app: streams(app)[0].where("ad_id = 'a'").late, "this stream has no .late"),
        "an alias with a blank": (lambda app: streams(app)[0].alias("a b"), "cannot name rows"),
        "split of nothing": (lambda app: streams(app)[0].split(), "needs named conditions"),
        "overflow in take": (
            lambda app: app.stream(Click, disorder="0 s").join(
                app.stream(Swipe, disorder="0 s"), on="user_id", within="1 min", take="card_swipes.card * 2 as x"
            ),
            "may not fit its type",
        ),
    }


@pytest.mark.parametrize("mistake", mistakes())
def test_a_mistake_is_refused_at_the_users_line(app: hr.App, mistake: str) -> None:
    declare, what = mistakes()[mistake]

    with pytest.raises(DeclarationError) as refused:
        declare(app)

    assert what in refused.value.what
    assert refused.value.where is not None
    assert refused.value.where.file.endswith("test_joins.py")


def test_a_table_needs_a_key(app: hr.App) -> None:
    @hr.event(topic="keyless", time="at")
    class Keyless:
        at: datetime

    with pytest.raises(BadApp, match="has no key"):
        app.table(Keyless)


def test_a_table_of_changes_needs_no_time_of_its_own_and_no_compaction(app: hr.App) -> None:
    @hr.event(topic="timeless", key="name")
    class Timeless:
        name: str

    with pytest.raises(BadApp, match="has no time"):
        app.table(Timeless)
    app.table(Timeless, changes=True)
    assert [(topic.name, topic.compact) for topic in app.topics] == [("timeless", False)]


@pytest.mark.parametrize("ttl", ["0 s", "-1 d"])
def test_j7_a_time_to_live_is_longer_than_nothing(app: hr.App, ttl: str) -> None:
    with pytest.raises(BadApp) as refused:
        app.table(User, ttl=ttl)

    assert refused.value.what == f"rows of User would live for {ttl}"
    assert "before anybody could ask" in refused.value.why
    assert 'ttl="30 d"' in refused.value.fix
    assert refused.value.where is not None
    assert refused.value.where.file.endswith("test_joins.py")


def test_j7_a_table_is_declared_twice_only_with_the_same_time_to_live(app: hr.App) -> None:
    assert app.table(User, ttl="1 d") is app.table(User, ttl="24 h")
    with pytest.raises(BadApp, match="declared twice, differently"):
        app.table(User, ttl="2 d")


def test_a_join_prints_in_one_line(app: hr.App) -> None:
    impressions, clicks = streams(app)

    assert "\n" not in repr(impressions.join(clicks, on="user_id", within="1 min", prefix="c_"))
    with pytest.raises(BadStep, match="named conditions"):
        impressions.split()
