"""Features as declared: names, columns, and every mistake refused at the user's line (rule B4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import headrace as hr
from headrace.base.duration import show
from headrace.base.errors import DeclarationError
from headrace.expr.types import INT, MONEY, TEXT, TIME, Column, decimal, list_of
from headrace.model.featured import Featured
from headrace.model.features import Features
from tests.shapes import Payment


@hr.event(topic="tagged", key="card_id", time="at")
class Tagged:
    card_id: str
    note: str | None
    tags: list[str]
    spent_1h: int
    at: datetime


@hr.event(topic="labels", key="payment_id", time="known_at")
class Label:
    payment_id: str
    card_id: str
    fraud: int
    known_at: datetime


@hr.event(topic="numbered", key="card_id", time="at")
class Numbered:
    card_id: int
    at: datetime


APP = hr.App("bank")
PAYMENTS = APP.stream(Payment, disorder="0 s")
TAGGED = APP.stream(Tagged, disorder="0 s")
LABELS = APP.stream(Label, disorder="0 s")
NUMBERED = APP.stream(Numbered, disorder="0 s")


def card(**more: Any) -> Features:
    return APP.features("card", **{"key": "card_id", "source": PAYMENTS, "ttl": "30 d", **more})


def tagged() -> Features:
    return card(source=TAGGED)


REFUSED: dict[str, tuple[Callable[[], object], str, str]] = {
    "no ttl": (lambda: APP.features("card", key="card_id", source=PAYMENTS), "bad-call", "'ttl'"),  # type: ignore[call-arg]
    "a ttl of nothing": (lambda: card(ttl="0 s"), "bad-step", "keeps nothing"),
    "negative lateness": (lambda: card(lateness="-1 s"), "bad-step", "is negative"),
    "no room": (lambda: card(most=1), "bad-step", "most=1"),
    "a name with blanks": (lambda: APP.features("a b", key="card_id", source=PAYMENTS, ttl="1 d"), "bad-step", "name"),
    "a source that is none": (lambda: card(source=Payment), "bad-step", "is no stream"),
    "a source of another app": (
        lambda: card(source=hr.App("other").stream(Payment, disorder="0 s")), "bad-step", "belongs to"),
    "a key that may be null": (lambda: card(source=TAGGED, key="note"), "bad-step", "may be null"),
    "no features": (lambda: card().vectors, "bad-step", "has no features yet"),
    "over without size": (lambda: card().over(times=hr.count()), "bad-step", "over() of nothing"),
    "over without values": (lambda: card().over("1 h"), "bad-step", "over() of nothing"),
    "a window of nothing": (lambda: card().over("0 s", times=hr.count()), "bad-step", "holds nothing"),
    "a delay that looks ahead": (lambda: card().over("1 h", delay="-1 s", n=hr.count()), "bad-step", "looks ahead"),
    "tiles of too small a window": (
        lambda: card().over("30 min", tiles=True, n=hr.count()), "bad-step", "30 min cannot be kept in tiles"),
    "tiles of a window that they do not divide": (
        lambda: card().over("1 h", "61 min", tiles=True, n=hr.count()), "bad-step", "1 h 1 min cannot be kept"),
    "tiles of a delayed window": (
        lambda: card().over("1 d", delay="1 d", tiles=True, n=hr.count()), "bad-step", "ends 1 d ago"),
    "tiles of rows in order": (
        lambda: card().over("1 d", tiles=True, n=hr.count(), some=hr.collect("at")), "bad-step", "asks for many"),
    "tiles of more than ttl": (
        lambda: card().over("60 d", tiles=True, n=hr.count()), "bad-step", "60 d cannot be kept in tiles with a ttl"),
    "no aggregate": (lambda: card().over("1 h", spent="amount"), "bad-step", "is no aggregate"),  # type: ignore[arg-type]
    "a sum of text": (lambda: card().over("1 h", spent=hr.sum("country")), "bad-aggregate", "makes no sense"),
    "a column's name": (lambda: tagged().over("1 h", spent=hr.count()), "bad-step", "'spent_1h' is taken"),
    "the same name twice": (
        lambda: card().over("1 h", n=hr.count()).over("60 min", delay="1 d", n=hr.count()), "bad-step", "is taken"),
    "the same column twice": (lambda: card().last("at", "at"), "bad-step", "'last_at' is taken"),
    "last of nothing": (lambda: card().last(), "bad-step", "last() of nothing"),
    "last of another column": (lambda: card().last("city"), "bad-step", "last() of 'city'"),
    "last of no rows": (lambda: card().last("at", n=0), "bad-step", "last() of 0 rows"),
    "last of more rows than a key holds": (lambda: card(most=10).last("at", n=10), "bad-step", "less than 10"),
    "a list with nulls": (lambda: tagged().last("note", n=2), "bad-step", "cannot list 2 values of note"),
    "a list of lists": (lambda: tagged().last("tags", n=2), "bad-step", "cannot list 2 values of tags"),
    "of a table": (
        lambda: card().over("1 d", of=APP.table(Tagged), n=hr.count()), "bad-step", "is a table"),  # type: ignore[arg-type]
    "of another app": (
        lambda: card().over("1 d", of=hr.App("other").stream(Label, disorder="0 s"), n=hr.count()),
        "bad-step", "belongs to"),
    "of the source itself": (lambda: card().over("1 d", of=PAYMENTS, n=hr.count()), "bad-step", "the source itself"),
    "of a stream without the key": (
        lambda: card().over("1 d", of=LABELS.select("fraud"), n=hr.count()), "unknown-column", "card_id"),
    "of a stream whose key is another type": (
        lambda: card().over("1 d", of=NUMBERED, n=hr.count()), "bad-step", "card_id is int in numbered and text in"),
    "a column of the source, of another stream": (
        lambda: card().over("1 d", of=LABELS, n=hr.sum("amount")), "unknown-column", "amount"),
    "an id that may be null": (lambda: card(source=TAGGED, once="note"), "bad-step", "may be null"),
    "an id of two": (lambda: card(once="payment_id, at"), "bad-step", "is 2 values"),
    "duplicates of what is not told once": (lambda: card().last("at").duplicates, "bad-step", "no .duplicates"),
    "a verb of streams": (lambda: card().where("amount > 1"), "no-such-verb", "has no .where"),  # type: ignore[attr-defined]
    "another name": (lambda: card().last("at").vectors.named("x"), "bad-step", "the step has its name"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_b4_a_mistake_is_refused_at_its_line(mistake: str) -> None:
    declare, code, words = REFUSED[mistake]
    with pytest.raises(DeclarationError) as refused:
        declare()
    assert refused.value.code == code
    assert words in f"{refused.value.what} {refused.value.why}"
    assert refused.value.where is not None
    assert refused.value.where.file == __file__


def test_vectors_have_the_rows_columns_then_windows_then_rows_before() -> None:
    found = card().over("1 h", "1 d 12 h", spent=hr.sum("amount"), n=hr.count()).last("at", "country").vectors
    assert found.columns[len(PAYMENTS.columns) :] == (
        Column("spent_1h", decimal(28, 2)),
        Column("n_1h", INT),
        Column("spent_1d12h", decimal(28, 2)),
        Column("n_1d12h", INT),
        Column("last_at", TIME, True),
        Column("last_country", TEXT, True),
    )
    assert [name for name, _ in found.key] == ["card_id"]
    assert found.called == "card"


def test_fe12_tiles_are_the_widest_that_divide_a_window_into_twelve_or_more() -> None:
    sizes = ("1 h", "90 min", "11 h", "12 h", "1 d", "7 d", "11 d", "12 d", "30 d")
    node = card().over(*sizes, tiles=True, n=hr.count()).over("90 d", of=LABELS, tiles=True, m=hr.count()).node
    assert [show(over.tile) for over in node.overs] == [
        "5 min", "5 min", "5 min", "1 h", "1 h", "1 h", "1 h", "1 d", "1 d", "1 d",
    ]  # fmt: skip
    assert node.features == card().over(*sizes, n=hr.count()).over("90 d", of=LABELS, m=hr.count()).node.features


def test_over_a_delayed_window_all_but_counts_may_be_null() -> None:
    found = card().over("28 d", delay="7 d", spent=hr.sum("amount"), n=hr.count(), where=hr.distinct("country"))
    nullable = {c.name: c.nullable for c in found.vectors.columns}
    assert (nullable["spent_28d"], nullable["n_28d"], nullable["where_28d"]) == (True, False, False)


def test_several_rows_before_are_a_list() -> None:
    assert card().last("amount", n=3).vectors.columns[-1] == Column("last_amount", list_of(MONEY))
    assert tagged().last("tags").vectors.columns[-1] == Column("last_tags", list_of(TEXT), True)


def test_what_several_features_ask_for_is_kept_once() -> None:
    over = (
        card().over("1 h", "1 d", a=hr.sum("amount"), b=hr.avg("amount"), c=hr.max("amount * 2")).last("amount", "at")
    )
    node = over.vectors.node
    assert isinstance(node, Featured)
    assert list(map(str, node.asked(0))) == ["amount", "amount * 2", "at"]
    names = [column.name for column in node.layout(0)]
    assert [names[place] for place in node.kept(0)] == ["amount", "(0)", "at"]


def test_over_another_stream_all_but_counts_may_be_null() -> None:
    found = card().over("28 d", of=LABELS, frauds=hr.sum("fraud"), n=hr.count()).vectors
    assert found.columns[len(PAYMENTS.columns) :] == (Column("frauds_28d", INT, True), Column("n_28d", INT))


def test_a_stream_is_one_input_however_often_windows_are_over_it() -> None:
    large = PAYMENTS.where("amount > 100")
    found = (
        card()
        .over("1 d", of=LABELS, a=hr.count())
        .over("1 h", of=large, b=hr.count())
        .over("7 d", of=LABELS, c=hr.sum("fraud + 1"))
    )
    node = found.vectors.node
    assert isinstance(node, Featured)
    assert node.inputs == (PAYMENTS.node, LABELS.node, large.node)
    assert [over.input for over in node.overs] == [1, 2, 1]
    assert [list(map(str, node.asked(number))) for number in range(3)] == [[], ["fraud + 1"], []]
    assert found.vectors.called == "card"


def test_the_key_of_another_stream_is_the_same_expression_over_its_columns() -> None:
    found = card(key="upper(card_id) as card").over("1 d", of=LABELS, n=hr.count()).vectors.node
    assert isinstance(found, Featured)
    assert [str(value) for _, value in found.others[0].keys] == ["upper(card_id)"]


def test_seen_is_the_last_column_whatever_is_declared_after_it() -> None:
    found = APP.features("my-card", key="card_id", source=PAYMENTS, ttl="1 d").seen().last("at")
    assert repr(found) == "<features my-card: last_at, seen_my_card>"
    assert found.vectors.columns[-1] == Column("seen_my_card", TEXT)


def test_a_row_is_known_by_an_expression_and_duplicates_have_the_columns_of_the_source() -> None:
    found = card(once="card_id || payment_id as id").last("payment_id")
    node = found.vectors.node
    assert isinstance(node, Featured)
    assert list(map(str, node.shown(0))) == ["payment_id", "card_id || payment_id"]
    assert found.duplicates.columns == PAYMENTS.columns
    assert [name for name, _ in found.duplicates.key] == ["card_id"]


def test_vectors_and_late_are_two_ends_of_one_step() -> None:
    features = card().last("at")
    assert features.late.node.inputs == (features.vectors.node,)
    assert features.late.columns[-1] == Column("watermark", TIME)
    assert [name for name, _ in features.late.key] == ["card_id"]


def test_it_shows_what_it_has() -> None:
    assert repr(card()) == "<features card: none yet>"
    assert repr(card().over("1 h", n=hr.count()).last("at")) == "<features card: n_1h, last_at>"
