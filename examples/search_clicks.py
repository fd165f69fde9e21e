"""Searches and the click that followed within thirty minutes; a search without a click found nothing useful."""

from datetime import datetime

import headrace as hr


@hr.event(topic="searches", key="session", time="at", id="search_id")
class Search:
    search_id: str
    session: str
    words: str
    at: datetime


@hr.event(topic="result-clicks", key="session", time="at", id="click_id")
class ResultClick:
    click_id: str
    session: str
    search_id: str
    rank: int
    at: datetime


shop = hr.App("shop-search")
searches = shop.stream(Search, disorder="10 s")
clicks = shop.stream(ResultClick, disorder="10 s")
on = "searches.session = result_clicks.session and searches.search_id = result_clicks.search_id"
answered = searches.join(
    clicks,
    on=on,
    within=("0 s", "30 min"),
    how="left",
    take="searches.search_id, searches.words, result_clicks.rank, result_clicks.at as clicked_at",
)
answered.where("rank is null").select("search_id, words").to(shop.topic("searches-without-click"))
answered.where("rank is not null").to(shop.topic("searches-answered"))


def demo() -> None:
    with hr.testing.run(shop) as t:
        t.send(
            Search("s1", "ann", "red shoes", t.time("10:00")),
            ResultClick("c1", "ann", "s1", 3, t.time("10:01")),
            Search("s2", "ann", "blue shoos", t.time("10:02")),
            Search("s3", "bob", "hat", t.time("10:05")),
            ResultClick("c2", "bob", "s3", 1, t.time("10:30")),
        )
        t.end()
        print(t.read("searches-answered", "search_id, words, rank"))
        print(t.read("searches-without-click"))


if __name__ == "__main__":
    demo()
