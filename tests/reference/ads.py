"""Impressions and clicks to join, and a table of users to enrich them with."""

from __future__ import annotations

from datetime import datetime

import headrace as hr
from headrace.testing import Run


@hr.event(topic="impressions", key="user_id", time="at", id="impression_id")
class Impression:
    impression_id: str
    ad_id: str | None
    user_id: str
    at: datetime


@hr.event(topic="clicks", key="user_id", time="at", id="click_id")
class Click:
    click_id: str
    ad_id: str | None
    user_id: str
    at: datetime


@hr.event(topic="users", key="user_id", time="since")
class User:
    user_id: str
    city: str
    since: datetime


def shown(t: Run, id: str, at: str, ad: str | None = "ad", user: str = "u1") -> Impression:
    return Impression(id, ad, user, t.time(at))


def clicked(t: Run, id: str, at: str, ad: str | None = "ad", user: str = "u1") -> Click:
    return Click(id, ad, user, t.time(at))


def ads(how: str = "inner", within: tuple[str, str] = ("0 s", "10 min")) -> hr.App:
    """A join with all it gives; streams are never idle and never out of order."""
    app = hr.App("ads")
    impressions = app.stream(Impression, disorder="0 s", idle=None)
    clicks = app.stream(Click, disorder="0 s", idle=None)
    prefix = None if how in ("semi", "anti") else "click_"
    seen = impressions.join(clicks, on="ad_id, user_id", within=within, how=how, prefix=prefix).named("seen")
    seen.to(app.topic("seen"))
    seen.late.to(app.topic("late"))
    seen.unmatched.to(app.topic("unmatched"))
    return app


def pairs(t: Run) -> list[tuple[str | None, str | None]]:
    return [(row.impression_id, row.click_click_id) for row in t.read("seen")]
