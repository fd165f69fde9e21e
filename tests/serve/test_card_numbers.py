"""Card numbers, wherever they hide in a request."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from headrace.serve.card_numbers import holds_card_number, worth_a_look


@pytest.mark.parametrize(
    "value",
    [
        "4111111111111111",
        "4111 1111 1111 1111",
        "5500-0000-0000-0004",
        "card 378282246310005, thanks",
        4111111111111111,
        4111111111111111.0,
        ["a", {"b": "6011000990139424"}],
        {"4111111111111111": 1},
        "4222222222222",
        "4111 1111 1111 1111 12/27",
        "4111111111111111 123",
        "ref 7 4111111111111111",
        6212345678901234569,  # no float holds it
    ],
)
def test_a_card_number_is_found(value: Any) -> None:
    assert holds_card_number(value)
    assert worth_a_look(msgspec.json.encode(value))


@pytest.mark.parametrize(
    "body",
    [b'"4\\u003111111111111111"', b"41111111.11111111e8", b"4.111111111111111E+15", b'{"a":["4111 1111-1111 1111"]}'],
)
def test_digits_in_disguise_are_found(body: bytes) -> None:
    assert holds_card_number(msgspec.json.decode(body))
    assert worth_a_look(body)


@pytest.mark.parametrize(
    "value",
    [
        "4111111111111112",  # the check digit is wrong
        "p-20261115190000123456",  # longer than any card
        "2026-11-15T19:00:00.123456Z",
        "20261115-221434-63281",  # its check digit is right
        1763244874121,  # milliseconds since 1970: as well
        52.520006612345,
        "411111111111",
        10**400,
        True,
        None,
        12.5,
    ],
)
def test_other_digits_are_let_through(value: Any) -> None:
    assert not holds_card_number(value)
