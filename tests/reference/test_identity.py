"""Rules D1-D5: duplicates, stable ids, conservation, order, exact values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.base.errors import Unbalanced
from headrace.base.ids import stable_id
from headrace.plan.plan import build
from headrace.reference.batch import Batch
from headrace.reference.counts import Counts
from headrace.reference.engine import Engine
from headrace.steps.row import END
from tests.properties import examples
from tests.reference.pages import Visit, site, visit
from tests.reference.test_runs import START, fine
from tests.shapes import Payment, Reading, spend


def deduped() -> hr.App:
    app = hr.App("site")
    once = app.stream(Visit, disorder="0 s").dedup("page", within="10 min").named("once")
    once.to(app.topic("out"))
    once.duplicates.to(app.topic("again"))
    return app


def test_d1_the_first_to_arrive_is_kept_and_duplicates_come_out() -> None:
    with hr.testing.run(deduped()) as t:
        t.send(visit(t, "10:05"), visit(t, "10:01"), visit(t, "10:06", "q"), visit(t, "10:14"), visit(t, "10:15"))

        assert [row.at for row in t.read("out")] == [t.time("10:05"), t.time("10:06"), t.time("10:15")]
        assert [row.at for row in t.read("again")] == [t.time("10:01"), t.time("10:14")]
        counts = t.counts("once")
        assert (counts.received, counts.used, counts.duplicates, counts.held) == (5, 3, 2, 0)


def test_d1_in_one_batch_the_earliest_counts_as_first() -> None:
    with hr.testing.run(deduped()) as t:
        t.batch(visit(t, "10:05"), visit(t, "10:01"))

        assert [row.at for row in t.read("out")] == [t.time("10:01")]


def test_d2_a_window_result_is_known_by_step_key_bounds_and_revision() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.send(visit(t, "00:01"))
        t.end()

        (record,) = t.records("out")
        five = 5 * 60_000_000
        assert record.id == stable_id("site", "v1", "counted", "p", f"{START}/{START + five}/0")
        assert record.key == "p"


def test_d2_a_row_of_the_log_is_known_by_its_place() -> None:
    with hr.testing.run(deduped(), partitions=3) as t:
        t.send(visit(t, "10:01", "a"), visit(t, "10:01", "b"), partition=2)

        ids = [record.id for record in t.records("out")]
        assert ids == [stable_id("site", "v1", "out", key, f"visits/2/{n}") for n, key in enumerate("ab")]


def test_d2_a_sliding_result_is_known_by_its_row() -> None:
    with hr.testing.run(site(hr.sliding("5 min"))) as t:
        t.send(visit(t, "10:01"), visit(t, "10:01"))
        t.end()

        wanted = [stable_id("site", "v1", "counted", "p", f"visits/0/{n}/0") for n in range(2)]
        assert [record.id for record in t.records("out")] == wanted


def test_d2_ids_differ_and_do_not_depend_on_the_schedule() -> None:
    with hr.testing.run(site(hr.hopping("10 min", every="5 min"))) as fine, \
            hr.testing.run(site(hr.hopping("10 min", every="5 min"))) as coarse:  # fmt: skip
        rows = [visit(fine, at, page) for at in ("10:01", "10:07") for page in ("a", "b")]
        fine.send(*rows)
        coarse.batch(*rows)
        fine.end()
        coarse.end()

        ids = [record.id for record in fine.records("out")]
        assert len(set(ids)) == len(ids) == 6
        assert set(ids) == {record.id for record in coarse.records("out")}


def test_d3_every_row_is_accounted_for() -> None:
    with hr.testing.run(spend()) as t:

        def pay(id: str, amount: str, at: str) -> Payment:
            return Payment(id, "c1", "u1", "t1", hr.money(amount), "SE", t.time(at))

        t.send(
            pay("1", "10.00", "10:00"), pay("2", "-1.00", "10:01"), pay("3", "5.00", "12:30"), pay("4", "1.00", "10:02")
        )
        filtered, window = t.counts("where-1"), t.counts("window-1")

        assert (filtered.received, filtered.used, filtered.filtered) == (4, 3, 1)
        assert (window.received, window.used, window.late, window.held) == (3, 1, 1, 1)
        t.end()
        assert (window.used, window.held) == (2, 0)  # fmt: skip


def test_d3_a_lost_row_is_loud() -> None:
    with pytest.raises(Unbalanced, match="took 3 rows and held 1, but accounts for 3"):
        Counts(received=3, used=2, held=1).check("counted", held_before=1)


def test_d3_a_step_that_forgets_a_row_stops_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The held rows are counted in the state itself: one that falls out of it is noticed at once."""
    from headrace.steps import slices

    def forgetful(spec: Any, state: Any, row: Any, before: Any) -> str:
        return "held"

    monkeypatch.setattr(slices, "step", forgetful)
    with hr.testing.run(site(hr.tumbling("5 min"))) as t, pytest.raises(Unbalanced):
        t.send(visit(t, "10:01"))


