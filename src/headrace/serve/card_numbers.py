"""Card numbers: found before a request is read any further, so that none is ever shown, kept or logged."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

_AS_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
_SIGNS = bytes(sign for sign in range(128) if not chr(sign).isalnum() and chr(sign) not in '"\\')
"""What may stand between digits."""
_GROUPS = re.compile(r"\d+(?:[\W_]+\d+)*")
"""Digits, and signs between them."""
_SPACED = re.compile(r"[\s\-\u00ad\u200b-\u200d\u2010-\u2015\u2060\u2212\ufe58\ufe63\uff0d\ufeff]+")
"""Spaces and dashes, those that nobody sees too: they stand between digits of any grouping."""
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b", re.IGNORECASE)
"""Ids of events are often such; one in seven hundred would be taken for a card's number."""
_WHOLE = 4
"""So many digits at least have the groups of a card, the last one aside. Where other signs stand between them, that
tells cards from coordinates, times and addresses."""
_SHORTEST, _LONGEST = 13, 19
_VALUE = bytes.maketrans(b"0123456789", bytes(range(10)))
_DOUBLED = bytes.maketrans(bytes(range(10)), bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))
"""Twice a digit, the digits of that added up."""
_ISSUED = re.compile("2[2-7]|[3-6]|8[12]")
"""How numbers of cards begin. Times do not: neither those of this century nor seconds since 1970 and their parts."""


def worth_a_look(body: bytes) -> bool:
    """Whether JSON can hold one at all: it has a long row of digits, whatever stands between them, or digits in
    disguise: an exponent, an escape, what is beyond ASCII. Most requests have not."""
    plain = body.translate(_AS_ZERO, _SIGNS)
    return b"0" * _SHORTEST in plain or b"0e" in plain or b"\\" in plain or not plain.isascii()


def holds_card_number(value: Any) -> bool:
    """Whether a JSON value has one anywhere: in text, as a number, in a name, with or without signs between its groups.

    >>> holds_card_number({"note": ["my card is 4111-1111-1111-1111"]}), holds_card_number("4111.1111.1111.1111")
    (True, True)
    >>> holds_card_number("ref 7 4111 1111 1111 1111 12/27"), holds_card_number(6212345678901234569)
    (True, True)
    >>> holds_card_number({"payment_id": "p-4111111111111112", "lat": 52.5200066123456})
    False
    """
    match value:
        case str():
            return any(map(_in_groups, _GROUPS.findall(_UUID.sub("id", value) if "-" in value else value)))
        case bool() | None:
            return False
        case int():
            return abs(value) < 10**_LONGEST and _in_groups(str(abs(value)))
        case float():
            # A fraction is no card number, however many digits it has.
            return value.is_integer() and _in_groups(f"{abs(value):.0f}")
        case list():
            return any(map(holds_card_number, value))
        case dict():
            return any(holds_card_number(name) or holds_card_number(inner) for name, inner in value.items())
    return False


def _in_groups(text: str) -> bool:
    """Whether some groups in a row are one: other numbers may stand before and behind it, as a date does. A request may
    be groups from end to end, and the event loop waits: what a start cannot become is given up at once."""
    parts = re.split(r"(\D+)", text)  # groups, and between each two of them what parts them
    groups = [_plain(group) for group in parts[::2]]
    spaced = [_SPACED.fullmatch(between) is not None for between in parts[1::2]]
    digits, ends = "".join(groups), list(accumulate(map(len, groups)))
    if len(digits) < _SHORTEST:
        return False
    sums = _sums(digits)
    for first, group in enumerate(groups):
        start = ends[first] - len(group)
        if not _ISSUED.match(digits, start):
            continue
        all_spaced = whole = True
        for last in range(first, len(groups)):
            if last > first:
                all_spaced &= spaced[last - 1]
                whole &= len(groups[last - 1]) >= _WHOLE
            end = ends[last]
            if end - start > _LONGEST or not (all_spaced or whole):
                break
            # Two groups with a sign between them are a decimal number.
            if end - start >= _SHORTEST and (all_spaced or last - first > 1):
                of_end = sums[end % 2]
                if (of_end[end] - of_end[start]) % 10 == 0:
                    return True
    return False


def _plain(digits: str) -> str:
    """The same digits in ASCII: full-width ones, or another script's, are read as well."""
    return digits if digits.isascii() else "".join(str(int(digit)) for digit in digits)


def _sums(digits: str) -> tuple[list[int], list[int]]:
    """Luhn's sums from the beginning up to each digit, those at even places doubled, and those at odd ones: from them
    comes that of any digits in a row, the last but one of which is doubled. One in ten is right by chance."""
    plain = digits.encode().translate(_VALUE)
    even, odd = bytearray(plain), bytearray(plain)
    even[::2], odd[1::2] = plain[::2].translate(_DOUBLED), plain[1::2].translate(_DOUBLED)
    return list(accumulate(even, initial=0)), list(accumulate(odd, initial=0))
