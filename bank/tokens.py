"""Tokens: what stands for a card's number everywhere but at the terminal."""

from __future__ import annotations

import hashlib
import hmac

_LETTERS = str.maketrans("0123456789", "ghijklmnop")
"""A token has no digits, so that whoever searches for card numbers finds none that is not one."""


def letters(hexadecimal: str) -> str:
    """The same number without digits: what has none is never taken for a card's."""
    return hexadecimal.translate(_LETTERS)


MADE_UP = b"made-up cards"
"""The secret of numbers that are no secret: those of the demo."""


def token(number: str, secret: bytes) -> str:
    """The token of a card number: the same for the same secret, and nobody without it can tell the number. There are
    few card numbers: a secret that others know, or guess, is none.

    >>> token("4000 0012 3456 7899", b"secret") == token("4000001234567899", b"secret")
    True
    """
    digits = "".join(filter(str.isdigit, number))
    return "card-" + letters(hmac.new(secret, digits.encode(), hashlib.sha256).hexdigest()[:24])


def last4(number: str) -> str:
    """All of a number that may be shown."""
    return "".join(filter(str.isdigit, number))[-4:]
