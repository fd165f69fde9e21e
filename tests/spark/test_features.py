"""Features from Kafka to Kafka: what Spark wrote is what the reference gives for the schedule that Spark recorded."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import headrace as hr
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.spark.session import Spark
from tests.spark.bench import Bench

DAY = datetime(2026, 11, 3, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def event_on(topic: str) -> type:
    @hr.event(topic=topic, key="payment_id", time="at")
    class Payment:
        payment_id: str
        card_id: str
        amount: hr.Money
        risk: float
        country: str | None
        at: datetime

    return Payment


def label_on(topic: str) -> type:
    @hr.event(topic=f"{topic}-labels", key="card_id", time="at")
    class Label:
        card_id: str
        fraud: int
        weight: float
        at: datetime

    return Label


def known(app: hr.App, topic: str, payment: type, label: type) -> None:
    """Two sets: one of plain columns after a key of its own, with labels and matches beside its rows, each told once;
    one of computed arguments over what the first gave."""
    out = lambda name: app.topic(f"{topic}-{name}", partitions=1)  # noqa: E731
    payments = app.stream(payment, disorder="5 s")
    labels = app.stream(label, disorder="5 s")
    dear = payments.where("amount > 40")
    twice = app.pattern("twice", key="card_id", select="card_id, b.amount as most")
    acts = twice.first("a", dear).then("b", dear).within("20 s").matches
    card = (
        app.features("card", key="card_id", source=payments, ttl="3 min", lateness="3 s", most=12, once="payment_id")
        .over("15 s", "2 min", spent=hr.sum("amount"), mean=hr.avg("amount"), times=hr.count())
        .over("1 min", delay="30 s", risk=hr.avg("risk"), places=hr.distinct("country"), some=hr.collect("amount"))
        .last("at", "country")
        .over("1 min", of=labels, frauds=hr.sum("fraud"), weight=hr.avg("weight * 2"))
        .over("2 min", of=acts, acts=hr.count(), most=hr.max("most"))
        .over("30 s", of=dear, dear=hr.count())
        .last("amount", n=3)
        .seen()
    )
    card.vectors.to(out("card"))
    card.duplicates.to(out("twice"))
    card.late.to(out("late"))
    busy = card.vectors.where("times_2min > 1")
    country = app.features("country", key="coalesce(country, '?') as country", source=busy, ttl="1 min")
    country = country.over("1 min", peak=hr.max("risk * 2"), share=hr.sum("amount * amount"), last=hr.last("last_at"))
    country.vectors.select("payment_id, country, peak_1min, share_1min, last_1min").to(out("country"), key="payment_id")


def random_rows(payment: type, label: type, seed: int, rows: int) -> list[object]:
    """Out of order, with equal times and silences, some twice; the last are late."""
    chance = random.Random(seed)
    found: list[object] = []
    at = DAY
    for number in range(rows):
        at += timedelta(seconds=chance.choice((0, 1, 3, 10, 10 if number % 50 else 200)))
        time = at - timedelta(seconds=chance.choice((0, 0, 0, 2, 10, 25, 60)), microseconds=chance.choice((0, 0, 1)))
        amount, risk = hr.money(chance.randrange(50)), chance.choice((0.5, 1.25))
        country = chance.choice(("DK", "SE", None))
        found.append(payment(f"p{number}", f"c{chance.randrange(3)}", amount, risk, country, time))
        if chance.random() < 0.3:
            found.append(label(f"c{chance.randrange(3)}", chance.randrange(2), risk, time))
        if chance.random() < 0.1:
            found.append(chance.choice([row for row in found[-5:] if isinstance(row, payment)]))
    return [*found, payment("old", "c0", hr.money(1), 0.5, None, DAY), label("c0", 1, 0.5, DAY)]


def test_fe1_to_fe11_a_live_run_with_a_stop_equals_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app, payment, label = hr.App("bench"), event_on(topic), label_on(topic)
    known(app, topic, payment, label)
    run = Bench(spark, broker, tmp_path, app)
    rows = random_rows(payment, label, 1, 110)
    for part in (rows[:80], rows[80:]):
        run.fill(part)
        run.live(40, rows=len(part))
    engine = run.check(stopped=True)
    assert {record.topic.removeprefix(f"{topic}-") for record in engine.records} == {"card", "late", "twice", "country"}
    assert {letter.reason for letter in engine.dead} == {"too-many"}


def test_fe12_windows_in_tiles_live_with_a_stop_equal_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Rows over a day and a half, out of order by up to an hour; every batch puts some of them into tiles."""
    app, payment, label = hr.App("bench"), event_on(topic), label_on(topic)
    payments, labels = app.stream(payment, disorder="20 min"), app.stream(label, disorder="20 min")
    card = (
        app.features("card", key="card_id", source=payments, ttl="1 d", lateness="20 min", once="payment_id")
        .over("1 h", "12 h", "1 d", tiles=True, spent=hr.sum("amount"), times=hr.count(), most=hr.max("amount * 2"))
        .over("2 h", tiles=True, risk=hr.avg("risk"), spread=hr.stddev("risk"), places=hr.distinct("country"))
        .over("2 h", "12 h", tiles=True, begun=hr.first("amount"), ended=hr.last("country"))
        .over("2 h", exact=hr.sum("amount"), mean=hr.avg("risk"))
        .over("6 h", of=labels, tiles=True, frauds=hr.sum("fraud"), weight=hr.avg("weight"))
        .last("country")
        .seen()
    )
    card.vectors.to(app.topic(f"{topic}-card", partitions=1))
    card.late.to(app.topic(f"{topic}-late", partitions=1))
    run = Bench(spark, broker, tmp_path, app)
    chance, rows, at = random.Random(3), [], DAY
    for number in range(160):
        at += chance.choice((0, 1, 4, 20, 30)) * MINUTE
        time = at - chance.choice((0, 0, 0, 3, 15, 60)) * MINUTE
        key, risk = f"c{chance.randrange(2)}", chance.random()
        country = chance.choice(("DK", "SE", None))
        rows.append(payment(f"p{number}", key, hr.money(chance.randrange(50)), risk, country, time))
        if chance.random() < 0.3:
            rows.append(label(key, chance.randrange(2), risk, time - chance.choice((0, 90)) * MINUTE))
    rows.append(payment("old", "c0", hr.money(1), 0.5, None, DAY))
    for part in (rows[:120], rows[120:]):
        run.fill(part)
        run.live(30, rows=len(part))
    engine = run.check(stopped=True)
    assert {record.topic.removeprefix(f"{topic}-") for record in engine.records} == {"card", "late"}


