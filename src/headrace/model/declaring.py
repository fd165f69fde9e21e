"""Declaring calls: a mistake in the call itself is told like every other, at the user's line and with an example."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from headrace.base.errors import BadCall, UsageError
from headrace.base.where import here

P = ParamSpec("P")
R = TypeVar("R")


def declaring(example: str, *, why: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wraps a verb of the API. Arguments that do not fit become an error with the example, and an error that knows no
    place, because a duration or a time is read far below, gets the user's line.

    >>> @declaring('add(1, to="list")')
    ... def add(n: int, *, to: str) -> None: ...
    >>> try:
    ...     add(1)
    ... except BadCall as error:
    ...     print(error.what, "->", error.fix)
    add(): missing a required argument: 'to' -> write add(1, to="list")
    """

    def wrap(verb: Callable[P, R]) -> Callable[P, R]:
        @wraps(verb)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return verb(*args, **kwargs)
            except UsageError as refused:
                refused.where = refused.where or here()
                raise
            except TypeError:
                try:
                    signature(verb).bind(*args, **kwargs)
                except TypeError as misfit:
                    what = f"{verb.__name__}(): {misfit}"
                    raise BadCall(what, why=why, fix=f"write {example}", where=here()) from None
                raise

        return call

    return wrap
