"""Rules T1-T7: frontiers, watermarks, holds, marks."""

from __future__ import annotations

from datetime import datetime, timedelta

import headrace as hr
from headrace.testing import Run
from tests.reference.pages import Visit, site, told, visit


def mark_of(t: Run) -> str | None:
    """The watermark as a time of day."""
    found = t.watermark()
    return None if found is None else found.strftime("%H:%M:%S")


def test_t1_times_are_kept_to_the_microsecond() -> None:
    with hr.testing.run(site(hr.tumbling("1 s"))) as t:
        t.send(visit(t, "10:00:00.999999"), visit(t, "10:00:01"))
        t.end()

        assert [r.times for r in t.read("out")] == [1, 1]


def test_t2_an_event_dated_far_ahead_is_a_dead_letter_and_moves_nothing() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.send(visit(t, "10:01"))
        before = t.watermark()
        t.send(Visit("p", t.now + timedelta(minutes=1, microseconds=1)))

        assert t.watermark() == before
        assert t.dead("visits").only("reason, step, cause") == [
            {"reason": "future", "step": "visits", "cause": "visits/0/1"}
        ]


def test_t2_up_to_skew_ahead_is_allowed() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), skew="10 min")) as t:
        t.send(Visit("p", t.now + timedelta(minutes=10)))

        assert t.dead() == []


def test_t3_a_stream_is_as_far_as_its_slowest_partition() -> None:
    with hr.testing.run(site(hr.tumbling("5 min")), partitions=2) as t:
        t.send(visit(t, "10:20"), partition=0)
        assert mark_of(t) is None  # the other has shown nothing yet
        t.send(visit(t, "10:01"), partition=1)

        assert mark_of(t) == "10:01:00"


def test_t3_an_idle_partition_leaves_the_minimum() -> None:
    with hr.testing.run(site(hr.tumbling("5 min")), partitions=2) as t:
        t.send(visit(t, "10:01"), partition=1)
        t.advance("4 s")
        t.send(visit(t, "10:20"), partition=0)
        assert mark_of(t) == "10:01:00"
        t.advance("1 s")  # partition 1 has been silent for 5 s, partition 0 for one

        assert mark_of(t) == "10:20:00"


def test_t3_when_everything_is_idle_the_frontier_runs_on_with_the_clock() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), disorder="30 s")) as t:
        t.send(visit(t, "10:01"))
        t.advance("5 s")
        assert mark_of(t) == "10:00:30"
        t.advance("4 min 29 s")
        assert told(t) == []
        t.advance("1 s")

        assert told(t) == [("10:00", "10:05", "final", 0, 1)]


def test_t3_without_idleness_time_waits() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), idle=None)) as t:
        t.send(visit(t, "10:01"))
        t.advance("10 d")

        assert mark_of(t) == "10:01:00"


def test_t3_at_the_end_of_input_everything_closes() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), disorder="1 h", idle=None)) as t:
        t.send(visit(t, "10:01"), visit(t, "10:31"))
        t.end()

        assert [r.times for r in t.read("out")] == [1, 1]
        assert t.counts("counted").held == 0


def test_t4_the_watermark_is_the_frontier_less_disorder_and_none_before_the_first_event() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), disorder="30 s")) as t:
        t.advance("1 h")
        assert mark_of(t) is None
        t.send(visit(t, "10:01"))

        assert mark_of(t) == "10:00:30"


def test_t4_the_watermark_never_goes_back() -> None:
    with hr.testing.run(site(hr.tumbling("5 min")), partitions=2) as t:
        t.send(visit(t, "10:20"), partition=0)
        t.advance("5 s")  # partition 1 is idle now
        t.send(visit(t, "10:20"), partition=0)
        t.send(visit(t, "10:01"), partition=1)  # and comes back with an old row

        assert mark_of(t) == "10:20:00"


def test_t5_behind_the_watermark_is_not_yet_late() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.send(visit(t, "10:03"), visit(t, "10:01"))

        assert t.counts("counted").late == 0
        assert t.counts("counted").held == 2


def two_windows(lateness: str) -> hr.App:
    """Visits per 5 minutes, then the busiest five minutes of the hour."""
    app = hr.App("site")
    fives = app.stream(Visit, disorder="0 s").window(hr.tumbling("5 min"), lateness=lateness).agg(times=hr.count())
    hours = fives.named("fives").select("page, times").key_by("page").window(hr.tumbling("1 h"), lateness="0 s")
    hours.agg(most=hr.max("times"), windows=hr.count()).named("hours").to(app.topic("hours"))
    return app


def test_t6_a_window_result_has_the_last_moment_of_its_window_as_time() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.send(visit(t, "10:01"))
        t.end()

        assert t.records("out")[0].time == t.time("10:04:59.999999")


def test_t6_a_sliding_result_has_the_time_of_its_row() -> None:
    with hr.testing.run(site(hr.sliding("5 min"))) as t:
        t.send(visit(t, "10:01"))
        t.end()

        assert t.records("out")[0].time == t.time("10:01")


def test_t6_results_meet_the_next_step_in_the_same_batch() -> None:
    with hr.testing.run(two_windows("0 s")) as t:
        t.send(visit(t, "10:01"), visit(t, "10:02"), visit(t, "10:58"), visit(t, "11:00"))

        assert t.read("hours", "most, windows, kind") == [{"most": 2, "windows": 2, "kind": "final"}]


def test_t6_a_step_after_a_window_waits_for_its_lateness() -> None:
    """The hour is not closed before its last five minutes can no longer be corrected."""
    with hr.testing.run(two_windows("10 min")) as t:
        t.send(visit(t, "10:58"), visit(t, "11:09"))
        assert t.read("hours") == []
        t.send(visit(t, "10:59"))  # corrects 10:55 - 11:00
        t.send(visit(t, "11:10"))

        assert t.read("hours", "most, kind") == [{"most": 2, "kind": "final"}]
        assert t.counts("hours").late == 0


def test_t7_a_marked_stream_follows_marks_only() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), disorder=hr.marked())) as t:
        t.send(visit(t, "10:01"), visit(t, "10:20"), visit(t, "10:02"))
        t.advance("1 h")
        assert mark_of(t) is None
        t.mark(Visit, t.time("10:05"))

        assert told(t) == [("10:00", "10:05", "final", 0, 2)]


def test_t7_every_partition_must_be_marked() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), disorder=hr.marked()), partitions=2) as t:
        t.mark(Visit, t.time("10:05"), partition=0)
        assert mark_of(t) is None
        t.mark(Visit, t.time("10:03"), partition=1)

        assert mark_of(t) == "10:03:00"


def test_an_event_without_time_has_that_of_its_arrival() -> None:
    @hr.event(topic="pings", key="host")
    class Ping:
        host: str

    app = hr.App("net")
    app.stream(Ping, disorder="0 s").window(hr.tumbling("1 min"), lateness="0 s").agg(n=hr.count()).to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(Ping("h"))
        t.end()

        assert t.read("out")[0].window_start == datetime.combine(t.now.date(), t.now.time(), t.now.tzinfo)