def test_fe9_over_history_both_streams_are_read_in_step(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """However small the batches, a payment is told of the labels that were known at its time, and of no others."""
    app, payment, label = hr.App("bench"), event_on(topic), label_on(topic)
    payments, labels = app.stream(payment, disorder="0 s"), app.stream(label, disorder="0 s")
    card = app.features("card", key="card_id", source=payments, ttl="1 h").over("1 min", of=labels, known=hr.count())
    card.vectors.to(app.topic(f"{topic}-told", partitions=1))
    run = Bench(spark, broker, tmp_path, app)
    chance, rows = random.Random(5), []
    for second in range(150):
        key, at = f"c{chance.randrange(3)}", DAY + timedelta(seconds=second)
        paid = chance.random() < 0.6
        rows.append(payment(f"p{second}", key, hr.money(1), 0.5, None, at) if paid else label(key, 1, 0.5, at))
    run.fill(rows)
    run.history(40)

    told = [json.loads(message.value() or b"") for message in read(broker, f"{topic}-told")]
    known = {one["payment_id"]: one["known_1min"] for one in told}
    assert known == {
        row.payment_id: sum(
            isinstance(other, label) and other.card_id == row.card_id and row.at - MINUTE < other.at <= row.at
            for other in rows
        )
        for row in rows
        if isinstance(row, payment)
    }
