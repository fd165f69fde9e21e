"""Property tests: how many examples each tries; `make soak` tries twenty times as many."""

from __future__ import annotations

import os

from hypothesis import settings

DEPTH = int(os.environ.get("HEADRACE_SOAK", "1"))


def examples(count: int) -> settings:
    """`@examples(100)`: a hundred in the suite. No deadline: a busy machine is not a slow algorithm."""
    return settings(max_examples=count * DEPTH, deadline=None)
