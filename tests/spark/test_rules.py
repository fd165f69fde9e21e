"""The rules of time, windows, identity and the wire on Spark: the cases of tests/reference, in one live query.

Each case is a page; its visits come in the batches that SCRIPT says, and after each batch time moves. Every page passes
through all the windows of `declared`; a test looks at its own page in one of them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

import headrace as hr
from headrace.base.clock import micros, rfc3339
from headrace.base.ids import random_id, stable_id
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.observe.snapshot import Counts
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing

FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)

SCRIPT: list[dict[str, str]] = [
    {
        "edge": "10:04:59.999999 10:05",
        "shift": "10:29 10:30",
        "hop": "10:01 10:05",
        "second": "10:00:00.999999 10:00:01",
        "silence": "10:00 10:29:59 11:00",
        "empty": "10:01 10:31",
        "under": "10:01 10:20 10:02",
        "order": "10:30=4 10:10=2 10:30=5 10:10=1 10:20=3",
        "first": "10:05 10:01",
        "level": "10:01 10:02 10:58",
        "values": "10:00=1 10:01=2 10:02=2",
    },
    {
        "sliding":  "10:00 ; 10:03       ; 10:05 ; 10:04    ; 10:02",
        "corrects": "      ; 10:03       ; 10:04 ; 10:03:30 ;",
        "change":   "10:01 ; 10:02 10:03 ; 10:05 ; 10:04    ;",
        "early":    "10:01 ; 10:02       ;       ;          ;",
        "grows":    "10:00 ;             ; 10:05 ;          ;",
    },
    {
        "gone":   "10:01 10:05           ; 10:09:59    ; 10:02 ; 10:10 ; 10:03           ;",
        "some":   "                      ;             ;       ; 10:10 ; 10:06           ;",
        "having": "10:01/q 10:01 10:05   ; 10:02 10:03 ;       ;       ;                 ;",
        "once":   "10:05                 ; 10:01       ;       ;       ; 10:06/q 10:14   ; 10:15",
    },
    {
        "causes": "10:01 ; 10:21 ; 10:02 10:31 10:12 ;                   ;       ;       ;             ;",
        "chain":  "      ;       ;                   ; 10:28 10:20 10:12 ;       ;       ;             ;",
        "hold":   "      ;       ;                   ; 10:58 11:04       ; 10:59 ; 11:05 ;             ;",
        "judged": "      ;       ;                   ; 11:00             ;       ;       ; 10:35 10:01 ;",
        "bridge": "      ;       ;                   ; 10:00 10:50       ;       ;       ; 11:30       ; 10:25",
    },
    {"end": "10:00"},
]  # fmt: skip
"""Days; in each, pages and their visits in the day's batches, between semicolons. `/q`: another page; `=4`: spent."""

DAYS = {name: FIRST_DAY + timedelta(days=n) for n, day in enumerate(SCRIPT) for name in day}


def event_on(topic: str) -> Any:
    @hr.event(topic=topic, key="page", time="at")
    class Visit:
        page: str
        at: datetime
        spent: int
        price: hr.Money
        score: float
        note: str | None = None

    return Visit


