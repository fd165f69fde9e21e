"""Patterns from Kafka to Kafka: what Spark wrote is what the reference gives for the schedule that Spark recorded."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import headrace as hr
from headrace.log.broker import Broker
from headrace.spark.session import Spark
from tests.spark.bench import Bench

DAY = datetime(2026, 11, 3, 10, tzinfo=UTC)


def events(topic: str) -> tuple[type, type]:
    """Logins and payments, in topics of this test's own."""

    @hr.event(topic=f"{topic}-logins", key="customer_id", time="at")
    class Login:
        customer_id: str
        ok: bool
        country: str | None
        tries: int
        at: datetime

    @hr.event(topic=f"{topic}-payments", key="card_id", time="at")
    class Payment:
        card_id: str
        customer_id: str
        country: str
        amount: hr.Money
        risk: float
        at: datetime

    return Login, Payment


def patterns(app: hr.App, topic: str, login: type, payment: type, disorder: str) -> None:
    """Patterns of one and of two streams beside each other, a window and a pattern behind patterns."""
    logins = app.stream(login, disorder=disorder, idle="300 ms", name="logins")
    payments = app.stream(payment, disorder=disorder, idle="300 ms", name="payments")
    out = lambda name: app.topic(f"{topic}-{name}", partitions=2)  # noqa: E731

    guess = app.pattern("guess", key="customer_id").first("miss", logins.where("not ok")).times(3).within("2 min")
    travel = (
        app.pattern("travel", key="customer_id", after_match="none")
        .first("login", logins.where("ok"))
        .then_any("buy", payments, where="buy.country <> login.country and amount > 20")
        .within("1 min")
    )
    unpaid = (
        app.pattern("unpaid", key="customer_id", after_match="next")
        .first("login", logins)
        .never("paid", payments, where="paid.amount > login.tries")
        .within("40 s")
    )
    rising = (
        app.pattern(
            "rising",
            key="customer_id",
            after_match="to last buy",
            select="customer_id, count(buy) as buys, sum(buy.amount) as spent, avg(buy.amount) as mean, "
            "max(buy.risk) as risk, list(buy.country) as countries, first(buy.at) as since, last(peak.amount) as peak, "
            "login.country as country",
        )
        .first("buy", payments)
        .or_more()
        .greedy()
        .until("amount < 5")
        .then("login", logins, within="30 s")
        .optional()
        .then("peak", payments, where="peak.amount >= avg(buy.amount) and peak.amount + buy.amount > 30")
        .within("2 min")
    )
    for pattern in (guess, travel, unpaid, rising):
        pattern.matches.to(out(pattern.name), key="customer_id")
        pattern.timeouts.to(out(f"{pattern.name}-timeouts"), key="customer_id")
    often = guess.matches.window(hr.tumbling("5 min"), lateness="0 s").agg(guesses=hr.count())
    often.to(out("often"))
    both = app.pattern("both", key="customer_id").first("guess", guess.matches).then("travel", travel.matches)
    both.within("5 min").matches.to(out("both"))


def random_rows(login: type, payment: type, seed: int, rows: int) -> list[object]:
    """Out of order, with equal times."""
    chance = random.Random(seed)
    found: list[object] = []
    at = DAY
    for number in range(rows):
        at += timedelta(seconds=chance.choice((0, 1, 3, 10)))
        time = at - timedelta(seconds=chance.choice((0, 0, 0, 2, 10, 60)), microseconds=chance.choice((0, 0, 1)))
        customer, country = f"c{chance.randrange(3)}", chance.choice(("DK", "SE"))
        if chance.random() < 0.5:
            place = chance.choice((country, country, None))
            found.append(login(customer, chance.random() < 0.4, place, chance.randrange(40), time))
        else:
            amount, risk = hr.money(chance.randrange(50)), chance.choice((0.5, 1.25))
            found.append(payment(f"card{number}", customer, country, amount, risk, time))
    return found


def test_p1_to_p5_history_equals_the_reference_on_the_recorded_schedule(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app, both = hr.App("bench"), events(topic)
    patterns(app, topic, *both, "20 s")
    run = Bench(spark, broker, tmp_path, app)
    run.fill(random_rows(*both, 1, 160))

    run.history(max_records=40)

    records = run.check().records
    assert {record.topic.removeprefix(f"{topic}-") for record in records} >= {
        "guess", "guess-timeouts", "travel", "unpaid", "rising", "rising-timeouts", "often", "both",
    }  # fmt: skip


def test_p1_to_p5_a_live_run_with_a_stop_equals_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app, both = hr.App("bench"), events(topic)
    patterns(app, topic, *both, "20 s")
    run = Bench(spark, broker, tmp_path, app)
    rows = random_rows(*both, 7, 120)
    for part in (rows[:70], rows[70:]):
        run.fill(part)
        run.live(40, rows=len(part))
    run.check(stopped=True)
