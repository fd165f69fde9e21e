"""Card numbers, wherever they hide in a request."""

from __future__ import annotations

import random
import sys
from types import FrameType
from typing import Any
from uuid import UUID

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
        "4111.1111.1111.1111",
        "4111\t1111\t1111\t1111",
        "4111   1111\n1111 - 1111",
        "4111\u00a01111\u00a01111\u00a01111",
        "4111/1111/1111/1111",
        "4111_1111_1111_1111",
        "4111\u20131111\u20131111\u20131111",
        "4111, 1111, 1111, 1111",
        "4111:1111:1111:1111",
        "41\u201311 1111 1111 1111",
        "41\u200b11 1111 1111 1111",  # nobody sees what is between the first digits
        "\uff14\uff11\uff11\uff11" + 3 * "\uff11\uff11\uff11\uff11",
        "\u0664" + 15 * "\u0661",  # Arabic
        "3782.822463.10005",
        "0f8fad5b-d9cb-469f-a165-70867728950e 4111-1111-1111-1111",
        "4111-1111-1111-1111-0f8fad5b-d9cb-469f-a165-70867728950e",
        "ref 2026.4111.1111.1111.1111.123",
        "4111" + 12 * " " + "1111" + 9 * " " + "11111111",
        "4111" + 12 * "." + "1111" + 9 * "/" + "11111111",
    ],
)
def test_a_card_number_is_found(value: Any) -> None:
    assert holds_card_number(value)
    assert worth_a_look(msgspec.json.encode(value))


@pytest.mark.parametrize(
    "body",
    [
        b'"4\\u003111111111111111"',
        b'"4111\\/1111\\/1111\\/1111"',
        '"4111\u00b71111\u00b71111\u00b71111"'.encode(),
        b"41111111.11111111e8",
        b"4.111111111111111E+15",
        b"4.2e15",
        b"42E14",
        b'{"a":["4111 1111-1111 1111"]}',
    ],
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
        # with a right check digit each, if what stands between the digits is left out
        "2026-11-30T19:00:00.12341Z",
        "30.11.2026 19.00.06",
        "30.168.100.205, 10.168.100.1",
        "52.520008, 13.404955",
        "52.520008 13.404955",
        "52.52000661234561",
        "5200.12345678904",
        "4.111.111.111.119,00",
        "2026/11/30/221434/63280",
        "payments/3@41111111.111114",
        "1.3.6.1.4.1.311.21.20.9",
        10**400,
        True,
        None,
        12.5,
    ],
)
def test_other_digits_are_let_through(value: Any) -> None:
    assert not holds_card_number(value)


@pytest.mark.parametrize("text", ["4." * 1_000, "3 " * 1_000, "5 0 0 " * 350])
def test_groups_from_end_to_end_are_not_much_work(text: str) -> None:
    """An event loop waits for it. Counted in lines of Python, since seconds depend on the machine."""
    lines = 0

    def count(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_globals["__name__"] != holds_card_number.__module__:
            return None
        lines += what == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        assert not holds_card_number({"note": text})
    finally:
        sys.settrace(before)
    assert 0 < lines < 100 * len(text)


def test_sums_from_the_beginning_say_what_luhn_says() -> None:
    """Against his rule as it is written: from the right, every second digit doubled."""
    chance = random.Random(7)
    for _ in range(2_000):
        digits = "4" + "".join(chance.choices("0123456789", k=chance.randint(12, 18)))
        doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
        right = sum(sum(map(int, str(one))) for one in doubled) % 10 == 0
        assert holds_card_number(digits) is right
        if right:
            assert holds_card_number(f"x 12 {digits[:5]} {digits[5:]}")


def test_a_uuid_is_none_whatever_its_digits() -> None:
    chance = random.Random(4)
    ids = [str(UUID(int=chance.getrandbits(128), version=4)) for _ in range(20_000)]
    assert not any(map(holds_card_number, ids))
    assert not any(map(holds_card_number, (f"pay-{id.upper()}" for id in ids)))
    assert any(map(holds_card_number, (id.replace("-", " ") for id in ids)))
