"""Rules W1-W7, through a plan: given visits, then results."""

from __future__ import annotations

import headrace as hr
from tests.reference.pages import Visit, site, told, visit


def test_w1_windows_are_half_open_and_aligned_to_the_epoch() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.send(visit(t, "10:04:59.999999"), visit(t, "10:05"))
        t.end()

        assert told(t) == [("10:00", "10:05", "final", 0, 1), ("10:05", "10:10", "final", 0, 1)]


def test_w1_offset_moves_the_starts() -> None:
    with hr.testing.run(site(hr.tumbling("1 h", offset="30 min"))) as t:
        t.send(visit(t, "10:29"), visit(t, "10:30"))
        t.end()

        assert told(t) == [("09:30", "10:30", "final", 0, 1), ("10:30", "11:30", "final", 0, 1)]


def test_w1_hopping_windows_overlap() -> None:
    with hr.testing.run(site(hr.hopping("10 min", every="5 min"))) as t:
        t.send(visit(t, "10:01"), visit(t, "10:05"))
        t.end()

        assert told(t) == [
            ("09:55", "10:05", "final", 0, 1),
            ("10:00", "10:10", "final", 0, 2),
            ("10:05", "10:15", "final", 0, 1),
        ]


def test_w2_sliding_gives_one_result_per_event_looking_back() -> None:
    with hr.testing.run(site(hr.sliding("5 min"), lateness="2 min")) as t:
        t.send(visit(t, "10:00"), visit(t, "10:03"), visit(t, "10:05"))
        assert told(t) == [("09:55", "10:00", "final", 0, 1), ("09:58", "10:03", "final", 0, 2)]
        t.send(visit(t, "10:04"), visit(t, "10:02"))
        t.end()

        assert told(t)[2:] == [
            ("09:59", "10:04", "final", 0, 3),
            ("10:00", "10:05", "final", 0, 3),
        ]
        assert [row.at for row in t.read("late")] == [t.time("10:02")]


def test_w2_a_row_behind_corrects_within_lateness() -> None:
    with hr.testing.run(site(hr.sliding("5 min"), lateness="2 min")) as t:
        t.send(visit(t, "10:03"), visit(t, "10:04"), visit(t, "10:02"))

        assert told(t) == [
            ("09:58", "10:03", "final", 0, 1),
            ("09:57", "10:02", "final", 0, 1),
            ("09:58", "10:03", "correction", 1, 2),
        ]


def test_w3_a_silence_of_gap_ends_a_session() -> None:
    with hr.testing.run(site(hr.session(gap="30 min"))) as t:
        t.send(visit(t, "10:00"), visit(t, "10:29:59"), visit(t, "11:00"))
        t.end()

        assert told(t) == [("10:00", "10:59", "final", 0, 2), ("11:00", "11:30", "final", 0, 1)]


def test_w3_bridging_event_merges_and_retracts() -> None:
    with hr.testing.run(site(hr.session(gap="30 min"), lateness="2 h")) as t:
        t.send(visit(t, "10:00"), visit(t, "10:50"), visit(t, "11:30"))
        assert told(t) == [("10:00", "10:30", "final", 0, 1), ("10:50", "11:20", "final", 0, 1)]
        t.send(visit(t, "10:25"))

        assert told(t)[2:] == [
            ("10:00", "10:30", "retraction", 1, 1),
            ("10:50", "11:20", "retraction", 1, 1),
            ("10:00", "11:20", "final", 0, 3),
        ]


def test_w3_a_row_is_judged_late_after_merging() -> None:
    """10:35 alone would be gone at 11:06, but it joins the session of 11:00, which is still held."""
    with hr.testing.run(site(hr.session(gap="30 min"))) as t:
        t.send(visit(t, "11:00"), visit(t, "11:06", "q"), visit(t, "10:35"), visit(t, "10:01"))

        assert [row.at for row in t.read("late")] == [t.time("10:01")]
        assert t.counts("counted").held == 3


