"""Card numbers: found before a request is read any further, so that none is ever shown, kept or logged."""

from __future__ import annotations

import re
from typing import Any

_WORTH_A_LOOK = re.compile(rb"\\u|\d[eE]|\d(?:[ -]?\d){12}")
_DIGITS = re.compile(r"\d(?:[ -]?\d)*")
_SHORTEST, _LONGEST = 13, 19
_ISSUED = re.compile("2[2-7]|[3-6]|8[12]")
"""How numbers of cards begin. Times do not: neither those of this century nor seconds since 1970 and their parts."""


def worth_a_look(body: bytes) -> bool:
    """Whether JSON can hold one at all: it has a long row of digits, or digits in disguise. Most requests have not."""
    return _WORTH_A_LOOK.search(body) is not None


def holds_card_number(value: Any) -> bool:
    """Whether a JSON value has one anywhere: in text, as a number, in a name, with or without spaces or dashes.

    >>> holds_card_number({"note": ["my card is 4111-1111-1111-1111"]})
    True
    >>> holds_card_number("ref 7 4111 1111 1111 1111 12/27"), holds_card_number(6212345678901234569)
    (True, True)
    >>> holds_card_number({"payment_id": "p-4111111111111112", "lat": 52.5200066123456})
    False
    """
    match value:
        case str():
            return any(_in_groups(re.split("[ -]", found)) for found in _DIGITS.findall(value))
        case bool() | None:
            return False
        case int():
            return abs(value) < 10**_LONGEST and _is_card_number(str(abs(value)))
        case float():
            # A fraction is no card number, however many digits it has.
            return value.is_integer() and _is_card_number(f"{abs(value):.0f}")
        case list():
            return any(map(holds_card_number, value))
        case dict():
            return any(holds_card_number(name) or holds_card_number(inner) for name, inner in value.items())
    return False


def _in_groups(groups: list[str]) -> bool:
    """Whether some of these in a row are one: other numbers may stand before and behind it, as a date does."""
    for first in range(len(groups)):
        digits = ""
        for group in groups[first:]:
            digits += group
            if len(digits) > _LONGEST:
                break
            if _is_card_number(digits):
                return True
    return False


def _is_card_number(digits: str) -> bool:
    """Length, issuer and the check digit of Luhn, which one number in ten has by chance."""
    if not _SHORTEST <= len(digits) <= _LONGEST or not _ISSUED.match(digits):
        return False
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0
