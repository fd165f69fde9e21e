"""Counts and quantiles, and their text for Prometheus."""

from __future__ import annotations

from headrace.serve.figures import BOUNDS, Figures, quantile


def test_quantiles_lie_within_the_class_that_holds_them() -> None:
    figures = Figures()
    for milliseconds in [1.5] * 98 + [70.0, 5000.0]:
        figures.took(milliseconds)
    recent = figures.recent()
    assert 1 < (quantile(recent, 0.5) or 0) <= 2
    assert 60 < (quantile(recent, 0.99) or 0) <= 80
    assert quantile(recent, 1.0) == BOUNDS[-1]
    assert quantile([0] * len(recent), 0.5) is None


def test_recent_forgets_what_is_older() -> None:
    figures = Figures()
    figures.took(1)
    for _ in range(60):
        figures.next_second()
    assert sum(figures.recent()) == 0
    assert sum(figures.latencies.counts) == 1


def test_the_text_has_a_line_a_count_and_buckets_that_add_up() -> None:
    figures = Figures()
    figures.requests[200] += 3
    figures.decisions['a "strange" one'] += 1
    figures.degraded["deadline", "fallback"] += 2
    figures.took(7)
    text = figures.prometheus().splitlines()
    assert 'headrace_requests_total{code="200"} 3' in text
    assert 'headrace_decisions_total{decision="a \\"strange\\" one"} 1' in text
    assert 'headrace_degraded_total{why="deadline",by="fallback"} 2' in text
    assert 'headrace_decide_seconds_bucket{le="0.006"} 0' in text
    assert 'headrace_decide_seconds_bucket{le="0.008"} 1' in text
    assert "headrace_decide_seconds_count 1" in text
