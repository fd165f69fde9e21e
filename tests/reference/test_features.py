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


@hr.event(topic="labels", key="payment_id", time="at", id="payment_id")
class Label:
    payment_id: str
    card_id: str
    fraud: int
    at: datetime


def labelled(**more: Any) -> hr.App:
    app = hr.App("bank")
    payments, labels = app.stream(Payment, disorder="0 s"), app.stream(Label, disorder="0 s")
    card = (
        app.features("card", key="card_id", source=payments, ttl="1 d", lateness="0 s", **more)
        .over("1 h", times=hr.count())
        .over("2 h", of=labels, frauds=hr.sum("fraud"), known=hr.count())
        .over("1 h", of=payments.where("amount >= 100"), large=hr.count())
        .seen()
    )
    card.vectors.to(app.topic("features"))
    card.late.to(app.topic("late"))
    return app


def test_fe9_rows_of_other_streams_are_told_to_those_of_the_source_only() -> None:
    with hr.testing.run(labelled()) as t:
        t.send(paid(t, 1, "10", "10:00"), Label("p0", "c", 1, t.time("10:10")), Label("p0", "d", 1, t.time("10:10")))
        t.send(paid(t, 2, "500", "10:20"), Label("p1", "c", 0, t.time("10:30")), paid(t, 3, "200", "10:40"))
        t.send(paid(t, 4, "1", "12:25"))
        rows = t.read("features", "payment_id, times_1h, frauds_2h, known_2h, large_1h")
        assert [tuple(row.as_dict().values()) for row in rows] == [
            ("p1", 1, None, 0, 0), ("p2", 2, 1, 1, 1), ("p3", 3, 1, 2, 2), ("p4", 1, 0, 1, 0),
        ]  # fmt: skip
        counts = t.counts("card")
        assert (counts.received, counts.used) == (9, 9)


def test_fe9_at_one_time_what_is_remembered_has_its_turn_first() -> None:
    with hr.testing.run(labelled()) as t:
        t.batch(paid(t, 1, "100", "10:00"), Label("p0", "c", 1, t.time("10:00")))
        (row,) = t.read("features")
        assert (row.frauds_2h, row.large_1h) == (1, 1)


def test_fe9_a_remembered_row_is_late_when_no_row_can_ask_for_it_and_is_only_counted() -> None:
    with hr.testing.run(labelled()) as t:
        t.send(paid(t, 1, "1", "12:00"), Label("p0", "c", 1, t.time("12:00")))
        t.send(Label("p1", "c", 1, t.time("10:00")), Label("p2", "c", 1, t.time("10:01")))
        t.send(paid(t, 2, "1", "12:00"))
        assert [row.frauds_2h for row in t.read("features")] == [None, 2]
        assert len(t.read("late")) == 0
        counts = t.counts("card")
        assert (counts.received, counts.used, counts.late) == (5, 4, 1)


def test_fe10_a_payment_that_came_before_is_set_aside_and_not_counted_again() -> None:
    with hr.testing.run(labelled(once="payment_id")) as t:
        t.send(paid(t, 1, "1", "10:00"), paid(t, 2, "1", "10:10"), paid(t, 2, "7", "10:20"), paid(t, 3, "1", "10:30"))
        assert [(row.payment_id, row.times_1h) for row in t.read("features")] == [("p1", 1), ("p2", 2), ("p3", 3)]
        (twice,) = t.duplicates("card")
        assert twice.amount == hr.money(7)
        counts = t.counts("card")
        assert (counts.received, counts.used, counts.duplicates) == (4, 3, 1)


def test_fe11_what_was_seen_names_the_last_row_of_each_partition() -> None:
    with hr.testing.run(labelled()) as t:
        t.send(Label("p0", "c", 1, t.time("10:00")), paid(t, 1, "1", "10:00"), paid(t, 2, "1", "10:10", "d"))
        t.send(paid(t, 3, "1", "10:20"), paid(t, 4, "1", "13:00"))
        seen = [row.seen_card.rsplit(" ", 1)[0] for row in t.read("features")]
        assert seen == ["labels/0@0 payments/0@0", "payments/0@1", "labels/0@0 payments/0@2", "payments/0@3"]


def test_fe12_windows_in_tiles_forget_a_tile_at_a_time_and_are_no_reason_to_be_full() -> None:
    app = hr.App("bank")
    payments = app.stream(Payment, disorder="0 s")
    card = app.features("card", key="card_id", source=payments, ttl="1 h", lateness="1 min", most=3)
    card.over("1 h", tiles=True, spent=hr.sum("amount"), times=hr.count()).vectors.to(app.topic("features"))
    with hr.testing.run(app) as t:
        t.send(*(paid(t, n, "1", f"10:{2 * n:02}") for n in range(20)))
        t.send(paid(t, 20, "7", "11:04"), paid(t, 21, "7", "11:05"))
        assert [row.times_1h for row in t.read("features")] == [*range(1, 21), 18, 17]
        assert (t.read("features")[-1].spent_1h, len(t.dead())) == (hr.money(29), 0)


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
