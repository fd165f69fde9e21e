"""Rules J1-J4, J6 and J7 for streams with streams and streams with tables, through a plan."""

from __future__ import annotations

import pytest

import headrace as hr
from tests.reference.ads import Click, Impression, User, ads, clicked, pairs, shown


def test_j1_both_bounds_are_inclusive() -> None:
    with hr.testing.run(ads(within=("0 s", "10 min"))) as t:
        t.send(shown(t, "i", "10:00"))
        t.send(clicked(t, "at-once", "10:00"), clicked(t, "at-last", "10:10"), clicked(t, "after", "10:10:00.000001"))
        t.end()

        assert pairs(t) == [("i", "at-once"), ("i", "at-last")]


def test_j1_bounds_may_be_negative() -> None:
    with hr.testing.run(ads(within=("-5 min", "-1 min"))) as t:
        t.batch(clicked(t, "before", "10:00"), clicked(t, "too-near", "10:04:30"), shown(t, "i", "10:05"))
        t.end()

        assert pairs(t) == [("i", "before")]


def test_j1_equal_keys_are_needed_in_all_parts() -> None:
    with hr.testing.run(ads()) as t:
        t.send(shown(t, "i", "10:00", ad="a", user="u1"))
        t.batch(clicked(t, "ad", "10:01", ad="b", user="u1"), clicked(t, "user", "10:01", ad="a", user="u2"))
        t.end()

        assert pairs(t) == []


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("inner", [("seen", "clicked")]),
        ("left", [("seen", "clicked"), ("unseen", None)]),
        ("right", [("seen", "clicked"), (None, "stray")]),
        ("full", [("seen", "clicked"), ("unseen", None), (None, "stray")]),
    ],
)
def test_j2_rows_without_partner_come_out_once_as_how_says(
    how: str, wanted: list[tuple[str | None, str | None]]
) -> None:
    with hr.testing.run(ads(how)) as t:
        t.send(shown(t, "seen", "10:00"), shown(t, "unseen", "10:01", user="u2"), clicked(t, "clicked", "10:02"))
        t.send(clicked(t, "stray", "10:03", user="u3"))
        t.end()

        assert sorted(pairs(t), key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize(("how", "wanted"), [("semi", ["seen"]), ("anti", ["unseen"])])
def test_j2_semi_and_anti_joins_give_left_rows_once(how: str, wanted: list[str]) -> None:
    with hr.testing.run(ads(how)) as t:
        t.send(shown(t, "seen", "10:00"), shown(t, "unseen", "10:01", user="u2"))
        t.send(clicked(t, "once", "10:02"), clicked(t, "twice", "10:03"))
        t.end()

        assert [row.impression_id for row in t.read("seen")] == wanted


def test_j2_a_row_is_alone_when_the_watermark_is_past_its_bound() -> None:
    with hr.testing.run(ads("left")) as t:
        t.send(shown(t, "i", "10:00"), shown(t, "on", "10:10", user="u2"), clicked(t, "c", "10:10", user="u2"))
        assert ("i", None) not in pairs(t)

        t.batch(shown(t, "on2", "10:10:00.001", user="u3"), clicked(t, "c2", "10:10:00.001", user="u3"))

        assert ("i", None) in pairs(t)


def test_j3_a_row_after_its_time_goes_only_to_late_even_if_partners_are_held() -> None:
    with hr.testing.run(ads(within=("-10 min", "0 s"))) as t:
        t.batch(clicked(t, "held", "10:00"), shown(t, "other", "10:00", user="u2"))
        t.batch(clicked(t, "on", "10:05", user="u3"), shown(t, "on", "10:05", user="u3"))
        t.send(shown(t, "behind", "10:04"))

        assert pairs(t) == [("on", "on")]
        assert [(row.impression_id, row.side, row.watermark) for row in t.read("late")] == [
            ("behind", "left", t.time("10:05"))
        ]
        assert t.counts("seen").late == 1


def test_j6_null_keys_match_nothing_and_come_out_alone_at_once() -> None:
    with hr.testing.run(ads("left")) as t:
        t.batch(shown(t, "i", "10:00", ad=None), clicked(t, "c", "10:00", ad=None))

        assert pairs(t) == [("i", None)]
        assert [row.side for row in t.read("unmatched")] == ["right", "left"]


def test_unmatched_rows_are_told_also_where_how_leaves_them_out() -> None:
    with hr.testing.run(ads("inner")) as t:
        t.send(shown(t, "i", "10:00"))
        t.end()

        assert pairs(t) == []
        assert [(row.impression_id, row.ad_id, row.side) for row in t.read("unmatched")] == [("i", "ad", "left")]


def test_j6_a_stream_joins_itself_under_another_name() -> None:
    app = hr.App("ads")
    clicks = app.stream(Click, disorder="0 s")
    twice = clicks.join(
        clicks.alias("again"), on="user_id", within=("1 ms", "1 min"), take="clicks.click_id, again.click_id as next"
    )
    twice.to(app.topic("twice"))
    with hr.testing.run(app) as t:
        t.send(clicked(t, "a", "10:00"), clicked(t, "b", "10:00:30"), clicked(t, "c", "10:02"))

        assert [(row.click_id, row.next) for row in t.read("twice")] == [("a", "b")]


def test_several_streams_are_joined_one_after_the_other() -> None:
    app = hr.App("ads")
    impressions, clicks = (
        app.stream(Impression, disorder="0 s", idle=None),
        app.stream(Click, disorder="0 s", idle=None),
    )
    once = impressions.join(
        clicks,
        on="user_id",
        within=("0 s", "10 min"),
        take="impressions.user_id, impressions.impression_id, clicks.click_id",
    )
    again = once.alias("once").join(clicks, on="user_id", within=("1 ms", "10 min"), prefix="second_")
    again.to(app.topic("again"))
    with hr.testing.run(app) as t:
        t.send(shown(t, "i", "10:00"), clicked(t, "a", "10:01"), clicked(t, "b", "10:02"))
        t.end()

        assert [(r.impression_id, r.click_id, r.second_click_id) for r in t.read("again")] == [("i", "a", "b")]


def test_t6_a_window_after_an_outer_join_waits_for_the_rows_that_were_alone() -> None:
    app = hr.App("ads")
    impressions, clicks = (
        app.stream(Impression, disorder="0 s", idle=None),
        app.stream(Click, disorder="0 s", idle=None),
    )
    seen = impressions.join(clicks, on="ad_id, user_id", within=("0 s", "10 min"), how="left", prefix="click_")
    counted = seen.window(hr.tumbling("1 min"), lateness="0 s").agg(
        shown=hr.count(), clicked=hr.count("click_click_id")
    )
    counted.to(app.topic("rate"))
    counted.late.to(app.topic("late"))
    with hr.testing.run(app) as t:
        t.send(shown(t, "a", "10:00:10"), shown(t, "b", "10:00:20", ad="other"), clicked(t, "c", "10:05"))
        t.end()

        assert [(row.window_start, row.shown, row.clicked) for row in t.read("rate")] == [
            (t.time("10:00"), 1, 0),
            (t.time("10:05"), 1, 1),
        ]
        assert t.read("late") == []


# -- tables


def enriching(ttl: str | None = None, **how: str) -> hr.App:
    app = hr.App("ads")
    clicks = app.stream(Click, disorder="0 s", idle=None)
    users = app.table(User, history="1 h", ttl=ttl, idle=None)
    enriched = clicks.enrich(users, on="user_id", **how).named("enriched")
    enriched.to(app.topic("out"))
    if "as_of" in how:
        enriched.late.to(app.topic("late"))
    return app


def cities(t: hr.testing.Run) -> list[tuple[str, str | None]]:
    return [(row.click_id, row.city) for row in t.read("out")]


def test_j4_current_is_what_the_table_says_when_the_row_is_processed() -> None:
    with hr.testing.run(enriching()) as t:
        t.send(clicked(t, "none", "10:00"))
        t.send(User("u1", "Rome", t.time("09:00")), clicked(t, "rome", "09:30"), User("u1", "Oslo", t.time("10:00")))
        t.send(clicked(t, "oslo", "09:40"))

        assert cities(t) == [("none", None), ("rome", "Rome"), ("oslo", "Oslo")]


def test_j4_as_of_takes_the_version_of_the_rows_time() -> None:
    with hr.testing.run(enriching(as_of="at")) as t:
        t.send(User("u1", "Rome", t.time("09:00")), clicked(t, "rome", "09:59"), clicked(t, "oslo", "10:00"))
        t.send(User("u1", "Oslo", t.time("10:00")))
        t.end()

        assert cities(t) == [("rome", "Rome"), ("oslo", "Oslo")]


def test_j4_rows_wait_until_versions_up_to_their_time_are_known() -> None:
    with hr.testing.run(enriching(as_of="at")) as t:
        t.send(User("u1", "Rome", t.time("09:00")), clicked(t, "c", "10:00"))
        assert cities(t) == []
        assert t.counts("enriched").held == 1

        t.batch(User("u2", "Bern", t.time("10:00:01")), clicked(t, "on", "10:00:01", user="u2"))

        assert cities(t) == [("c", "Rome")]


def test_j4_without_waiting_a_row_takes_what_is_there_and_a_later_version_does_not_revise() -> None:
    with hr.testing.run(enriching(as_of="at", wait="0 s")) as t:
        t.send(User("u1", "Rome", t.time("09:00")), clicked(t, "c", "10:00"), User("u1", "Oslo", t.time("09:30")))
        t.send(clicked(t, "d", "10:00"))

        assert cities(t) == [("c", "Rome"), ("d", "Oslo")]


def test_j4_a_row_older_than_the_history_is_late() -> None:
    with hr.testing.run(enriching(as_of="at")) as t:
        t.batch(User("u1", "Rome", t.time("09:00")), clicked(t, "on", "09:00"))
        t.batch(User("u2", "Bern", t.time("10:30")), clicked(t, "c", "10:30"))
        t.send(clicked(t, "old", "09:29"), clicked(t, "young", "09:30"))
        t.end()

        assert [(row.click_id, row.watermark) for row in t.read("late")] == [("old", t.time("10:30"))]
        assert ("young", "Rome") in cities(t)


def test_j6_the_current_value_is_that_of_the_greatest_version_time() -> None:
    with hr.testing.run(enriching()) as t:
        t.send(User("u1", "Oslo", t.time("10:00")), User("u1", "Rome", t.time("09:00")), clicked(t, "c", "10:01"))

        assert cities(t) == [("c", "Oslo")]


def test_j6_a_tombstone_removes_and_an_older_version_does_not_bring_back() -> None:
    with hr.testing.run(enriching()) as t:
        t.send(User("u1", "Oslo", t.time("10:00")))
        t.delete(User, "u1", at=t.time("10:05"))
        t.send(User("u1", "Rome", t.time("10:03")), clicked(t, "c", "10:06"))

        assert cities(t) == [("c", None)]


def test_j7_a_row_finds_nothing_that_the_watermark_before_it_has_outlived() -> None:
    with hr.testing.run(enriching(ttl="30 min")) as t:
        t.send(User("u1", "Rome", t.time("10:00")), clicked(t, "a", "10:29"), clicked(t, "b", "10:30"))
        t.send(clicked(t, "c", "10:29"), User("u1", "Oslo", t.time("10:01")), clicked(t, "d", "10:31"))
        t.send(User("u1", "Bonn", t.time("10:01")), clicked(t, "e", "10:32"))

        assert cities(t) == [("a", "Rome"), ("b", "Rome"), ("c", None), ("d", "Oslo"), ("e", None)]


def test_j7_as_of_the_row_is_gone_from_its_version_time_and_ttl_on() -> None:
    with hr.testing.run(enriching(ttl="30 min", as_of="at")) as t:
        t.batch(User("u1", "Rome", t.time("10:00")), clicked(t, "on", "10:29:59.999999"))
        t.batch(clicked(t, "off", "10:30"), clicked(t, "again", "11:00"), User("u1", "Oslo", t.time("10:45")))
        t.end()

        assert cities(t) == [("on", "Rome"), ("off", None), ("again", "Oslo")]


def test_j7_a_table_that_is_asked_for_its_current_value_holds_nobody_up_and_lives_by_the_streams_time() -> None:
    with hr.testing.run(enriching(ttl="30 min")) as t:
        t.send(User("u1", "Rome", t.time("10:00")), User("u2", "Oslo", t.time("12:00")), clicked(t, "a", "10:10"))
        t.send(clicked(t, "b", "10:20"))

        assert t.watermark() == t.time("10:20")
        assert cities(t) == [("a", "Rome"), ("b", "Rome")]


def test_an_enriched_row_is_still_the_row_it_was() -> None:
    with hr.testing.run(enriching()) as t:
        t.send(clicked(t, "c", "10:00"))
        (record,) = t.records("out")

    plain = hr.App("ads")
    plain.stream(Click, disorder="0 s").to(plain.topic("out"))
    with hr.testing.run(plain) as t:
        t.send(clicked(t, "c", "10:00"))

        assert t.records("out") == [record]


# -- union


def test_a_union_has_the_rows_of_all() -> None:
    app = hr.App("ads")
    both = app.stream(Impression, disorder="0 s").select("ad_id, user_id, at")
    both.union(app.stream(Click, disorder="0 s").select("ad_id, user_id, at")).named("both").to(app.topic("both"))
    with hr.testing.run(app) as t:
        t.send(shown(t, "i", "10:00"), clicked(t, "c", "10:01"))

        assert [row.at for row in t.read("both")] == [t.time("10:00"), t.time("10:01")]
        assert t.counts("both").used == 2


def test_a_row_that_comes_to_a_union_by_two_ways_is_two_rows() -> None:
    app = hr.App("ads")
    clicks = app.stream(Click, disorder="0 s")
    clicks.where("ad_id = 'ad'").union(clicks.where("user_id = 'u1'")).to(app.topic("both"))
    with hr.testing.run(app) as t:
        t.send(clicked(t, "c", "10:00"))

        assert len({record.id for record in t.records("both")}) == 2


def test_split_sends_each_row_to_the_first_branch_that_wants_it() -> None:
    app = hr.App("ads")
    branches = app.stream(Click, disorder="0 s").split(mine="user_id = 'u1'", ads="ad_id is not null")
    branches.mine.to(app.topic("mine"))
    branches.ads.to(app.topic("ads"))
    branches.rest.to(app.topic("rest"))
    with hr.testing.run(app) as t:
        t.send(clicked(t, "a", "10:00"), clicked(t, "b", "10:00", user="u2"), clicked(t, "c", "10:00", None, "u2"))

        assert [[row.click_id for row in t.read(topic)] for topic in ("mine", "ads", "rest")] == [["a"], ["b"], ["c"]]


@hr.event(key="user_id, floor")
class Desk:
    user_id: str
    floor: int
    phone: str | None


def test_j6_rows_are_looked_up_in_a_static_table_and_null_keys_find_nothing() -> None:
    app = hr.App("ads")
    clicks = app.stream(Click, disorder="0 s")
    desks = app.static(Desk, [Desk("u1", 2, "12"), Desk("u1", 3, None), Desk("u2", 2, "22")])
    on = "clicks.user_id = desk.user_id and length(clicks.ad_id) = desk.floor"
    clicks.enrich(desks, on=on, take="clicks.click_id, desk.floor, desk.phone").named("asked").to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(clicked(t, "a", "10:00"), clicked(t, "b", "10:00", ad="two"), clicked(t, "c", "10:00", user="u2"))
        t.send(clicked(t, "d", "10:00", user="u3"), clicked(t, "e", "10:00", ad=None))

        assert [tuple(row.as_dict().values()) for row in t.read("out")] == [
            ("a", 2, "12"), ("b", 3, None), ("c", 2, "22"), ("d", None, None), ("e", None, None),
        ]  # fmt: skip
        assert t.counts("asked").used == 5


def test_a_key_that_does_not_fit_is_a_dead_letter_where_a_static_table_is_asked() -> None:
    app = hr.App("ads")
    desks = app.static(Desk, [Desk("u1", 7, "12")])
    on = "clicks.user_id = desk.user_id and cast(clicks.ad_id as int) = desk.floor"
    asked = app.stream(Click, disorder="0 s").enrich(desks, on=on, take="clicks.click_id, desk.phone").named("asked")
    asked.to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(clicked(t, "a", "10:00", ad="7"), clicked(t, "b", "10:00", ad="seven"))

        assert [(row.click_id, row.phone) for row in t.read("out")] == [("a", "12")]
        assert (t.counts("asked").used, t.counts("asked").dead) == (1, 1)