def declared(event: Any, topic: str) -> hr.App:
    """Every window to a topic of its name, late rows to "name-late"."""
    app = hr.App("site")
    visits = app.stream(event, disorder="0 s", idle=None)

    def out(name: str) -> Any:
        return app.topic(f"{topic}-{name}", partitions=1)

    def window(name: str, window: Any, lateness: str | None = "0 s", having: str | None = None, **how: Any) -> Any:
        counted = visits.window(window, lateness=lateness, **how).agg(times=hr.count(), having=having).named(name)
        counted.to(out(name))
        return counted

    fives, hour = hr.tumbling("5 min"), hr.tumbling("1 h")
    plain = window("fives", fives)
    corrected = window("corrected", fives, "5 min")
    for stream in (
        corrected,
        window("sliding", hr.sliding("5 min"), "2 min"),
        window("halves", hr.session(gap="30 min")),
        window("tens", hr.session(gap="10 min")),
    ):
        stream.late.to(out(f"{stream.node.name}-late"))
    window("shifted", hr.tumbling("1 h", offset="30 min"))
    window("hops", hr.hopping("10 min", every="5 min"))
    window("seconds", hr.tumbling("1 s"))
    window("merged", hr.session(gap="30 min"), "2 h")
    window("long", fives, "1 h")
    window("early", fives, emit=hr.at_close(early="1 ms"))
    window("changes", fives, "5 min", emit=hr.on_change())
    window("growing", hr.session(gap="10 min"), emit=hr.on_change())
    window("few", fives, "5 min", having="times < 3 and page <> 'having-q'")
    window("forever", hr.forever(), None, emit=hr.on_change())
    for name, of in (("hours", plain), ("held-hours", corrected)):
        hours = of.select("page, times").named(f"of-{name}").key_by("page").window(hour, lateness="0 s")
        hours.agg(most=hr.max("times"), windows=hr.count()).named(name).to(out(name))
    visits.window(hour, lateness="0 s").agg(
        seen=hr.collect("spent"), first=hr.first("spent"), last=hr.last("spent")
    ).named("collected").to(out("collected"))
    visits.key_by("page, spent").window(hour, lateness="0 s").agg(
        total=hr.sum("price"), mean=hr.avg("price"), heat=hr.sum("score"), notes=hr.count("note"),
        kinds=hr.distinct("note"), most=hr.max("at"), half=hr.quantile("price", 0.5), best=hr.top(1, "price"),
    ).named("summed").to(out("summed"))  # fmt: skip
    once = visits.dedup("page", within="10 min").named("once")
    once.to(out("once"))
    once.duplicates.to(out("again"))
    visits.where("spent > 1").named("some").select("page, spent * 2 as twice").to(out("twice"), key="page")
    return app


class Ran:
    """The one query, run through the script of all cases."""

    def __init__(self, flowing: Flowing, event: Any) -> None:
        self.flowing = flowing
        self.topic = flowing.topic
        self._event = event
        with flowing.live() as query:
            for day in SCRIPT:
                pages = {name: batches.split(";") for name, batches in day.items()}
                for number in range(max(map(len, pages.values()))):
                    query.batch(*(row for name, batches in pages.items() for row in self._rows(name, batches[number])))
            self.counts: dict[str, Counts] = query.counts()
        self._read: dict[str, list[Any]] = {}

    def _rows(self, name: str, text: str) -> list[Any]:
        return [self._row(name, word) for word in text.split()]

    def _row(self, name: str, word: str) -> Any:
        word, _, spent = word.partition("=")
        at, _, other = word.partition("/")
        moment = datetime.combine(DAYS[name].date(), time.fromisoformat(at), UTC)
        page = f"{name}-{other}" if other else name
        number = int(spent or 0)
        return self._event(page, moment, number, Decimal(number), number / 10, "x" if spent else None)

    def messages(self, name: str, page: str) -> list[Any]:
        if name not in self._read:
            self._read[name] = list(read(self.flowing.broker, f"{self.topic}-{name}"))
        return [message for message in self._read[name] if f'"page":"{page}"' in message.value().decode()]

    def rows(self, name: str, page: str) -> list[dict[str, Any]]:
        return [json.loads(message.value()) for message in self.messages(name, page)]

    def told(self, name: str, page: str) -> list[tuple[Any, ...]]:
        """(from, to, kind, revision, times) per result, times of day as text."""
        return [
            (row["window_start"][11:16], row["window_end"][11:16], row["kind"], row["revision"], row["times"])
            for row in self.rows(name, page)
        ]

    def at(self, name: str, page: str) -> list[str]:
        return [row["at"][11:16] for row in self.rows(name, page)]


