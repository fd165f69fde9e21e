"""Clicks per page and hour, some of them made while the phone was offline."""

from datetime import datetime

import headrace as hr


@hr.event(topic="clicks", key="page", time="at", id="click_id")
class Click:
    """A click as the phone noted it: `at` is when it was made, not when it was sent."""

    click_id: str
    page: str
    visitor: str
    at: datetime


site = hr.App("site")
clicks = site.stream(Click, disorder="1 min")
hourly = clicks.window(hr.tumbling("1 h"), lateness="2 h").agg(clicks=hr.count(), visitors=hr.distinct("visitor"))
hourly.to(site.topic("clicks-per-hour"))
hourly.late.to(site.topic("clicks-too-late"))


def demo() -> None:
    """Six clicks in the order in which they arrive."""
    arriving = [
        ("c1", "ana", "14:05"),
        ("c2", "ben", "14:40"),
        ("c3", "ana", "15:10"),
        ("c4", "cem", "14:50"),  # made in a tunnel
        ("c5", "ana", "17:05"),
        ("c6", "dee", "14:55"),  # made on a plane
    ]
    with hr.testing.run(site) as t:
        for click_id, visitor, at in arriving:
            t.send(Click(click_id, "news", visitor, t.time(at)))
        print(t.read("clicks-per-hour", "page, window_start, kind, revision, clicks, visitors"))
        print()
        print(t.read("clicks-too-late", "click_id, visitor, at, watermark"))


if __name__ == "__main__":
    demo()
