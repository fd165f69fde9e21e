"""Rules B2 and B3 on the reference engine: what cannot be computed is set aside, and the stream goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import FunctionFailed
from tests.reference.pages import Buy, Visit, visit


def mapped(function: Any, **more: Any) -> hr.App:
    app = hr.App("site")
    app.stream(Visit, disorder="0 s").map(function, Buy, **more).named("mapped").to(app.topic("out"))
    return app


def fussy(row: Any) -> Buy:
    if row.page == "bad":
        raise ValueError("not this page")
    return Buy(row.page, row.at)


def test_b2_an_exception_in_user_code_is_a_dead_letter_with_the_traceback() -> None:
    with hr.testing.run(mapped(fussy)) as t:
        t.send(visit(t, "10:01", "a"), visit(t, "10:02", "bad"), visit(t, "10:03", "b"))

        assert [row.page for row in t.read("out")] == ["a", "b"]
        (letter,) = t.dead("visits")
        assert (letter.reason, letter.step, letter.cause) == ("function", "mapped", "visits/0/1")
        assert "ValueError: not this page" in letter.error
        assert "in fussy" in letter.error
        assert t.counts("mapped").dead == 1


def test_b2_it_is_retried_as_often_as_said() -> None:
    tries: list[str] = []

    def shaky(row: Any) -> Buy:
        tries.append(row.page)
        if len(tries) < 3:
            raise OSError("try again")
        return Buy(row.page, row.at)

    with hr.testing.run(mapped(shaky, retries=2)) as t:
        t.send(visit(t, "10:01"))

        assert len(t.read("out")) == 1
        assert len(tries) == 3
        assert t.dead() == []


def test_b2_after_the_last_try_it_is_dead() -> None:
    with hr.testing.run(mapped(fussy, retries=2)) as t:
        t.send(visit(t, "10:01", "bad"))

        assert t.counts("mapped").dead == 1


def test_b2_on_error_stop_stops() -> None:
    with hr.testing.run(mapped(fussy, on_error="stop")) as t, pytest.raises(FunctionFailed) as stopped:
        t.send(visit(t, "10:01", "bad"))

    assert "fussy failed on visits/0/0" in stopped.value.what
    assert "test_bad_input.py" in str(stopped.value.where)


def test_b2_a_row_of_another_type_is_an_error_of_the_function() -> None:
    with hr.testing.run(mapped(lambda row: None)) as t:
        t.send(visit(t, "10:01"))

        assert "its rows are declared to be Buy" in t.dead()[0].error


def test_flat_map_makes_any_number_of_rows_each_with_its_own_id() -> None:
    def split(row: Any) -> Iterator[Buy]:
        return (Buy(part, row.at) for part in row.page.split())

    app = hr.App("site")
    app.stream(Visit, disorder="0 s").flat_map(split, Buy).named("split").to(app.topic("out"), key="page")
    with hr.testing.run(app) as t:
        t.send(visit(t, "10:01", "x y x"), visit(t, "10:02", ""))

        assert [row.page for row in t.read("out")] == ["x", "y", "x"]
        assert len({record.id for record in t.records("out")}) == 3
        counts = t.counts("split")
        assert (counts.received, counts.used, counts.dead) == (2, 2, 0)


def test_flat_map_keeps_its_order_in_the_next_step() -> None:
    def split(row: Any) -> list[Visit]:
        return [Visit("p", row.at, n) for n in range(12)]

    app = hr.App("site")
    parts = app.stream(Visit, disorder="0 s").flat_map(split, Visit).key_by("page")
    parts.window(hr.tumbling("1 h"), lateness="0 s").agg(seen=hr.collect("spent")).to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(visit(t, "10:01"))
        t.end()

        assert t.read("out")[0].seen == list(range(12))


@pytest.mark.parametrize("where", ["filter", "select", "key", "argument", "exit"])
def test_b3_a_result_that_does_not_fit_is_a_dead_letter_wherever_it_is_computed(where: str) -> None:
    app = hr.App("site")
    visits = app.stream(Visit, disorder="0 s")
    windowed = lambda stream: stream.window(hr.tumbling("1 h"), lateness="0 s")  # noqa: E731
    double = "spent * 4611686018427387904"  # 2 ** 62
    if where == "filter":
        visits.where(f"{double} >= 0").to(app.topic("out"))
    elif where == "select":
        visits.select(f"page, {double} as much").to(app.topic("out"))
    elif where == "key":
        windowed(visits.key_by(f"{double} as much")).agg(n=hr.count()).to(app.topic("out"))
    elif where == "argument":
        windowed(visits).agg(n=hr.max(double)).to(app.topic("out"))
    else:
        visits.where("spent >= 0").to(app.topic("out"), key=f"{double} as much")
    with hr.testing.run(app) as t:
        t.send(Visit("p", t.time("10:01"), 1), Visit("p", t.time("10:02"), 2))
        t.end()

        assert len(t.read("out")) == 1
        (letter,) = t.dead("visits")
        assert (letter.reason, letter.cause) == ("does-not-fit", "visits/0/1")


def test_select_and_filter_pass_rows_on() -> None:
    app = hr.App("site")
    (app.stream(Visit, disorder="0 s").where("spent > 1").select("page, spent * 2 as twice")
     .to(app.topic("out"), key="page"))  # fmt: skip
    with hr.testing.run(app) as t:
        t.send(Visit("p", t.time("10:01"), 1), Visit("q", t.time("10:01"), 2))

        assert t.read("out") == [{"page": "q", "twice": 4}]
        assert t.records("out")[0].key == "q"
        assert t.counts("where-1").filtered == 1


def test_b2_a_function_as_condition_keeps_filters_and_buries() -> None:
    def choosy(row: Any) -> bool | None:
        if row.page == "/broken":
            raise ValueError("no such page")
        return None if row.page == "/none" else row.page == "/a"

    app = hr.App("site")
    app.stream(Visit, disorder="0 s").where(choosy).named("chosen").to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(*(Visit(page, t.time("10:00")) for page in ("/a", "/b", "/none", "/broken")))

        assert [row.page for row in t.read("out")] == ["/a"]
        assert [row.reason for row in t.dead()] == ["function"]
        counts = t.counts("chosen")
        assert (counts.used, counts.filtered, counts.dead) == (1, 2, 1)


def test_b2_a_condition_that_gives_no_bool_is_a_dead_letter() -> None:
    app = hr.App("site")
    app.stream(Visit, disorder="0 s").where(lambda row: row.page).to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.send(Visit("/a", t.time("10:00")))

        assert "a condition is True or False" in t.dead()[0].error