@pytest.fixture(scope="module")
def ran(spark: Spark, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    topic = f"t-{random_id()[:12]}"
    event = event_on(topic)
    return Ran(Flowing(spark, broker, tmp_path_factory.mktemp("rules"), declared(event, topic)), event)


# -- runs


def test_r1_rows_are_applied_under_the_watermark_before_them(ran: Ran) -> None:
    assert ran.told("fives", "under") == [("10:00", "10:05", "final", 0, 2), ("10:20", "10:25", "final", 0, 1)]


def test_r1_then_time_moves_and_everything_due_fires_in_order(ran: Ran) -> None:
    assert [row[:2] for row in ran.told("hops", "empty")] == [
        ("09:55", "10:05"), ("10:00", "10:10"), ("10:25", "10:35"), ("10:30", "10:40")
    ]  # fmt: skip


def test_r2_order_inside_a_batch_is_time_topic_partition_offset(ran: Ran) -> None:
    (row,) = ran.rows("collected", "order")

    assert (row["seen"], row["first"], row["last"]) == ([2, 1, 3, 4, 5], 2, 5)


# -- time


def test_t1_times_are_kept_to_the_microsecond(ran: Ran) -> None:
    assert [row[4] for row in ran.told("seconds", "second")] == [1, 1]


def test_t5_behind_the_watermark_is_not_yet_late(ran: Ran) -> None:
    assert ran.told("corrected", "some") == [("10:05", "10:10", "final", 0, 1), ("10:10", "10:15", "final", 0, 1)]
    assert ran.rows("corrected-late", "some") == []


def test_t6_a_window_result_has_the_last_moment_of_its_window_as_time(ran: Ran) -> None:
    first = ran.messages("fives", "edge")[0]

    assert first.timestamp()[1] == micros(FIRST_DAY + timedelta(hours=10, minutes=5)) // 1000 - 1


def test_t6_a_sliding_result_has_the_time_of_its_row(ran: Ran) -> None:
    times = [message.timestamp()[1] for message in ran.messages("sliding", "edge")]

    assert times == [micros(row.at) // 1000 for row in ran._rows("edge", SCRIPT[0]["edge"])]


def test_t6_results_meet_the_next_step_in_the_same_batch(ran: Ran) -> None:
    (row,) = ran.rows("hours", "level")

    assert (row["most"], row["windows"], row["kind"]) == (2, 2, "final")


def test_t6_a_step_after_a_window_waits_for_its_lateness(ran: Ran) -> None:
    ten, eleven = ran.rows("held-hours", "hold")

    assert (ten["window_start"][11:16], ten["most"], ten["kind"], ten["revision"]) == ("10:00", 2, "final", 0)
    assert eleven["window_start"][11:16] == "11:00"
    assert ran.counts["held-hours"].late == 0


# -- windows


def test_w1_windows_are_half_open_and_aligned_to_the_epoch(ran: Ran) -> None:
    assert ran.told("fives", "edge") == [("10:00", "10:05", "final", 0, 1), ("10:05", "10:10", "final", 0, 1)]


def test_w1_offset_moves_the_starts(ran: Ran) -> None:
    assert ran.told("shifted", "shift") == [("09:30", "10:30", "final", 0, 1), ("10:30", "11:30", "final", 0, 1)]


def test_w1_hopping_windows_overlap(ran: Ran) -> None:
    assert ran.told("hops", "hop") == [
        ("09:55", "10:05", "final", 0, 1),
        ("10:00", "10:10", "final", 0, 2),
        ("10:05", "10:15", "final", 0, 1),
    ]


def test_w2_sliding_gives_one_result_per_event_looking_back(ran: Ran) -> None:
    assert ran.told("sliding", "sliding") == [
        ("09:55", "10:00", "final", 0, 1),
        ("09:58", "10:03", "final", 0, 2),
        ("09:59", "10:04", "final", 0, 3),
        ("10:00", "10:05", "final", 0, 3),
    ]
    assert ran.at("sliding-late", "sliding") == ["10:02"]


def test_w2_a_row_behind_corrects_within_lateness(ran: Ran) -> None:
    assert ran.told("sliding", "corrects") == [
        ("09:58", "10:03", "final", 0, 1),
        ("09:59", "10:04", "final", 0, 2),
        ("09:58", "10:03", "final", 0, 2),  # of 10:03:30
        ("09:59", "10:04", "correction", 1, 3),
    ]


def test_w3_a_silence_of_gap_ends_a_session(ran: Ran) -> None:
    assert ran.told("halves", "silence") == [("10:00", "10:59", "final", 0, 2), ("11:00", "11:30", "final", 0, 1)]


def test_w3_bridging_event_merges_and_retracts(ran: Ran) -> None:
    assert ran.told("merged", "bridge") == [
        ("10:00", "10:30", "final", 0, 1),
        ("10:50", "11:20", "final", 0, 1),
        ("10:00", "10:30", "retraction", 1, 1),
        ("10:50", "11:20", "retraction", 1, 1),
        ("10:00", "11:20", "final", 0, 3),
        ("11:30", "12:00", "final", 0, 1),
    ]


def test_w3_a_row_is_judged_late_after_merging(ran: Ran) -> None:
    assert ran.told("halves", "judged") == [("10:35", "11:30", "final", 0, 2)]
    assert ran.at("halves-late", "judged") == ["10:01"]


def test_w3_rows_of_one_batch_that_chain_into_a_held_session_are_not_late(ran: Ran) -> None:
    assert ran.told("tens", "chain") == [("10:12", "10:38", "final", 0, 3)]
    assert ran.rows("tens-late", "chain") == []


def test_w4_a_window_closes_is_correctable_then_gone(ran: Ran) -> None:
    assert ran.told("corrected", "gone") == [
        ("10:00", "10:05", "final", 0, 1),
        ("10:00", "10:05", "correction", 1, 2),
        ("10:05", "10:10", "final", 0, 2),
        ("10:10", "10:15", "final", 0, 1),
    ]
    (late,) = ran.rows("corrected-late", "gone")
    assert (late["at"][11:16], late["watermark"][11:16]) == ("10:03", "10:10")


def test_w4_a_row_late_for_some_hopping_windows_counts_in_the_others(ran: Ran) -> None:
    assert ran.told("hops", "some") == [("10:05", "10:15", "final", 0, 2), ("10:10", "10:20", "final", 0, 1)]


def test_w4_late_rows_are_counted_even_if_nobody_reads_them(ran: Ran) -> None:
    rows = [word for day in SCRIPT for batches in day.values() for word in batches.replace(";", " ").split()]
    late = {"sliding": 2, "corrects": 1, "change": 1, "gone": 2, "some": 1, "having": 2, "once": 2, "causes": 2}
    late |= {"chain": 3, "hold": 1, "judged": 2, "bridge": 2}

    assert ran.counts["fives"].entered == len(rows)
    assert ran.counts["fives"].late == sum(late.values())


def test_w5_early_results_are_provisional(ran: Ran) -> None:
    assert ran.told("early", "early") == [
        ("10:00", "10:05", "early", 0, 1),
        ("10:00", "10:05", "early", 1, 2),
        ("10:00", "10:05", "final", 2, 2),
    ]


def test_w5_on_change_tells_each_batch_then_the_final(ran: Ran) -> None:
    assert [row for row in ran.told("changes", "change") if row[0] == "10:00"] == [
        ("10:00", "10:05", "early", 0, 1),
        ("10:00", "10:05", "early", 1, 3),
        ("10:00", "10:05", "final", 2, 3),
        ("10:00", "10:05", "correction", 3, 4),
    ]


def test_w5_on_change_of_a_growing_session_moves_its_bounds(ran: Ran) -> None:
    assert ran.told("growing", "grows") == [
        ("10:00", "10:10", "early", 0, 1),
        ("10:00", "10:10", "retraction", 1, 1),
        ("10:00", "10:15", "early", 0, 2),
        ("10:00", "10:15", "final", 1, 2),
    ]


def test_w5_having_keeps_results_and_takes_back_what_no_longer_holds(ran: Ran) -> None:
    assert ran.told("few", "having") == [
        ("10:00", "10:05", "final", 0, 1),
        ("10:00", "10:05", "retraction", 1, 1),
        ("10:05", "10:10", "final", 0, 1),
    ]
    assert ran.told("few", "having-q") == []


def test_w6_empty_windows_say_nothing(ran: Ran) -> None:
    assert [row[:2] for row in ran.told("fives", "empty")] == [("10:00", "10:05"), ("10:30", "10:35")]


def test_w6_forever_tells_every_change_without_bounds(ran: Ran) -> None:
    assert [list(row.values()) for row in ran.rows("forever", "early")] == [
        ["early", None, None, "early", 0, 1],
        ["early", None, None, "early", 1, 2],
    ]


# -- identity and conservation


def test_d1_the_first_to_arrive_is_kept_and_duplicates_come_out(ran: Ran) -> None:
    assert ran.at("once", "once") == ["10:05", "10:15"]
    assert ran.at("again", "once") == ["10:01", "10:14"]
    assert ran.at("once", "once-q") == ["10:06"]


def test_d1_in_one_batch_the_earliest_counts_as_first(ran: Ran) -> None:
    assert ran.at("once", "first") == ["10:01"]


def test_d2_results_and_rows_are_known_by_their_causes(ran: Ran) -> None:
    def ids(name: str) -> list[str]:
        return [dict(message.headers())["hr-id"].decode() for message in ran.messages(name, "edge")]

    ten, five = micros(FIRST_DAY + timedelta(hours=10)), 300_000_000
    edge = ["0", "1"]  # its rows are the first of all
    assert ids("fives") == [
        stable_id("site", "v1", "fives", "edge", f"{start}/{start + five}/0") for start in (ten, ten + five)
    ]
    assert ids("sliding") == [stable_id("site", "v1", "sliding", "edge", f"{ran.topic}/0/{n}/0") for n in edge]
    assert ids("once") == [stable_id("site", "v1", f"{ran.topic}-once", "edge", f"{ran.topic}/0/0")]


def test_d2_no_id_comes_twice(ran: Ran) -> None:
    for leaving in ran.flowing.flow.exits:
        ids = ran.flowing.ids(leaving.target.name)
        assert len(ids) == len(set(ids)) > 0, leaving.target.name


def test_d3_every_row_is_accounted_for(ran: Ran) -> None:
    assert set(ran.counts) == {step.name for step in ran.flowing.flow.steps}
    assert {step: counts.missing for step, counts in ran.counts.items() if counts.missing} == {}
    some = ran.counts["some"]
    assert (some.used, some.filtered) == (6, some.entered - 6)


def test_d4_per_key_outputs_follow_their_causes(ran: Ran) -> None:
    assert [row[0:3:2] for row in ran.told("long", "causes")] == [
        ("10:00", "final"), ("10:00", "correction"), ("10:10", "final"), ("10:20", "final"), ("10:30", "final")
    ]  # fmt: skip


def test_d5_aggregates_of_every_kind_through_a_plan(ran: Ran) -> None:
    one, two = sorted(ran.rows("summed", "values"), key=lambda row: row["spent"])

    assert (one["spent"], one["total"]) == (1, "1.00")
    assert (two["total"], two["mean"], two["best"]) == ("4.00", "2.000000", ["2.00"])
    assert two["heat"] == pytest.approx(0.4, abs=1e-9)
    assert (two["notes"], two["kinds"]) == (2, 1)
    assert two["most"] == rfc3339(FIRST_DAY + timedelta(hours=10, minutes=2))
    assert Decimal(str(two["half"])) == pytest.approx(Decimal(2), rel=Decimal("0.01"))


# -- on the wire


def test_f1_f2_a_result_on_the_wire(ran: Ran) -> None:
    first = ran.messages("fives", "edge")[0]

    assert first.key() == b"edge"
    assert first.value().decode() == (
        '{"page":"edge","window_start":"2020-01-01T10:00:00.000000Z","window_end":"2020-01-01T10:05:00.000000Z",'
        '"kind":"final","revision":0,"times":1}'
    )
    assert [name for name, _ in first.headers()] == ["hr-type", "hr-schema", "hr-id"]
    assert dict(first.headers())["hr-type"] == f"{ran.topic}-fives".encode()


def test_f1_composite_keys_are_json_arrays(ran: Ran) -> None:
    assert {message.key() for message in ran.messages("summed", "values")} == {b'["values",1]', b'["values",2]'}


def test_f1_select_and_filter_pass_rows_on_under_the_key_that_was_said(ran: Ran) -> None:
    found = ran.messages("twice", "values")

    assert [(message.key(), message.value()) for message in found] == [
        (b"values", b'{"page":"values","twice":4}'),
        (b"values", b'{"page":"values","twice":4}'),
    ]


def test_f3_the_record_time_is_the_event_time(ran: Ran) -> None:
    assert [message.timestamp()[1] for message in ran.messages("once", "once-q")] == [
        micros(DAYS["once"] + timedelta(hours=10, minutes=6)) // 1000
    ]
