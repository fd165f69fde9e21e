"""Visits of a site to every store at once: a table, a cache and the lake, committed together."""

from datetime import datetime

import headrace as hr


@hr.event(topic="site-clicks", key="user_id", time="at", id="click_id")
class Click:
    """A click on a page of the site."""

    click_id: str
    user_id: str
    page: str
    at: datetime


site = hr.App("site")
clicks = site.stream(Click, disorder="1 min")
visits = clicks.window(hr.session(gap="30 min"), lateness="2 h").agg(pages=hr.count(), last_page=hr.last("page"))
visits.to(hr.postgres("visits", key="user_id, window_start"))  # a row for each visit, for reports
visits.to(hr.redis("visit:{user_id}", ttl="1 d"))  # the last visit of a user, for the site itself
clicks.to(hr.lake("clicks", partition="day(at)"))  # every click, for questions nobody has thought of yet
visits.to(site.topic("visits"))


def demo() -> None:
    """One visit is told as two, until a click that was offline comes and joins them."""
    with hr.testing.run(site) as t:
        t.send(Click("k1", "u1", "home", t.time("10:00")))
        t.send(Click("k2", "u1", "cart", t.time("10:50")))
        t.send(Click("k3", "u2", "home", t.time("11:30")))
        t.send(Click("k4", "u1", "shoes", t.time("10:25")))
        t.end()
        print(t.read("visits", "user_id, window_start, kind, pages"))
        print()
        print(t.table("postgres:visits", "user_id, window_start, pages, last_page"))
        print()
        print(t.table("redis:visit:{user_id}", "user_id, pages, last_page"))
        print()
        print(t.read("lake:clicks", "click_id, user_id, page"))


if __name__ == "__main__":
    demo()
