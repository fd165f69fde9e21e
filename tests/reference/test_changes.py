"""`changes` and `sample`, through a plan: rows that say something new, and some of the keys."""

from __future__ import annotations

import headrace as hr
from tests.reference.pages import Visit


def app_of(**changes: str) -> hr.App:
    app = hr.App("site")
    app.stream(Visit, disorder="0 s").changes("spent", **changes).named("new").to(app.topic("out"))  # type: ignore[arg-type]
    return app


def test_only_rows_that_say_something_new_pass() -> None:
    with hr.testing.run(app_of(keep="1 h")) as t:
        t.send(*(Visit("p", t.time(f"10:0{n}"), spent) for n, spent in enumerate((1, 1, 2, 2, 1))))
        t.send(Visit("q", t.time("10:06"), 1))

        assert t.read("out", "page, spent") == [
            {"page": "p", "spent": 1},
            {"page": "p", "spent": 2},
            {"page": "p", "spent": 1},
            {"page": "q", "spent": 1},
        ]
        counts = t.counts("new")
        assert (counts.received, counts.used, counts.filtered, counts.held) == (6, 4, 2, 0)


def test_a_key_is_forgotten_after_keep() -> None:
    with hr.testing.run(app_of(keep="10 min")) as t:
        t.send(Visit("p", t.time("10:00"), 1), Visit("p", t.time("10:09"), 1), Visit("p", t.time("10:19"), 1))

        assert [row.at for row in t.read("out")] == [t.time("10:00"), t.time("10:19")]


def test_rows_that_pass_stay_the_rows_they_were() -> None:
    """Same place, same id, as if nothing stood between."""
    plain = hr.App("site")
    plain.stream(Visit, disorder="0 s").to(plain.topic("out"))
    ids = []
    for app in (plain, app_of(keep="1 h")):
        with hr.testing.run(app) as t:
            t.send(Visit("p", t.time("10:00"), 1), Visit("p", t.time("10:01"), 2))
            ids.append([record.id for record in t.records("out")])
    assert ids[0] == ids[1]


def sampled(share: float) -> set[str]:
    app = hr.App("site")
    app.stream(Visit, disorder="0 s").sample(share, by="page").to(app.topic("out"))
    with hr.testing.run(app) as t:
        t.batch(*(Visit(f"p{n % 500}", t.time("10:00"), n) for n in range(1_000)))
        rows = t.read("out")
    assert len(rows) == 2 * len({row.page for row in rows})  # all rows of a page, or none
    return {row.page for row in rows}


def test_a_sample_has_about_its_share_of_the_keys_and_the_same_ones_every_time() -> None:
    tenth, half = sampled(0.1), sampled(0.5)

    assert 30 < len(tenth) < 70
    assert 210 < len(half) < 290
    assert tenth == sampled(0.1)
    assert tenth < half
    assert len(sampled(1)) == 500
