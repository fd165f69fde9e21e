"""Stable ids: the same cause always gets the same 128-bit name (rule D2), so that a repeat can be recognised."""

from __future__ import annotations

import hashlib
import os


def stable_id(*parts: str | int) -> str:
    """32 hex digits over the parts in order, each with its length, so that ("ab", "c") differs from ("a", "bc").

    >>> stable_id("bank", "v1", "spend", "card-1", 7) == stable_id("bank", "v1", "spend", "card-1", "7")
    True
    """
    digest = hashlib.md5(usedforsecurity=False)  # 128 bits, in every JVM and Python alike; identity, not security
    for part in parts:
        raw = str(part).encode()
        digest.update(len(raw).to_bytes(4, "big"))
        digest.update(raw)
    return digest.hexdigest()


def random_id() -> str:
    """32 hex digits that nobody had before."""
    return os.urandom(16).hex()
