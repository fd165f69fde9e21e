"""The decision flow, one kind of fraud after the other, without a JVM."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from bank.decide import decide, decisions
from bank.decided import Decided
from bank.events import Customer, Label
from bank.policy import policy
from headrace.model.event import event_type
from headrace.plan.places import shuffled
from headrace.plan.plan import build
from tests.bank.deciding import lived, pay

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def t() -> Any:
    """The bank, with its policy and a customer who has paid about 20 twelve times, an hour apart."""
    with hr.testing.run(decide, realtime=True) as t:
        t.policy("fraud", policy())
        t.send(Customer("u1", "CH", t.time("00:00"), hr.money(500), t.time("00:00")))
        for number in range(12):
            t.send(pay(number, t.time("00:00") + number * HOUR, amount=f"{18 + number % 5}.00"))
        yield t


def last(t: Any) -> Any:
    return t.read("decisions.raw")[-1]


def test_what_the_flow_writes_is_what_is_read_of_it() -> None:
    assert decisions.columns == event_type(Decided).columns


def test_a_decision_takes_three_shuffles() -> None:
    (flow,) = build(decide).flows
    assert len(shuffled(flow)) == 3


def test_the_usual_is_allowed(t: Any) -> None:
    assert {(row.decision, tuple(row.reasons)) for row in t.read("decisions.raw")} == {("allow", ())}
    assert last(t).as_dict().items() >= {"times_30d": 12, "misses_1d": 0, "km": 0.0, "abroad": False}.items()


def test_a_large_amount_is_not(t: Any) -> None:
    t.send(pay(20, t.time("11:30"), "900.00"))
    assert last(t).decision != "allow"
    assert "eight times what the card usually pays" in last(t).reasons
    assert "over the limit of a day" in last(t).reasons
    assert last(t).ratio == pytest.approx(45, rel=0.1)  # against the others, itself aside


def test_nobody_travels_that_fast(t: Any) -> None:
    t.send(pay(20, t.time("11:20"), country="BR", terminal_id="t2", lat=-23.55, lon=-46.63))
    assert last(t).decision == "decline"
    assert "nobody travels that fast" in last(t).reasons
    assert 9000 < last(t).km < 10000
    assert last(t).acts_7d == 1  # the pattern has found it at the payment itself


def test_guessed_pins_are_declined_and_a_wrong_one_always(t: Any) -> None:
    for number in range(3):
        t.send(pay(20 + number, t.time("11:20") + number * MINUTE / 2, pin_ok=False))
        assert (last(t).decision, last(t).reasons) == ("decline", ["wrong PIN"])
    t.send(pay(23, t.time("11:22")))
    assert last(t).decision == "decline"
    assert "three wrong PINs within five minutes" in last(t).reasons
    assert last(t).acts_7d == 1
    t.send(pay(24, t.time("12:00")))  # the five minutes are over
    assert "three wrong PINs within five minutes" not in last(t).reasons


def test_a_terminal_with_known_frauds_is_looked_at(t: Any) -> None:
    for number in range(2):
        t.send(Label(f"x{number}", "c", "t1", "u", hr.money(30), 1, "customer", t.time("11:10")))
    t.send(Label("x2", "c", "t2", "u", hr.money(30), 0, "reviewer", t.time("11:10")))
    t.send(pay(20, t.time("11:20"), terminal_id="t2"))
    assert last(t).frauds_28d == 0
    t.send(pay(21, t.time("11:30")))
    assert (last(t).decision, last(t).frauds_28d) == ("review", 2)
    assert "frauds at this terminal became known" in last(t).reasons


def test_a_payment_that_comes_again_or_after_a_later_one_is_no_suspicious_act(t: Any) -> None:
    for at in ("11:05", "11:25", "11:15", "11:25"):  # the third comes late, the last again; all of one place
        t.send(pay(int(at[-2:]), t.time(at)))
    for _ in range(3):  # one wrong PIN, told three times
        t.send(pay(26, t.time("11:26"), pin_ok=False))
    t.send(pay(27, t.time("11:27")))
    assert (last(t).payment_id, last(t).acts_7d, last(t).misses_5min) == ("p27", 0, 1)


def test_suspicious_acts_of_a_customer_count(t: Any) -> None:
    for number in range(8):  # the PIN of another card of theirs is guessed twice
        t.send(pay(30 + number, t.time("11:10") + number * MINUTE / 2, card_id="card-b", pin_ok=number % 4 == 3))
    t.send(pay(20, t.time("11:20")))
    assert (last(t).acts_7d, last(t).misses_5min) == (2, 0)
    assert "suspicious acts with this customer's cards" in last(t).reasons


def test_a_payment_that_comes_again_is_not_decided_again(t: Any) -> None:
    t.send(pay(11, t.time("11:00")))
    assert len(t.read("decisions.raw")) == 12
    assert [row.payment_id for row in t.read("payments.twice")] == ["p11"]


def test_a_payment_that_comes_an_hour_late_is_set_aside(t: Any) -> None:
    t.advance("1 min")  # labels, of which there are none, hold the watermark no longer
    t.send(pay(20, t.time("09:30")))
    assert [row.payment_id for row in t.read("payments.late")] == ["p20"]
    assert len(t.read("decisions.raw")) == 12


def test_of_a_made_up_life_most_fraud_is_stopped_and_little_else() -> None:
    rows, frauds = lived().rows, lived().frauds
    stopped = {row["payment_id"] for row in rows if row["decision"] != "allow"}
    known = [row["payment_id"] for row in rows if row["times_30d"] > 5]  # of cards that have a past
    caught = [one for one in known if one in frauds and one in stopped]
    wrong = [one for one in known if one not in frauds and one in stopped]
    assert len(caught) / sum(one in frauds for one in known) > 0.6
    assert len(wrong) / len(known) < 0.02
