"""Conditions over earlier rows: what is told apart, and what becomes a slot."""

from __future__ import annotations

import pytest

from headrace.base.errors import ExpressionError
from headrace.expr import sql
from headrace.expr.check import Source
from headrace.expr.earlier import Fits, Rows
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, Column, Party
from headrace.model.aggregate import result_of

PAYMENT = (Column("amount", MONEY), Column("country", TEXT), Column("ok", BOOL))
LOGIN = (Column("country", TEXT), Column("tries", INT))
TAKEN = {"login": Party("logins", LOGIN), "buy": Party("payments", PAYMENT)}


def condition(text: str) -> Fits:
    source = Source(text=text)
    rows = Rows(source, result_of, TAKEN, "buy", Party("payments", PAYMENT))
    return rows.condition(sql.term(source, over_rows=True))


@pytest.mark.parametrize(
    ("text", "alone", "test", "asks"),
    [
        ("amount > 100", "amount > 100", None, []),
        ("buy.amount > 100 and ok", "amount > 100 and ok", None, []),
        ("buy.country <> login.country", None, 'payments.country <> last(login.country)', ["last(login.country)"]),
        ("ok and country = login.country and amount > 1", "ok and amount > 1",
         'payments.country = last(login.country)', ["last(login.country)"]),
        ("ok or country = login.country", None, 'payments.ok or payments.country = last(login.country)',
         ["last(login.country)"]),
        ("amount > 2 * avg(buy.amount)", None, 'payments.amount > 2 * avg(buy.amount)', ["avg(buy.amount)"]),
        ("count(buy) = 0 or amount > last(buy.amount)", None,
         'count(buy) = 0 or payments.amount > last(buy.amount)', ["count(buy)", "last(buy.amount)"]),
        ("case when ok then sum(login.tries) else first(login.tries) end = login.tries", None,
         'case when payments.ok then sum(login.tries) else first(login.tries) end = last(login.tries)',
         ["sum(login.tries)", "first(login.tries)", "last(login.tries)"]),
        ("count(login.country) + cast(min(login.tries) as float) > 1e0", None,
         'count(login.country) + cast(min(login.tries) as float) > 1.0e0',
         ["count(login.country)", "min(login.tries)"]),
    ],
)  # fmt: skip
def test_p5_the_row_alone_is_told_apart_from_slots(
    text: str, alone: str | None, test: str | None, asks: list[str]
) -> None:
    found = condition(text)

    assert (found.alone and str(found.alone), found.test and str(found.test)) == (alone, test)
    assert [ask.name for ask in found.asks] == asks


def test_slots_know_their_columns_and_types() -> None:
    money, rows, mean = condition("avg(buy.amount) > 1 and count(login) > avg(login.tries)").asks

    assert (money.step, money.fn, money.column, str(money.type)) == ("buy", "avg", "payments.amount", "decimal(22, 6)")
    assert (rows.step, rows.column, rows.type, rows.nullable) == ("login", None, INT, False)
    assert (mean.type, mean.nullable) == (FLOAT, True)  # login may have been left out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("count() = 1", "over which rows"),
        ("sum(login) = 1", "over which rows"),
        ("count(nobody) = 1", "no row named 'nobody'"),
        ("sum(login.country) = 1", "makes no sense"),
        ("max(buy.ok)", "makes no sense"),
        ("list(login.tries) = 1", "cannot be computed"),
        ("avg(avg(login.tries)) = 1", "over which rows"),
    ],
)
def test_what_is_refused_says_where(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words) as caught:
        condition(text)
    assert caught.value.span is not None
