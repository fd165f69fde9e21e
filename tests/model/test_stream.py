"""Declarations that could never run are refused where they stand (rule B4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import BadDuration, DeclarationError
from tests.shapes import Payment, Reading


def payments() -> hr.Stream:
    return hr.App("bank").stream(Payment, disorder="30 s")


def readings() -> hr.Stream:
    return hr.App("bank").stream(Reading, disorder="30 s")


@hr.event(topic="pages", key="url", time="at")
class Page:
    url: str
    tags: list[str]
    at: datetime


def pages() -> hr.Stream:
    return hr.App("site").stream(Page, disorder="30 s")


def hourly(stream: hr.Stream) -> Any:
    return stream.window(hr.tumbling("1 h"), lateness="0 s")


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "unknown column": (lambda: payments().where("amont > 0"), "unknown-column"),
    "condition that is none": (lambda: payments().where("amount"), "bad-step"),
    "wrong types": (lambda: payments().where("amount > 'x'"), "expression-type"),
    "aggregate of text": (
        lambda: payments().window(hr.tumbling("1 h"), lateness="0 s").agg(x=hr.sum("country")),
        "bad-aggregate",
    ),
    "distinct lists": (
        lambda: pages().window(hr.tumbling("1 h"), lateness="0 s").agg(x=hr.distinct("tags")),
        "bad-aggregate",
    ),
    "window without lateness": (lambda: payments().window(hr.tumbling("1 h")), "bad-window"),
    "zero size": (lambda: hr.tumbling("0 s"), "bad-window"),
    "negative size": (lambda: hr.tumbling("-1 min"), "bad-window"),
    "hop larger than size": (lambda: hr.hopping("1 h", every="2 h"), "bad-window"),
    "zero gap": (lambda: hr.session(gap="0 s"), "bad-window"),
    "negative lateness": (lambda: payments().window(hr.tumbling("1 h"), lateness="-1 s"), "bad-window"),
    "forever without emit": (lambda: payments().window(hr.forever()), "bad-window"),
    "forever at close": (lambda: payments().window(hr.forever(), emit=hr.at_close()), "bad-window"),
    "emit on a sliding window": (
        lambda: payments().window(hr.sliding("1 h"), lateness="0 s", emit=hr.on_change()),
        "bad-window",
    ),
    "lateness by processing time": (
        lambda: payments().window(hr.tumbling("1 h", time="processing"), lateness="1 s"),
        "bad-window",
    ),
    "changes without key": (lambda: payments().map(lambda p: p, to=Page).changes("url", keep="1 h"), "bad-step"),
    "changes kept for no time": (lambda: payments().changes("country", keep="0 s"), "bad-step"),
    "changes of an expression": (lambda: payments().changes("amount * 2", keep="1 h"), "expression-refused"),
    "changes without keep": (lambda: payments().changes("country"), "bad-call"),  # type: ignore[call-arg]
    "a sample of more than all": (lambda: payments().sample(10, by="card_id"), "bad-step"),
    "a sample of nothing": (lambda: payments().sample(0, by="card_id"), "bad-step"),
    "a sample by what may be null": (lambda: readings().sample(0.1, by="note"), "bad-step"),
    "the top no rows": (lambda: hourly(payments()).top(0, by="amount"), "bad-aggregate"),
    "the top half row": (lambda: hourly(payments()).top(0.5, by="amount"), "bad-step"),
    "top rows by lists": (lambda: hourly(pages()).top(1, by="tags"), "bad-aggregate"),
    "a rank already": (lambda: hourly(payments().select("card_id, amount as rank")).top(1, by="rank"), "bad-step"),
    "top rows with two columns of a name": (
        lambda: hourly(payments().key_by("lower(country) as country")).top(1, by="amount"),
        "bad-step",
    ),
    "random key": (lambda: payments().key_by("rand()"), "expression-refused"),
    "nullable key": (lambda: readings().key_by("note"), "bad-step"),
    "late of a filter": (lambda: payments().where("amount > 0").late, "bad-step"),
    "duplicates of a window": (
        lambda: payments().window(hr.tumbling("1 h"), lateness="0 s").agg(n=hr.count()).duplicates,
        "bad-step",
    ),
    "aggregates of nothing": (lambda: payments().window(hr.tumbling("1 h"), lateness="0 s").agg(), "bad-step"),
    "an aggregate that is none": (
        lambda: payments().window(hr.tumbling("1 h"), lateness="0 s").agg(n="count"),  # type: ignore[arg-type]
        "bad-step",
    ),
    "a taken name": (
        lambda: payments().window(hr.tumbling("1 h"), lateness="0 s").agg(kind=hr.count()),
        "bad-step",
    ),
    "a map by no function": (lambda: payments().map("to_euros", to=Page), "bad-step"),  # type: ignore[arg-type]
    "a map without result type": (lambda: payments().map(lambda p: p), "bad-step"),
    "a sink that is none": (lambda: payments().to("alerts"), "bad-step"),  # type: ignore[arg-type]
    "a guarantee that is none": (
        lambda: payments().to(hr.App("x").topic("y"), guarantee="twice"),  # type: ignore[arg-type]
        "bad-step",
    ),
    "top of nothing": (lambda: hr.top(0, "amount"), "bad-aggregate"),
    "quantile out of range": (lambda: hr.quantile("amount", 1.5), "bad-aggregate"),
    "top the wrong way round": (lambda: hr.top("amount", 3), "bad-aggregate"),  # type: ignore[arg-type]
    "a quantile as text": (lambda: hr.quantile("amount", "0.5"), "bad-aggregate"),  # type: ignore[arg-type]
    "a step without name": (lambda: payments().where("amount > 0").named(""), "bad-step"),
    "changes of a list": (lambda: payments().changes(["country"], keep="1 h"), "expression-refused"),  # type: ignore[arg-type]
    "a negative idle": (lambda: hr.App("bank").stream(Payment, disorder="0 s", idle="-1 s"), "bad-app"),
    "a negative history": (lambda: hr.App("bank").table(Payment, history="-1 d"), "bad-app"),
    "rows without a time to live": (lambda: hr.App("bank").table(Payment, ttl="0 s"), "bad-app"),
    "a negative ttl": (lambda: hr.App("bank").table(Payment, ttl="-1 d"), "bad-app"),
    "a window forever for no time": (lambda: hr.forever(ttl="0 s"), "bad-window"),
    "an app's name": (lambda: hr.App("The Bank"), "bad-app"),
    "a topic declared twice": (
        lambda: (app := hr.App("bank"), app.topic("x", partitions=1), app.topic("x", partitions=2)),
        "bad-app",
    ),
    "text for a window": (lambda: payments().window("5 min", lateness="0 s"), "bad-window"),  # type: ignore[arg-type]
    "text for an emit policy": (
        lambda: payments().window(hr.tumbling("1 h"), lateness="0 s", emit="on_change"),  # type: ignore[arg-type]
        "bad-window",
    ),
    "lateness for ever": (
        lambda: payments().window(hr.forever(), lateness="1 s", emit=hr.on_change()),
        "bad-window",
    ),
    "a column name that is none": (
        lambda: payments().window(hr.tumbling("1 h"), lateness="0 s").agg(**{"my count": hr.count()}),
        "bad-step",
    ),
    "a stream that does not say its disorder": (
        lambda: hr.App("bank").stream(Payment),  # type: ignore[call-arg]
        "bad-call",
    ),
    "an aggregate without a name": (
        lambda: payments().window(hr.tumbling("1 h"), lateness="0 s").agg(hr.count()),  # type: ignore[call-arg]
        "bad-call",
    ),
    "a session with a size": (lambda: hr.session("30 min"), "bad-call"),  # type: ignore[call-arg]
    "a hop without every": (lambda: hr.hopping("1 h"), "bad-call"),  # type: ignore[call-arg]
    "a sum of nothing": (lambda: hr.sum(), "bad-call"),  # type: ignore[call-arg]
    "a word that no verb takes": (lambda: payments().dedup("payment_id", wihtin="1 h"), "bad-call"),  # type: ignore[call-arg]
    "columns as a list": (lambda: payments().key_by(["card_id"]), "expression-refused"),  # type: ignore[arg-type]
    "dedup without a bound on its state": (lambda: payments().dedup("payment_id", within="0 s"), "bad-step"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_b4_refused_with_file_line_what_why_and_fix(case: str) -> None:
    declare, code = REFUSED[case]
    with pytest.raises(DeclarationError) as caught:
        declare()
    error = caught.value
    assert error.code == code
    assert error.where is not None
    assert error.where.file == __file__
    assert error.why or error.fix


def test_a_duration_that_is_none_is_told_at_the_users_line() -> None:
    for declare in (
        lambda: hr.tumbling("5 minuts"),
        lambda: payments().dedup("payment_id", within="5 minuts"),
        lambda: hr.App("bank").stream(Payment, disorder="5 minuts"),
        lambda: hr.App("bank").topic("x", retention="5 minuts"),
    ):
        with pytest.raises(BadDuration) as caught:
            declare()
        assert caught.value.where is not None
        assert caught.value.where.file == __file__
        assert caught.value.fix == 'did you mean "5 minutes"?'


def test_a_filter_keeps_the_key_and_a_projection_only_if_it_keeps_the_column() -> None:
    keyed = payments().key_by("customer_id")
    assert [name for name, _ in keyed.where("amount > 0").key] == ["customer_id"]
    assert [name for name, _ in keyed.select("customer_id, amount").key] == ["customer_id"]
    assert keyed.select("amount").key == ()


def test_a_key_whose_name_is_a_word_of_sql_is_kept_like_any_other() -> None:
    @hr.event(topic="scores", key="group", time="at")
    class Score:
        group: str
        at: datetime

    scores = hr.App("games").stream(Score, disorder="0 s")
    assert [name for name, _ in scores.select("*").key] == ["group"]
    assert [name for name, _ in scores.key_by('"group"').key] == ["group"]


def test_a_filter_that_needs_a_column_makes_it_a_possible_key() -> None:
    assert readings().where("note is not null and value > 1").key_by("note").key
    assert readings().where("level > 3").key_by("level > 5 as high").key
    with pytest.raises(DeclarationError, match="may be null"):
        readings().where("note is not null or value > 1").key_by("note")


def test_a_stream_prints_as_one_line() -> None:
    windows = pages().where("url <> ''").window(hr.tumbling("1 h"), lateness="5 min")
    assert repr(pages()) == "<stream of url, tags, at by url>"
    assert repr(windows) == "<<stream of url, tags, at by url> in windows: tumbling 1 h, lateness 5 min>"
    assert repr(pages().select("*, 1 as a, 2 as b, 3 as c, 4 as d, 5 as e, 6 as f")).endswith("e, ... by url>")


def test_f2_results_have_keys_bounds_kind_revision_then_values() -> None:
    result = payments().window(hr.tumbling("1 h"), lateness="0 s").agg(spent=hr.sum("amount"), mean=hr.avg("amount"))
    assert [str(c) for c in result.columns] == [
        "card_id text",
        "window_start time",
        "window_end time",
        "kind text",
        "revision int",
        "spent decimal(28, 2)",
        "mean decimal(22, 6)",
    ]


def test_col_builds_the_same_tree_as_text() -> None:
    by_text = payments().where("amount > 100 and country <> 'DE'")
    by_col = payments().where((hr.col.amount > 100) & (hr.col.country != "DE"))
    assert str(by_text.node.condition) == str(by_col.node.condition)
