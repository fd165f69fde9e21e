"""Visits to a website: pages seen less than 30 minutes apart belong together."""

from datetime import datetime

import headrace as hr


@hr.event(topic="views", key="visitor", time="at")
class View:
    """A page was seen."""

    visitor: str
    page: str
    at: datetime


site = hr.App("visits")
views = site.stream(View, disorder="1 min")
visits = views.window(hr.session(gap="30 min"), lateness="2 h").agg(
    pages=hr.count(),
    came_to=hr.first("page"),
    left_from=hr.last("page"),
    last_seen=hr.max("at"),
)
visits.select(
    """visitor, window_start as came, kind, revision, pages, came_to, left_from,
       seconds_between(window_start, last_seen) / 60 as minutes"""
).to(site.topic("visits"))
visits.late.to(site.topic("views-too-late"))


def demo() -> None:
    """Two visitors; the view of 10:35 comes an hour late and makes two visits of ana one."""
    arriving = [
        ("ana", "/", "10:00"),
        ("ben", "/help", "10:05"),
        ("ana", "/shoes", "10:12"),
        ("ana", "/cart", "10:55"),
        ("ana", "/paid", "11:00"),
        ("ben", "/", "11:40"),
        ("ana", "/shoes/7", "10:35"),
    ]
    with hr.testing.run(site) as t:
        for visitor, page, at in arriving:
            t.send(View(visitor, page, t.time(at)))
        t.end()
        print(t.read("visits"))


if __name__ == "__main__":
    demo()