def test_w3_rows_of_one_batch_that_chain_into_a_held_session_are_not_late() -> None:
    """Each of the older two is late by itself; the youngest takes in the next, and that one the oldest."""
    with hr.testing.run(site(hr.session(gap="10 min"))) as t:
        t.send(visit(t, "10:25", "q"))
        t.batch(visit(t, "10:20"), visit(t, "10:12"), visit(t, "10:04"))

        assert t.read("late") == []
        assert t.counts("counted").held == 4


def test_w4_a_window_closes_is_correctable_then_gone() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), lateness="5 min")) as t:
        t.send(visit(t, "10:01"), visit(t, "10:05"))
        assert told(t) == [("10:00", "10:05", "final", 0, 1)]
        t.send(visit(t, "10:09:59"), visit(t, "10:02"))
        assert told(t)[1:] == [("10:00", "10:05", "correction", 1, 2)]
        t.send(visit(t, "10:10"), visit(t, "10:03"))

        assert told(t)[2:] == [("10:05", "10:10", "final", 0, 2)]
        assert t.read("late", "at, watermark") == [{"at": t.time("10:03"), "watermark": t.time("10:10")}]


def test_w4_a_row_late_for_some_hopping_windows_counts_in_the_others() -> None:
    with hr.testing.run(site(hr.hopping("10 min", every="5 min"))) as t:
        t.send(visit(t, "10:10"), visit(t, "10:06"))
        t.end()

        assert told(t) == [
            ("10:05", "10:15", "final", 0, 2),
            ("10:10", "10:20", "final", 0, 1),
        ]
        assert t.counts("counted").late == 0


def test_w4_late_rows_are_counted_even_if_nobody_reads_them() -> None:
    app = hr.App("site")
    windows = app.stream(Visit, disorder="0 s").window(hr.tumbling("5 min"), lateness="0 s")
    windows.agg(times=hr.count()).named("counted").to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(visit(t, "10:20"), visit(t, "10:01"))

        assert t.counts("counted").late == 1
        assert [row.at for row in t.late("counted")] == [t.time("10:01")]


def test_w5_early_results_are_provisional_and_keep_their_distance() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), emit=hr.at_close(early="10 s"), idle=None)) as t:
        t.send(visit(t, "10:01"))
        t.advance("9 s")
        t.send(visit(t, "10:02"))
        t.advance("1 s")
        assert told(t) == [("10:00", "10:05", "early", 0, 1)]
        t.send(visit(t, "10:03"))
        t.end()

        assert told(t)[1:] == [("10:00", "10:05", "early", 1, 3), ("10:00", "10:05", "final", 2, 3)]


def test_w5_on_change_tells_each_batch_then_the_final() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), emit=hr.on_change(), lateness="5 min")) as t:
        t.send(visit(t, "10:01"))
        t.batch(visit(t, "10:02"), visit(t, "10:03"))
        t.send(visit(t, "10:05"), visit(t, "10:04"))

        of_first = [row for row in told(t) if row[0] == "10:00"]
        assert of_first == [
            ("10:00", "10:05", "early", 0, 1),
            ("10:00", "10:05", "early", 1, 3),
            ("10:00", "10:05", "final", 2, 3),
            ("10:00", "10:05", "correction", 3, 4),
        ]


def test_w5_on_change_of_a_growing_session_moves_its_bounds() -> None:
    with hr.testing.run(site(hr.session(gap="10 min"), emit=hr.on_change())) as t:
        t.send(visit(t, "10:00"), visit(t, "10:05"))
        t.end()

        assert told(t) == [
            ("10:00", "10:10", "early", 0, 1),
            ("10:00", "10:10", "retraction", 1, 1),
            ("10:00", "10:15", "early", 0, 2),
            ("10:00", "10:15", "final", 1, 2),
        ]


