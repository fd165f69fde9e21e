"""Plans: order, names, levels, holds, flows; their text is golden, their fingerprint follows the text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import headrace as hr
from headrace.base.errors import BadApp
from headrace.plan import text
from headrace.plan.explain import explain
from headrace.plan.horizon import horizon
from headrace.plan.modes import MODES, why_not
from headrace.plan.plan import build
from tests.reference.ads import Click, User, ads
from tests.reference.shop import Order, shop
from tests.shapes import Payment, Reading, spend

GOLDEN = Path(__file__).parent / "golden"


def test_the_plan_of_the_bank_is_golden() -> None:
    plan = build(spend())
    assert "\n".join(text.lines(plan.flows[0])) + "\n" == (GOLDEN / "spend.plan").read_text()


def test_explain_of_the_bank_is_golden() -> None:
    assert explain(build(spend()), partitions={"payments": 4}) == (GOLDEN / "spend.explain").read_text()


def views() -> hr.App:
    app, view = shop("left")
    view.group_by("city").agg(orders=hr.count(), most=hr.max("amount")).to(app.topic("cities", compact=True))
    view.changes().where("op = 'delete'").to(app.topic("gone"))
    app.table(Order).where("amount > 100").select("order_id, amount").to(app.topic("large"), as_changes=True)
    return app


def test_the_plan_of_views_is_golden() -> None:
    plan = build(views())
    assert "\n".join(text.lines(plan.flows[0])) + "\n" == (GOLDEN / "views.plan").read_text()


def test_explain_of_views_is_golden() -> None:
    assert explain(build(views())) == (GOLDEN / "views.explain").read_text()


def stored() -> hr.App:
    """Windows to every kind of store and a topic, and a view to a table."""
    bank = hr.App("bank")
    payments = bank.stream(Payment, disorder="30 s")
    windows = payments.window(hr.session(gap="10 min"), lateness="1 min").agg(spent=hr.sum("amount")).named("spend")
    windows.to(hr.postgres("card_spend", key="card_id, window_start"))
    windows.to(hr.redis("spend:{card_id}", ttl="30 d"), guarantee="at-least-once")
    windows.to(bank.topic("card-spend"))
    payments.to(hr.lake("payments", partition="day(at)"), guarantee="at-most-once")
    payments.to(hr.files("payments"))
    bank.table(Order).where("amount > 100").to(hr.postgres("large_orders"))
    return bank


def test_the_plan_of_stores_is_golden() -> None:
    told = [line for flow in build(stored()).flows for line in text.lines(flow)]
    assert "\n".join(told) + "\n" == (GOLDEN / "stores.plan").read_text()


def test_explain_of_stores_is_golden() -> None:
    assert explain(build(stored())) == (GOLDEN / "stores.explain").read_text()


def test_stores_are_committed_in_the_order_they_were_declared() -> None:
    bank = stored()
    payments = bank.stream(Payment, disorder="30 s")
    payments.to(hr.files("payments"))  # a second way to the same place
    labels = [[leaving.target.label for leaving in flow.stores] for flow in build(bank).flows]
    assert labels == [
        ["postgres:card_spend", "redis:spend:{card_id}", "lake:payments", "files:payments"],
        ["postgres:large_orders"],
    ]


def test_a_store_gets_rows_of_one_shape_at_one_guarantee() -> None:
    for again, words in (
        (lambda payments: payments.select("card_id").to(hr.files("all")), "'all' would get rows of two shapes"),
        (lambda payments: payments.to(hr.files("all"), guarantee="at-least-once"), "exactly-once and at-least-once"),
    ):
        bank = hr.App("bank")
        payments = bank.stream(Payment, disorder="30 s")
        payments.to(hr.files("all"))
        again(payments)
        with pytest.raises(BadApp, match=words):
            build(bank)


def joins() -> hr.App:
    app = ads("left")
    clicks = app.stream(Click, disorder="0 s", idle=None)
    users = app.table(User, history="1 d")
    clicks.enrich(users, on="user_id").to(app.topic("now"))
    clicks.enrich(users, on="user_id", as_of="at").to(app.topic("then"))
    return app


def test_the_plan_of_joins_is_golden() -> None:
    plan = build(joins())
    assert "\n".join(text.lines(plan.flows[0])) + "\n" == (GOLDEN / "joins.plan").read_text()


def test_explain_of_joins_is_golden() -> None:
    assert explain(build(joins())) == (GOLDEN / "joins.explain").read_text()


def living(ttl: str | None) -> hr.App:
    app = hr.App("ads")
    clicks, users = app.stream(Click, disorder="0 s"), app.table(User, history="1 d", ttl=ttl)
    clicks.enrich(users, on="user_id").to(app.topic("now"))
    clicks.enrich(users, on="user_id", as_of="at").to(app.topic("then"))
    users.to(app.topic("people", compact=True))
    return app


def test_j7_a_time_to_live_bounds_what_is_kept() -> None:
    told = " ".join(explain(build(living("30 d"))).split())
    assert "version time since; a row that no record renews for 30 d is gone; it counts in the watermark" in told
    assert "the table's current row, dropped 30 d of event time after it about" in told
    assert "and the newest before that, dropped 31 d of event time after it about" in told
    assert "one row per key of users renewed in the last 30 d of event time, a deletion for 1 d" in told
    assert "renewed in the last 1 h of event time, a deletion for 1 h" in explain(build(living("1 h")))
    assert "the table's current row, kept until it is deleted" in explain(build(living(None)))


def test_j7_a_time_to_live_is_part_of_the_plan() -> None:
    without, short, long = (build(living(ttl)).flows[0] for ttl in (None, "1 h", "2 h"))
    assert len({text.fingerprint(flow) for flow in (without, short, long)}) == 3
    assert "ttl" not in "".join(text.lines(without))  # a checkpoint from before there was one is still of this plan
    shown = text.difference(text.lines(short), text.lines(long))
    assert shown.count("\n") == 1
    assert ", ttl 2 h: " in shown


@hr.event(key="ad_id")
class Ad:
    ad_id: str
    words: str


def asking(*rows: Ad) -> hr.App:
    app = hr.App("ads")
    app.stream(Click, disorder="0 s").enrich(app.static(Ad, rows), on="ad_id").to(app.topic("out"))
    return app


def test_a_static_table_is_part_of_the_plan_and_allows_every_mode() -> None:
    one, turned, other = (
        build(asking(*rows)).flows[0]
        for rows in ((Ad("a", "x"), Ad("b", "y")), (Ad("b", "y"), Ad("a", "x")), (Ad("a", "x"), Ad("b", "z")))
    )

    assert text.fingerprint(one) == text.fingerprint(turned) != text.fingerprint(other)
    assert one.levels == 0
    assert [why_not(one, mode) for mode in MODES] == [(), (), ()]
    assert "a static table of 2 rows, in the plan itself" in explain(build(asking(Ad("a", "x"), Ad("b", "y"))))


def test_an_app_without_output_is_refused() -> None:
    app = hr.App("quiet")
    app.stream(Payment, disorder="0 s")
    with pytest.raises(BadApp, match="no output"):
        build(app)


def test_two_shapes_in_one_topic_are_refused() -> None:
    app = hr.App("mixed")
    payments = app.stream(Payment, disorder="0 s")
    payments.select("card_id").to(app.topic("a"))
    payments.select("card_id, amount").to(app.topic("a"))
    with pytest.raises(BadApp, match="two shapes") as caught:
        build(app)
    assert caught.value.where is not None


def test_two_guarantees_for_one_topic_are_refused() -> None:
    app = hr.App("mixed")
    payments = app.stream(Payment, disorder="0 s")
    payments.to(app.topic("a"))
    payments.where("amount > 1").to(app.topic("a"), guarantee="at-least-once")
    with pytest.raises(BadApp, match="written exactly-once and at-least-once") as caught:
        build(app)
    assert caught.value.where is not None


def test_what_decides_is_explained_and_not_part_of_the_plan() -> None:
    app = hr.App("bank")
    payments = app.stream(Payment, disorder="30 s")
    payments.decide("fraud", default="decline").to(app.topic("decisions"))

    said = explain(build(app))

    assert "decide by the policy fraud, decline until there is one" in said
    assert "rules and model from the topic fraud.policy, followed while it runs" in said
    assert "  realtime    yes" in said
    assert [topic.name for topic in app.topics] == ["payments", "fraud.policy", "decisions"]


def test_a_guarantee_is_part_of_the_plan_and_explained() -> None:
    app = hr.App("mixed")
    payments = app.stream(Payment, disorder="0 s").select("card_id")
    payments.to(app.topic("a"))
    payments.to(app.topic("b"), guarantee="at-least-once")
    (quick,) = build(app).flows
    assert "exactly once, in real time at least once; every record" in explain(build(app))
    payments.to(app.topic("c"), guarantee="at-most-once")
    (slow,) = build(app).flows
    assert text.lines(slow)[-3:] == (
        "to a: from select-1, key card_id, card_id text",
        "to b: from select-1, key card_id, at-least-once, card_id text",
        "to c: from select-1, key card_id, at-most-once, card_id text",
    )
    said = [line.strip() for line in explain(build(app)).splitlines()]
    assert said.count("exactly once; every record carries its stable id in the header hr-id") == 1
    assert said.count("at least once; every record carries its stable id in the header hr-id") == 1
    assert any(line.startswith("at most once: ") for line in said)
    assert why_not(quick, "realtime") == ()
    assert why_not(slow, "realtime")[0].startswith("c is written at most once")


def test_t4_a_flow_is_what_is_connected() -> None:
    app = hr.App("two")
    app.stream(Payment, disorder="0 s").to(app.topic("a"))
    app.stream(Reading, disorder="0 s").to(app.topic("b"))
    assert [flow.name for flow in build(app).flows] == ["payments", "readings"]


def test_only_steps_that_reach_an_output_are_planned() -> None:
    app = hr.App("lean")
    payments = app.stream(Payment, disorder="0 s")
    payments.window(hr.tumbling("1 h"), lateness="0 s").agg(n=hr.count())
    payments.where("amount > 0").to(app.topic("a"))
    assert [step.name for step in build(app).flows[0].steps] == ["payments", "where-1"]


def test_t6_a_step_is_held_back_by_the_lateness_of_the_windows_before_it() -> None:
    app = hr.App("chained")
    first = (
        app.stream(Payment, disorder="0 s").window(hr.tumbling("1 min"), lateness="10 s").agg(spent=hr.sum("amount"))
    )
    second = first.window(hr.tumbling("1 h"), lateness="1 min").agg(most=hr.max("spent"))
    second.to(app.topic("most"))
    steps = build(app).flows[0].steps
    assert [(s.name, s.level, s.hold) for s in steps] == [
        ("payments", 0, timedelta(0)),
        ("window-1", 1, timedelta(0)),
        ("window-2", 2, timedelta(seconds=10)),
    ]


def test_the_fingerprint_changes_with_the_plan_and_says_how() -> None:
    before = build(spend()).flows[0]
    app = hr.App("bank")
    app.stream(Payment, disorder="30 s").where("amount > 1").to(app.topic("card-spend"))
    after = build(app).flows[0]
    assert text.fingerprint(before) == text.fingerprint(build(spend()).flows[0])
    assert text.fingerprint(before) != text.fingerprint(after)
    shown = text.difference(text.lines(before), text.lines(after))
    assert "-where-1: from payments, where amount > 0" in shown
    assert "+where-1: from payments, where amount > 1" in shown


def test_r5_real_time_says_why_a_window_cannot() -> None:
    flow = build(spend()).flows[0]
    assert why_not(flow, "live") == ()
    assert "watermark stands still" in why_not(flow, "realtime")[0]


def test_a_python_function_runs_at_every_speed_and_says_what_it_costs() -> None:
    app = hr.App("bank")
    app.stream(Payment, disorder="30 s").where(lambda payment: payment.amount > 1).to(app.topic("large"))
    plan = build(app)
    assert not any(why_not(plan.flows[0], mode) for mode in MODES)
    assert "a Python function, in a process of its own for each task" in explain(plan)


def test_w7_processing_time_is_refused_in_history() -> None:
    app = hr.App("clock")
    payments = app.stream(Payment, disorder="0 s")
    payments.window(hr.tumbling("1 min", time="processing")).agg(n=hr.count()).to(app.topic("n"))
    assert "history has none" in why_not(build(app).flows[0], "history")[0]


def test_w7_a_processing_time_window_before_an_event_time_step_is_refused() -> None:
    app = hr.App("clock")
    first = (
        app.stream(Payment, disorder="0 s").window(hr.tumbling("1 min", time="processing")).agg(spent=hr.sum("amount"))
    )
    first.window(hr.tumbling("1 h"), lateness="0 s").agg(n=hr.count()).to(app.topic("n"))
    with pytest.raises(BadApp, match="processing time"):
        build(app)


def watching() -> hr.App:
    """A pattern with a bit of everything that a plan has to say."""
    bank = hr.App("bank")
    payments, readings = bank.stream(Payment, disorder="0 s"), bank.stream(Reading, disorder="0 s")
    watched = (
        bank.pattern("watched", key="country", after_match="to last small", select="country, count(small) as times")
        .first("small", payments.where("amount < 10"))
        .times(2)
        .or_more()
        .greedy()
        .until("amount = 0")
        .then(hr.group("large", payments.where("amount > 10"), where="amount > avg(small.amount)").next("same"))
        .times(1, 3)
        .any()
        .optional()
        .never("read", readings.select("note as country, value").where("country is not null"), within="1 min")
        .within("5 min")
    )
    watched.matches.to(bank.topic("watched"))
    watched.timeouts.to(bank.topic("tried"))
    return bank


def test_the_plan_of_a_pattern_is_golden() -> None:
    plan = build(watching())
    assert "\n".join(text.lines(plan.flows[0])) + "\n" == (GOLDEN / "pattern.plan").read_text()


def test_explain_of_a_pattern_is_golden() -> None:
    assert explain(build(watching())) == (GOLDEN / "pattern.explain").read_text()


def test_a_replay_begins_a_patterns_time_earlier() -> None:
    assert horizon(build(watching()).flows[0]) == timedelta(minutes=5)


def test_r5_a_pattern_runs_at_every_speed() -> None:
    flow = build(watching()).flows[0]
    assert [why_not(flow, mode) for mode in MODES] == [(), (), ()]


def known() -> hr.App:
    """Features with windows, a delay, computed arguments, rows before; vectors and late rows go on."""
    bank = hr.App("bank")
    payments = bank.stream(Payment, disorder="30 s")
    card = (
        bank.features("card", key="card_id", source=payments.where("amount > 0"), ttl="30 d")
        .over("1 h", "1 d", spent=hr.sum("amount"), times=hr.count(), terminals=hr.distinct("terminal_id"))
        .over("28 d", delay="7 d", large=hr.max("amount * 2"))
        .last("at")
        .last("country", n=3)
    )
    card.vectors.where("spent_1h > 1000").to(bank.topic("alerts"))
    card.late.to(bank.topic("late"))
    return bank


def test_the_plan_of_features_is_golden() -> None:
    plan = build(known())
    assert "\n".join(text.lines(plan.flows[0])) + "\n" == (GOLDEN / "features.plan").read_text()


def test_explain_of_features_is_golden() -> None:
    assert explain(build(known())) == (GOLDEN / "features.explain").read_text()


def test_features_run_at_every_speed_and_a_replay_begins_with_what_they_remember() -> None:
    flow = build(known()).flows[0]
    assert [why_not(flow, mode) for mode in MODES] == [(), (), ()]
    assert horizon(flow) == timedelta(days=35, hours=1, seconds=30)


def test_features_of_several_streams_say_so_in_the_plan() -> None:
    """The text of the plan is what a checkpoint is compared by: whatever changes results or state stands in it."""
    bank = hr.App("bank")
    payments = bank.stream(Payment, disorder="30 s")
    large = payments.where("amount > 100").named("large")
    card = bank.features("card", key="card_id", source=payments, ttl="30 d", once="payment_id")
    card = card.over("1 d", times=hr.count()).over("60 d", of=large, large=hr.sum("amount * 2")).seen()
    card.vectors.to(bank.topic("features"))
    (flow,) = build(bank).flows
    (said,) = [line for line in text.lines(flow) if line.startswith("card")]
    assert said == (
        "card: from payments and large, features by card_id, forgotten after 30 d, lateness 1 h, at most 100,000 rows, "
        "once by payment_id; over 1 d: times_1d = count(); over 60 d of large: large_60d = sum(amount * 2); seen"
    )
    words = " ".join(explain(build(bank)).split())
    assert (
        "every row of the last 1 d 1 h behind the watermark, at most 100,000; forgotten 30 d 1 h after its last; "
        "of large every row of the last 60 d 1 h, at most 100,000 about 32 bytes per row" in words
    )
    assert [why_not(flow, mode) for mode in MODES] == [(), (), ()]
    assert horizon(flow) == timedelta(days=60, hours=1, seconds=30)


def test_fe12_windows_in_tiles_say_so_in_the_plan_and_how_little_they_keep() -> None:
    def told(tiles: bool, lateness: str = "1 h") -> hr.App:
        bank = hr.App("bank")
        payments = bank.stream(Payment, disorder="30 s")
        large = payments.where("amount > 100").named("large")
        terminal = bank.features("terminal", key="terminal_id", source=payments, ttl="30 d", lateness=lateness)
        terminal = terminal.over("1 h", "30 d", tiles=tiles, spent=hr.sum("amount"), times=hr.count())
        terminal = terminal.over("7 d", of=large, tiles=tiles, most=hr.max("amount"))
        terminal.vectors.to(bank.topic("features"))
        return bank

    (flow,), (exact,) = build(told(True)).flows, build(told(False)).flows
    assert text.fingerprint(flow) != text.fingerprint(exact)
    (said,) = [line for line in text.lines(flow) if line.startswith("terminal")]
    assert said == (
        "terminal: from payments and large, features by terminal_id, forgotten after 30 d, lateness 1 h, at most "
        "100,000 rows; over 1 h in tiles of 5 min: spent_1h = sum(amount), times_1h = count(); over 30 d in tiles of "
        "1 d: spent_30d = sum(amount), times_30d = count(); over 7 d in tiles of 1 h of large: most_7d = max(amount)"
    )
    assert (
        "every row of the last 1 h behind the watermark, at most 100,000; forgotten 30 d 1 h after its last; of large "
        "every row of the last 1 h, at most 100,000; older rows in tiles: at most 12 of 5 min, 30 of 1 d, 168 of 1 h, "
        "about 4,032 bytes" in " ".join(explain(build(told(True))).split())
    )
    assert "state per key: every row ahead of the watermark" in explain(build(told(True, lateness="0 s")))
    assert [why_not(flow, mode) for mode in MODES] == [(), (), ()]
    assert horizon(flow) == horizon(exact)


def test_explain_warns_of_a_window_that_counts_corrections_of_another() -> None:
    def told(then: Callable[[hr.Stream], hr.Stream], lateness: str = "1 min", emit: hr.Emit | None = None) -> str:
        app = hr.App("twice")
        five = app.stream(Payment, disorder="0 s").window(hr.tumbling("5 min"), lateness=lateness, emit=emit)
        five_minutes = then(five.agg(n=hr.count()).named("five"))
        five_minutes.window(hr.tumbling("1 h"), lateness="0 s").agg(all=hr.sum("n")).to(app.topic("hours"))
        return explain(build(app))

    warning = "counts every result of five, those that replace another too: docs/windows.md"
    assert warning in told(lambda five: five)
    assert warning in told(lambda five: five.where("n > 1").select("card_id, n"))
    assert warning in told(lambda five: five, lateness="0 s", emit=hr.on_change())
    assert warning not in told(lambda five: five, lateness="0 s")
    assert warning not in told(lambda five: five.where("kind = 'final'").select("card_id, n"))


def test_t4_a_flow_reads_a_topic_once() -> None:
    app = hr.App("twice")
    payments, again = app.stream(Payment, disorder="0 s"), app.stream(Payment, disorder="5 s", name="again")
    payments.to(app.topic("a"))
    again.to(app.topic("b"))
    assert len(build(app).flows) == 2  # each has its own query

    payments.union(again).to(app.topic("c"))
    with pytest.raises(BadApp, match="the topic 'payments' is read twice in one flow") as caught:
        build(app)
    assert caught.value.where is not None
