"""The top rows of a window: a row for each rank, corrected as a whole."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.testing import Run
from tests.reference.pages import Visit


def site(window: Any, n: int = 2, by: Any = "spent", **how: Any) -> hr.App:
    app = hr.App("site")
    app.stream(Visit, disorder="0 s").window(window, **how).top(n, by=by).to(app.topic("out"))
    return app


def visits(t: Run, *given: tuple[str, int]) -> list[Visit]:
    return [Visit("p", t.time(at), spent) for at, spent in given]


def told(t: Run) -> list[tuple[str, int, int, int]]:
    """(kind, revision, rank, spent) per row."""
    return [(row.kind, row.revision, row.rank, row.spent) for row in t.read("out")]


def test_each_rank_is_a_row_with_the_columns_of_its_own() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), lateness="0 s")) as t:
        t.batch(*visits(t, ("10:01", 5), ("10:02", 7), ("10:03", 6)))
        t.end()

        assert t.read("out").columns == (
            "page",
            "window_start",
            "window_end",
            "kind",
            "revision",
            "rank",
            "at",
            "spent",
        )
        assert t.read("out", "page, rank, at, spent") == [
            {"page": "p", "rank": 1, "at": t.time("10:02"), "spent": 7},
            {"page": "p", "rank": 2, "at": t.time("10:03"), "spent": 6},
        ]


def test_of_equal_rows_the_earlier_goes_first() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), lateness="0 s", by="spent % 2")) as t:
        t.batch(*visits(t, ("10:03", 1), ("10:01", 3), ("10:02", 5), ("10:00", 8)))
        t.end()

        assert [row.spent for row in t.read("out")] == [3, 5]


def test_w5_a_correction_tells_all_ranks_anew() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), lateness="10 min")) as t:
        t.send(*visits(t, ("10:01", 5), ("10:06", 1), ("10:02", 7)))
        t.end()

        assert told(t) == [("final", 0, 1, 5), ("correction", 1, 1, 7), ("correction", 1, 2, 5), ("final", 0, 1, 1)]


def test_w3_merged_sessions_take_their_ranks_back() -> None:
    with hr.testing.run(site(hr.session(gap="5 min"), lateness="1 h")) as t:
        t.send(*visits(t, ("10:00", 5), ("10:08", 7), ("10:20", 1), ("10:04", 6)))

        assert told(t) == [
            ("final", 0, 1, 5), ("final", 0, 1, 7), ("retraction", 1, 1, 5), ("retraction", 1, 1, 7),
            ("final", 0, 1, 7), ("final", 0, 2, 6),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("window", "greatest"), [(hr.hopping("10 min", every="5 min"), [5, 7, 7, 6]), (hr.sliding("10 min"), [5, 7, 7])]
)
def test_other_windows_rank_too(window: Any, greatest: list[int]) -> None:
    with hr.testing.run(site(window, n=1, lateness="0 s")) as t:
        t.send(*visits(t, ("10:01", 5), ("10:06", 7), ("10:12", 6)))
        t.end()

        assert [row.spent for row in t.read("out")] == greatest


def test_d2_every_rank_has_an_id_of_its_own() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"), lateness="0 s")) as t:
        t.batch(*visits(t, ("10:01", 5), ("10:02", 7)))
        t.end()

        assert len({record.id for record in t.records("out")}) == 2
