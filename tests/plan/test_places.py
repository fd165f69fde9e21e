"""Which stages find their rows where they belong: what follows by the same key is not shuffled again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import headrace as hr
from headrace.plan.places import shuffled
from headrace.plan.plan import build


@hr.event(topic="visits", key="page", time="at", id="visit")
class Visit:
    visit: str
    page: str
    at: datetime
    spent: int


@hr.event(topic="pages", key="page", time="at")
class Page:
    page: str
    at: datetime
    owner: str


def known(app: hr.App, of: Any, key: str = "page", name: str = "known") -> Any:
    return app.features(name, key=key, source=of, ttl="1 h").over("1 min", times=hr.count()).vectors


def by_the_same_key(app: hr.App, visits: Any) -> Any:
    return (
        known(app, visits).enrich(app.table(Page), on="page", take="known.*, pages.owner").dedup("page", within="1 h")
    )


def renamed(app: hr.App, visits: Any) -> Any:
    return known(app, visits).select("page as url, at, spent").where("spent > 1").dedup("url", within="1 h")


def of_a_window(app: hr.App, visits: Any) -> Any:
    counted = visits.key_by("page").window(hr.tumbling("1 min"), lateness="0 s").agg(times=hr.count())
    return counted.dedup("page", within="1 h")


def of_a_pattern(app: hr.App, visits: Any) -> Any:
    found = app.pattern("twice", key="page", select="page, b.visit").first("a", visits).then("b", visits)
    return known(app, found.within("1 min").matches)


def past_another(app: hr.App, visits: Any) -> Any:
    """The rows that are remembered come from the source: the shuffle before has placed them."""
    some = visits.where("spent > 3")
    return (
        app.features("late", key="page", source=known(app, visits), ttl="1 h").over("1 min", of=some, some=hr.count())
    ).vectors


@pytest.mark.parametrize("declared", [by_the_same_key, renamed, of_a_window, of_a_pattern, past_another])
def test_what_follows_by_the_same_key_lies_there(declared: Callable[[hr.App, Any], Any]) -> None:
    assert levels(declared) == (1,)


def by_another_key(app: hr.App, visits: Any) -> Any:
    return known(app, visits).dedup("visit", within="1 h")


def by_a_computed_key(app: hr.App, visits: Any) -> Any:
    return known(app, known(app, visits).select("page, at"), "page || '!' as page", "more")


def behind_a_select_that_computes_it(app: hr.App, visits: Any) -> Any:
    return known(app, visits).select("page || '!' as page, at").dedup("page", within="1 h")


def behind_a_function(app: hr.App, visits: Any) -> Any:
    return known(app, visits).where(lambda row: row.spent > 1).dedup("page", within="1 h")


def where_one_of_two_lies_elsewhere(app: hr.App, visits: Any) -> Any:
    both = known(app, visits).select("page, at").union(known(app, visits, "visit", "other").select("page, at"))
    return both.dedup("page", within="1 h")


@pytest.mark.parametrize(
    ("declared", "moved"),
    [
        (by_another_key, (1, 2)),
        (by_a_computed_key, (1, 2)),
        (behind_a_select_that_computes_it, (1, 2)),
        (behind_a_function, (1, 3)),
        (where_one_of_two_lies_elsewhere, (1, 2)),
    ],
)
def test_what_follows_by_another_is_shuffled(declared: Callable[[hr.App, Any], Any], moved: tuple[int, ...]) -> None:
    assert levels(declared) == moved


def levels(declared: Callable[[hr.App, Any], Any]) -> tuple[int, ...]:
    app = hr.App("site")
    declared(app, app.stream(Visit, disorder="10 s")).to(app.topic("out"))
    (flow,) = build(app).flows
    return shuffled(flow)