def test_w5_having_keeps_results_and_takes_back_what_no_longer_holds() -> None:
    app = hr.App("site")
    windows = app.stream(Visit, disorder="0 s").window(hr.tumbling("5 min"), lateness="5 min")
    windows.agg(having="times < 3 and page = 'p'", times=hr.count()).to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(visit(t, "10:01", "q"), visit(t, "10:01"), visit(t, "10:05"))
        assert told(t) == [("10:00", "10:05", "final", 0, 1)]
        t.batch(visit(t, "10:02"), visit(t, "10:03"))

        assert told(t)[1:] == [("10:00", "10:05", "retraction", 1, 1)]


def test_w5_keyed_stores_delete_on_retraction() -> None:
    app = hr.App("site")
    sessions = app.stream(Visit, disorder="0 s", idle=None).window(hr.session(gap="5 min"), lateness="30 min")
    counts = sessions.agg(times=hr.count())
    counts.to(hr.postgres("sessions", key="page, window_start"))
    counts.to(hr.lake("log"))
    with hr.testing.run(app) as t:
        t.send(visit(t, "10:00"), visit(t, "10:08"), visit(t, "10:20"), visit(t, "10:04"))
        t.end()

        assert [(f"{row.window_start:%H:%M}", row.times) for row in t.table("sessions")] == [("10:00", 3), ("10:20", 1)]
        assert "retraction" in [row.kind for row in t.read("log")]


def test_w6_empty_windows_say_nothing() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.send(visit(t, "10:01"), visit(t, "10:31"))
        t.end()

        assert [row[:2] for row in told(t)] == [("10:00", "10:05"), ("10:30", "10:35")]


def test_w6_forever_tells_every_change_without_bounds() -> None:
    with hr.testing.run(site(hr.forever(), lateness=None, emit=hr.on_change())) as t:
        t.send(visit(t, "10:01"), visit(t, "11:00", "q"), visit(t, "09:00"))
        t.end()

        assert t.read("out", "page, window_start, kind, revision, times") == [
            {"page": "p", "window_start": None, "kind": "early", "revision": 0, "times": 1},
            {"page": "q", "window_start": None, "kind": "early", "revision": 0, "times": 1},
            {"page": "p", "window_start": None, "kind": "early", "revision": 1, "times": 2},
        ]


def test_forever_with_a_time_to_live_forgets_a_key_that_fell_silent() -> None:
    with hr.testing.run(site(hr.forever(ttl="30 min"), lateness=None, emit=hr.on_change())) as t:
        t.send(visit(t, "10:01"), visit(t, "10:20"), visit(t, "11:00", "q"), visit(t, "10:10"), visit(t, "11:01"))
        t.end()

        assert t.read("out", "page, revision, times") == [
            {"page": "p", "revision": 0, "times": 1},
            {"page": "p", "revision": 1, "times": 2},
            {"page": "q", "revision": 0, "times": 1},
            {"page": "p", "revision": 0, "times": 1},
        ]
        assert t.counts("counted").late == 1  # of 10:10: the key was gone
        assert t.counts("counted").held == 0


def test_w7_processing_time_windows_follow_the_clock() -> None:
    with hr.testing.run(site(hr.tumbling("1 min", time="processing"), lateness=None)) as t:
        t.send(visit(t, "10:01"), visit(t, "03:00"))
        t.advance("59 s")
        t.send(visit(t, "12:00"))
        assert told(t) == []
        t.advance("1 s")

        assert told(t) == [("00:00", "00:01", "final", 0, 3)]
        assert t.counts("counted").late == 0


def test_w7_the_end_of_input_closes_them_too() -> None:
    with hr.testing.run(site(hr.tumbling("1 min", time="processing"), lateness=None)) as t:
        t.send(visit(t, "10:01"))
        t.end()

        assert told(t) == [("00:00", "00:01", "final", 0, 1)]
