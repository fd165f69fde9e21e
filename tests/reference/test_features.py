"""Features through a plan (rules FE1 to FE8): what a person who declares them sees."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import headrace as hr


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: hr.Money
    country: str | None
    at: datetime


def app_of(disorder: str = "0 s", **more: Any) -> hr.App:
    app = hr.App("bank")
    payments = app.stream(Payment, disorder=disorder)
    given: dict[str, Any] = {"key": "card_id", "source": payments, "ttl": "1 d", "lateness": "0 s"} | more
    card = (
        app.features("card", **given)
        .over("1 h", spent=hr.sum("amount"), mean=hr.avg("amount"), twice=hr.max("amount * 2"), times=hr.count())
        .over("1 h", delay="1 h", before=hr.sum("amount"))
        .last("at", "country")
    )
    card.vectors.to(app.topic("features"))
    card.late.to(app.topic("late"))
    return app


def paid(t: Any, number: int, amount: str, at: str, card: str = "c") -> Payment:
    return Payment(f"p{number}", card, hr.money(amount), "SE" if number % 2 else None, t.time(at))


def test_fe1_to_fe3_every_row_comes_with_what_is_known_of_its_key() -> None:
    with hr.testing.run(app_of()) as t:
        t.send(
            paid(t, 1, "10", "10:00"), paid(t, 2, "5", "10:30"), paid(t, 3, "1", "11:00"), paid(t, 4, "2", "11:10", "d")
        )
        rows = t.read("features", "payment_id, amount, spent_1h, mean_1h, twice_1h, times_1h, before_1h, last_at")
        assert [tuple(row.as_dict().values()) for row in rows] == [
            ("p1", hr.money(10), hr.money(10), hr.money(10), hr.money(20), 1, None, None),
            ("p2", hr.money(5), hr.money(15), hr.money("7.5"), hr.money(20), 2, None, t.time("10:00")),
            ("p3", hr.money(1), hr.money(6), hr.money(3), hr.money(10), 2, hr.money(10), t.time("10:30")),
            ("p4", hr.money(2), hr.money(2), hr.money(2), hr.money(4), 1, None, None),
        ]
        assert [row.last_country for row in t.read("features")] == [None, "SE", None, None]


def test_fe4_in_a_batch_rows_go_by_time_between_batches_as_they_come() -> None:
    told = []
    for apart in (False, True):
        with hr.testing.run(app_of("1 h")) as t:
            rows = [paid(t, 1, "10", "10:00"), paid(t, 2, "5", "10:30"), paid(t, 3, "1", "10:10")]
            t.send(*rows) if apart else t.batch(*rows)
            told.append({row.payment_id: row.spent_1h for row in t.read("features")})
    assert told == [
        {"p1": hr.money(10), "p3": hr.money(11), "p2": hr.money(16)},
        {"p1": hr.money(10), "p2": hr.money(15), "p3": hr.money(11)},
    ]


def test_fe5_after_a_silence_of_ttl_the_key_is_forgotten() -> None:
    with hr.testing.run(app_of(ttl="30 min")) as t:
        t.send(paid(t, 1, "10", "10:00"), paid(t, 2, "5", "10:29"), paid(t, 3, "1", "10:59"))
        assert [(row.times_1h, row.last_at) for row in t.read("features")] == [
            (1, None), (2, t.time("10:00")), (1, None),
        ]  # fmt: skip


def test_fe6_a_row_behind_the_watermark_has_its_vector_within_lateness_and_is_late_after_it() -> None:
    with hr.testing.run(app_of(lateness="10 min")) as t:
        t.send(paid(t, 1, "10", "10:00"), paid(t, 2, "5", "11:05"), paid(t, 3, "1", "10:55"), paid(t, 4, "2", "10:54"))
        assert [(row.payment_id, row.times_1h) for row in t.read("features")] == [("p1", 1), ("p2", 1), ("p3", 2)]
        (late,) = t.read("late")
        assert (late.payment_id, late.watermark) == ("p4", t.time("11:05"))
        counts = t.counts("card")
        assert (counts.received, counts.used, counts.late, counts.held) == (4, 3, 1, 0)


def test_fe8_a_key_that_is_full_gives_a_dead_letter() -> None:
    with hr.testing.run(app_of(most=2)) as t:
        t.send(*(paid(t, n, "1", f"10:0{n}") for n in range(3)))
        t.send(paid(t, 3, "1", "12:02"))  # time has not moved yet
        t.send(paid(t, 4, "1", "12:03"))
        assert [row.payment_id for row in t.read("features")] == ["p0", "p1", "p4"]
        assert [(letter.reason, letter.step) for letter in t.dead()] == [("too-many", "card"), ("too-many", "card")]


def test_vectors_stay_the_rows_they_were_and_go_on_as_a_stream() -> None:
    """Same place and id; windows, conditions and patterns take them like any other row."""
    app = app_of()
    plain = hr.App("bank")
    plain.stream(Payment, disorder="0 s").to(plain.topic("features"))
    ids = []
    for one in (app, plain):
        with hr.testing.run(one) as t:
            t.send(paid(t, 1, "10", "10:00"), paid(t, 2, "5", "10:30"))
            ids.append([record.id for record in t.records("features")])
    assert ids[0] == ids[1]