ROWS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abc")), max_size=20)
APPS = [
    site(window, lateness=lateness, emit=emit)
    for window in (hr.tumbling("5 min"), hr.hopping("9 min", every="6 min"), hr.session(gap="4 min"))
    for lateness in ("0 s", "3 min")
    for emit in (hr.at_close(), hr.on_change(), hr.at_close(early="1 s"))
] + [site(hr.sliding("4 min"), lateness="2 min"), site(hr.forever(), lateness=None, emit=hr.on_change())]
PLANS = [build(app) for app in APPS]


@examples(150)
@given(ROWS, st.sampled_from(PLANS), st.integers(0, 5))
def test_d3_conservation_holds_in_every_batch_and_ids_never_repeat(
    rows: list[tuple[int, str]], plan: Any, disorder: int
) -> None:
    engine = Engine(plan, plan.flows[0])
    for batch in [*fine(rows, disorder), Batch([], END, END)]:
        engine.batch(batch)  # raises Unbalanced itself

    counts = engine.counts()["counted"]
    assert counts.received == len(rows) == counts.used + counts.late + counts.held
    ids = [record.id for record in engine.records if record.topic == "out"]
    assert len(set(ids)) == len(ids)


def test_d4_per_key_outputs_follow_their_causes() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), lateness="1 h")) as t:
        t.send(visit(t, "10:01"), visit(t, "10:21"))
        t.batch(visit(t, "10:02"), visit(t, "10:31"), visit(t, "10:12"))

        of = [(r.window_start.strftime("%H:%M"), r.kind) for r in t.read("out")]
        assert of == [("10:00", "final"), ("10:00", "correction"), ("10:10", "final"), ("10:20", "final")]


def test_d5_aggregates_of_every_kind_through_a_plan() -> None:
    app = hr.App("plant")
    windows = app.stream(Reading, disorder="0 s").window(hr.tumbling("1 h"), lateness="0 s")
    windows.agg(
        n=hr.count(), notes=hr.count("note"), total=hr.sum("price"), mean=hr.avg("price"), heat=hr.sum("value"),
        least=hr.min("price"), most=hr.max("at"), one=hr.first("note"), end=hr.last("note"), kinds=hr.distinct("note"),
        about=hr.distinct("count", approx=True), half=hr.quantile("price", 0.5), best=hr.top(2, "price"),
        all=hr.collect("note"), level=hr.avg("level"), whole=hr.avg("count"), twice=hr.sum("count * 2"),
    ).to(app.topic("out"))  # fmt: skip
    with hr.testing.run(app) as t:

        def reading(id: str, at: str, value: float, count: int, price: str, note: str | None) -> Reading:
            return Reading(id, "s", t.time(at), value, count, hr.money(price), True, note)

        t.send(
            reading("1", "10:00", 0.1, 1, "1.00", None),
            reading("2", "10:01", 0.2, 2, "2.00", "x"),
            reading("3", "10:02", 0.3, 2, "2.01", "y"),
        )
        t.end()
        (row,) = t.read("out")

    told = row.as_dict()
    assert told.pop("heat") == pytest.approx(0.6, abs=1e-9)
    assert told == {
        "sensor": "s", "window_start": t.time("10:00"), "window_end": t.time("11:00"), "kind": "final", "revision": 0,
        "n": 3, "notes": 2, "total": Decimal("5.01"), "mean": Decimal("1.670000"), "least": Decimal("1.00"),
        "most": t.time("10:02"), "one": None, "end": "y", "kinds": 2, "about": 2, "half": told["half"],
        "best": [Decimal("2.01"), Decimal("2.00")], "all": ["x", "y"], "level": None, "whole": 5 / 3, "twice": 10,
    }  # fmt: skip
    assert told["half"] == pytest.approx(2.0, rel=0.01)
    assert str(told["mean"]) == "1.670000"
