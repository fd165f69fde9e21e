"""A server that is away: waited for, but not for ever, and only if it is away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.stores import away
from headrace.stores.away import patiently


def failing(*errors: Exception) -> tuple[list[str], Callable[[], None]]:
    """What was tried, and a call that raises these and then works."""
    left, tried = list(errors), []

    def attempt() -> None:
        tried.append("tried")
        if left:
            raise left.pop(0)

    return tried, attempt


def is_away(broken: Exception) -> bool:
    return isinstance(broken, ConnectionError)


def test_it_is_tried_until_it_works() -> None:
    tried, attempt = failing(ConnectionError("one"), ConnectionError("two"))
    patiently(attempt, is_away)
    assert len(tried) == 3


def test_another_error_goes_through_at_once() -> None:
    tried, attempt = failing(ConnectionError("one"), ValueError("two"))
    with pytest.raises(ValueError, match="two"):
        patiently(attempt, is_away)
    assert len(tried) == 2


def test_patience_ends_with_the_last_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(away, "PATIENCE", 0.1)
    tried, attempt = failing(*(ConnectionError(str(n)) for n in range(9)))
    with pytest.raises(ConnectionError, match="1"):
        patiently(attempt, is_away)
    assert len(tried) == 2
