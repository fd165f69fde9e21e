"""Impressions and the clicks that followed within ten minutes; impressions without a click come out when time is up."""

from datetime import datetime

import headrace as hr


@hr.event(topic="impressions", key="user_id", time="at", id="impression_id")
class Impression:
    """An advertisement was shown."""

    impression_id: str
    ad_id: str
    user_id: str
    at: datetime


@hr.event(topic="clicks", key="user_id", time="at", id="click_id")
class Click:
    """Somebody clicked on it."""

    click_id: str
    ad_id: str
    user_id: str
    at: datetime


ads = hr.App("ads")
impressions = ads.stream(Impression, disorder="30 s")
clicks = ads.stream(Click, disorder="30 s")
seen = impressions.join(clicks, on="ad_id, user_id", within=("0 s", "10 min"), how="left", prefix="click_")
rate = (
    seen.key_by("ad_id")
    .window(hr.tumbling("1 h"), lateness="0 s")
    .agg(shown=hr.count(), clicked=hr.count("click_click_id"))
)
seen.to(ads.topic("impressions-seen"))
rate.to(ads.topic("click-through"))


def demo() -> None:
    """Four impressions, two clicks in time and one too late."""
    with hr.testing.run(ads) as t:
        t.send(
            Impression("i1", "shoes", "ann", t.time("10:00")),
            Impression("i2", "shoes", "bob", t.time("10:01")),
            Click("c1", "shoes", "ann", t.time("10:02")),
            Impression("i3", "hats", "ann", t.time("10:03")),
            Click("c2", "hats", "ann", t.time("10:13")),
            Impression("i4", "shoes", "cat", t.time("10:20")),
            Click("c3", "shoes", "bob", t.time("10:20")),
        )
        t.end()
        print(t.read("click-through", "ad_id, shown, clicked"))


if __name__ == "__main__":
    demo()
