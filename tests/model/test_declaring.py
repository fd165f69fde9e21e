"""Declaring calls: only what is wrong with the call itself is translated."""

from __future__ import annotations

import pytest

from headrace.base.errors import BadTime
from headrace.model.declaring import declaring


@declaring("broken(1)")
def broken(n: int) -> int:
    return n + "1"  # type: ignore[operator]


@declaring("timed()")
def timed() -> None:
    raise BadTime("no time")


def test_a_type_error_inside_a_verb_stays_what_it_is() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        broken(1)


def test_an_error_without_a_place_gets_the_users_line() -> None:
    with pytest.raises(BadTime) as caught:
        timed()
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
