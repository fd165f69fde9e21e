"""The public test kit: sending, time, reading, and what it says when something is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import headrace as hr
from headrace.base.errors import BadApp, BadCall, BadEvent, BadTime, ModeRefused, UnknownColumn, UsageError
from headrace.testing import Row, Rows
from tests.reference.shop import Order, order, shop, user
from tests.reference.signs import app, send
from tests.shapes import Payment, Reading, spend


def pay(t: hr.testing.Run, at: str, amount: str = "10.00", card: str = "c1", terminal: str = "t1") -> Payment:
    return Payment("p", card, "u1", terminal, hr.money(amount), "SE", t.time(at))


def test_the_example_of_the_readme() -> None:
    with hr.testing.run(spend()) as t:
        t.send(pay(t, "10:01"), pay(t, "10:02", "2.50", terminal="t2"), pay(t, "10:03", "-5.00"))
        t.end()

        first = t.read("card-spend")[0]
        assert (first.card_id, first.spent, first.times, first.terminals) == ("c1", hr.money("12.50"), 2, 2)
        assert len(t.read("card-spend")) == 12


def test_reading_is_of_all_rows_so_far_and_reading_twice_gives_the_same() -> None:
    with hr.testing.run(spend()) as t:
        t.send(pay(t, "10:01"))
        assert t.read("card-spend") == []
        t.end()

        assert t.read("card-spend") == t.read("card-spend") != []


def test_rows_equal_dicts_and_print_as_a_table() -> None:
    with hr.testing.run(spend()) as t:
        t.send(pay(t, "10:01"), pay(t, "10:08"))
        t.end()
        rows = t.read("card-spend", "card_id, window_end, spent")

        assert rows[0] == {"card_id": "c1", "window_end": t.time("10:05"), "spent": hr.money("10.00")}
        assert repr(rows).splitlines()[:4] == [
            "card_id | window_end       | spent",
            "--------+------------------+------",
            "c1      | 2026-11-03 10:05 | 10.00",
            "c1      | 2026-11-03 10:10 | 20.00",
        ]


def test_an_empty_table_says_where_the_rows_are() -> None:
    with hr.testing.run(spend()) as t:
        t.send(pay(t, "10:01"), pay(t, "10:02", "-1.00"))

        assert repr(t.read("card-spend")) == "no rows (1 held, 1 filtered)"


def test_a_row_shows_its_columns() -> None:
    row = Row(("a", "at"), (1, datetime(2026, 11, 3, 10, 0, 0, 5, UTC)))

    assert repr(row) == "Row(a=1, at=2026-11-03 10:00:00.000005)"
    assert row["a"] == row.a == 1
    assert row == Row(("a", "at"), (1, datetime(2026, 11, 3, 10, 0, 0, 5, UTC)))
    assert row != {"a": 1}
    assert not hasattr(row, "b")
    with pytest.raises(UnknownColumn, match="no column 'b'"):
        row["b"]
    assert repr(Rows(("a",))) == "no rows"
    assert repr(Row(("mean", "all"), (1 / 3, [2.0, 1e20 / 3]))) == "Row(mean=0.333333, all=[2.0, 3.33333e+19])"


def test_time_is_in_the_tests_hand() -> None:
    with hr.testing.run(spend(), now=datetime(2030, 1, 1, tzinfo=UTC)) as t:
        assert t.now == datetime(2030, 1, 1, tzinfo=UTC)
        t.advance("1 min")
        assert t.now == datetime(2030, 1, 1, 0, 1, tzinfo=UTC)
        assert t.time("10:00") == datetime(2026, 11, 3, 10, tzinfo=UTC)
        with pytest.raises(BadTime, match="no time of day"):
            t.time("25:00")


def test_what_cannot_be_sent_or_read_says_so() -> None:
    with hr.testing.run(spend()) as t:
        with pytest.raises(BadEvent, match="is no event"):
            t.send("payment")
        with pytest.raises(UsageError, match="reads the topic 'readings'"):
            t.send(Reading("r", "s", t.time("10:00"), 0.0, 0, hr.money(0), True))
        with pytest.raises(UsageError, match="nothing is sent to the topic 'card-spent'") as wrong:
            t.read("card-spent")
        assert wrong.value.fix == "did you mean 'card-spend'?"
        with pytest.raises(UsageError, match="there is no step 'window'"):
            t.counts("window")
        with pytest.raises(UnknownColumn, match="no column 'spend'") as unknown:
            t.read("card-spend", "spend")
        assert unknown.value.fix == "did you mean 'spent'?"
        with pytest.raises(UsageError, match="a list is not an event") as listed:
            t.send([pay(t, "10:00")])
        assert listed.value.fix.startswith("t.send(*events)")
        with pytest.raises(UsageError, match="is no list of columns"):
            t.read("card-spend", ["spent"])  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="is no name of a topic"):
            t.read(hr.App("bank").topic("card-spend"))  # type: ignore[arg-type]
        with pytest.raises(BadTime, match="10 is no time of day"):
            t.time(10)  # type: ignore[arg-type]
        with pytest.raises(BadCall, match="missing a required argument: 'at'") as called:
            t.delete(Payment, "c1")  # type: ignore[call-arg]
        assert called.value.where is not None
        assert called.value.where.file.endswith("test_kit.py")
        for partition in (1, 5, -1):
            with pytest.raises(UsageError, match=f"no partition {partition}"):
                t.send(pay(t, "10:00"), partition=partition)
        with pytest.raises(UsageError, match="no partition 1"):
            t.mark(Payment, t.time("10:00"), partition=1)
        with pytest.raises(UsageError, match="cannot advance by -5 s"):
            t.advance("-5 s")
        t.end()
        with pytest.raises(UsageError, match="the input has ended"):
            t.send(pay(t, "10:00"))


def test_late_rows_and_duplicates_can_be_read_without_a_reader() -> None:
    app = hr.App("bank")
    once = app.stream(Payment, disorder="0 s").dedup("terminal_id", within="1 h").named("once")
    once.key_by("card_id").window(hr.tumbling("5 min"), lateness="0 s").agg(n=hr.count()).named("w").to(app.topic("o"))
    with hr.testing.run(app) as t:
        t.send(pay(t, "10:20"), pay(t, "10:21"), pay(t, "10:01", terminal="t2"))

        assert [row.at for row in t.duplicates("once")] == [t.time("10:21")]
        (late,) = t.late("w")
        assert (late.at, late.watermark) == (t.time("10:01"), t.time("10:21"))


def test_topics_can_have_different_numbers_of_partitions() -> None:
    with hr.testing.run(spend(), partitions={"payments": 2}) as t:
        t.send(pay(t, "10:01"), partition=1)
        assert t.watermark("payments") is None
        t.send(pay(t, "10:02"))

        assert t.watermark("payments") == t.time("10:00:30")
        with pytest.raises(UsageError, match="reads the topic 'readings'"):
            t.watermark("readings")


def test_a_match_is_asked_for_by_pattern_and_key() -> None:
    bank, signs, _ = app()
    twice = bank.pattern("twice", key="key, what", select="list(a.value) as took").first("a", signs).times(2)
    twice.within("1 min").matches.to(bank.topic("alerts"))
    with hr.testing.run(bank) as t:
        send(t, "a1 b1 a2 b2 a3")
        t.end()

        assert t.read("alerts") == [t.match("twice", key=("k", "a")), t.match("twice", key=("k", "b"))]
        assert t.match("twice", key=("k", "a")) == {"took": [1, 2]}
        assert t.timeouts("twice") == [{"took": [3]}]
        with pytest.raises(UsageError, match="0 matches for the key"):
            t.match("twice", key=("k", "c"))
        with pytest.raises(UsageError, match="there is no step 'twise'"):
            t.match("twise", key="k")
        with pytest.raises(UsageError, match=r"signs has no \.timeouts"):
            t.timeouts("signs")


def test_a_table_is_what_a_reader_of_the_topic_holds_now() -> None:
    with hr.testing.run(shop()[0]) as t:
        t.send(user(t, "10:00"), order(t, "10:01", "o2"), order(t, "10:02", "o1"), order(t, "10:03", "o2", amount=7))
        t.delete(Order, "o1", at=t.time("10:04"))

        assert t.table("view", "order_id, amount") == [{"order_id": "o2", "amount": 7}]
        assert [row.order_id for row in t.read("view")] == ["o2", "o1", "o2", "o1"]


def test_a_store_with_keys_is_a_table_and_one_without_is_not() -> None:
    bank = hr.App("bank")
    payments = bank.stream(Payment, disorder="0 s")
    payments.to(hr.redis("last:{card_id}"))
    payments.to(hr.lake("payments"))
    with hr.testing.run(bank) as t:
        t.send(pay(t, "10:01"), pay(t, "10:02", "2.50"), pay(t, "10:03", card="c2"))

        assert len(t.read("redis:last:{card_id}")) == len(t.read("lake:payments")) == 3
        assert [(row.card_id, row.amount) for row in t.table("last:{card_id}")] == [
            ("c1", hr.money("2.50")),
            ("c2", hr.money("10.00")),
        ]
        with pytest.raises(UsageError, match="payments is no table"):
            t.table("payments")


def test_a_topic_that_is_no_view_is_no_table() -> None:
    with hr.testing.run(spend()) as t, pytest.raises(UsageError, match="is no table"):
        t.table("card-spend")


def test_b1_a_tombstone_is_a_dead_letter_to_a_stream() -> None:
    app = hr.App("shop")
    app.table(Order).to(app.topic("now", compact=True))
    app.stream(Order, disorder="0 s", name="all").to(app.topic("all"))
    with hr.testing.run(app) as t:
        t.send(order(t, "10:00", "o1"))
        t.delete(Order, "o1", at=t.time("11:00"))

        assert [row.order_id for row in t.read("all")] == ["o1"]
        assert t.table("now") == []
        assert t.dead("orders").only("step, reason") == [{"step": "all", "reason": "undecodable"}]


def test_a_name_given_twice_is_told_with_how_to_give_another() -> None:
    app = hr.App("shop")
    app.table(Order).to(app.topic("now", compact=True))
    app.stream(Order, disorder="0 s").to(app.topic("all"))
    with pytest.raises(BadApp) as refused, hr.testing.run(app):
        pass
    assert refused.value.fix == 'app.stream(..., name="...")'


def test_what_cannot_be_run_says_so_at_the_users_line() -> None:
    for wrong, what in (
        (lambda: hr.testing.run(None), "None is no app"),  # type: ignore[arg-type]
        (lambda: hr.testing.run(spend(), partitions={"paymnts": 2}), "reads the topic 'paymnts'"),
        (lambda: hr.testing.run(spend(), partitions=0), "payments with 0 partitions"),
    ):
        with pytest.raises(UsageError, match=what) as refused:
            wrong()
        assert refused.value.where is not None
        assert refused.value.where.file.endswith("test_kit.py")


def test_p1_in_real_time_patterns_take_rows_as_they_come_and_windows_are_refused() -> None:
    app = hr.App("bank")
    payments = app.stream(Payment, disorder="1 min")
    found = app.pattern("more", key="card_id", select="card_id, a.amount as less, b.amount as more").first(
        "a", payments
    )
    found.next("b", where="b.amount > a.amount").within("5 min").matches.to(app.topic("out"))
    given = {False: [], True: [{"card_id": "c1", "less": hr.money("1.00"), "more": hr.money("2.00")}]}
    for realtime, wanted in given.items():
        with hr.testing.run(app, realtime=realtime) as t:
            t.send(pay(t, "10:02", "1.00"), pay(t, "10:01", "2.00"))  # the second is older
            assert t.read("out") == wanted  # at once: nothing moved the watermark past them
            t.end()
            assert t.read("out") == wanted

    with pytest.raises(ModeRefused, match="cannot run as realtime"):
        hr.testing.run(spend(), realtime=True)


def test_a_flow_that_reads_what_it_writes_is_refused() -> None:
    app = hr.App("bank")
    app.stream(Payment, disorder="0 s").where("amount > 0").to(app.topic("payments"))
    with pytest.raises(BadApp, match="read and written by one flow") as refused:
        hr.testing.run(app)
    assert refused.value.where is not None
    assert refused.value.where.file.endswith("test_kit.py")


def test_an_app_knows_every_topic_it_writes() -> None:
    app = hr.App("bank")
    app.stream(Payment, disorder="0 s").to(hr.App("other").topic("out", partitions=3))
    assert {topic.name: topic.partitions for topic in app.topics}["out"] == 3
