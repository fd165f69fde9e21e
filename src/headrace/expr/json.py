"""The stable JSON form of a typed tree: what plan fingerprints hash and what a kernel on the JVM reads."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from headrace.base.clock import micros
from headrace.base.duration import MILLISECOND
from headrace.expr.nodes import Call, Case, Cast, Expr, Literal, Ref
from headrace.expr.syntax import Constant


def to_json(expr: Expr) -> dict[str, Any]:
    """Plain dicts and lists; every node says its type, every conversion is written out.

    >>> from headrace.expr import parse
    >>> from headrace.expr.types import INT, Column
    >>> to_json(parse("n > 1", (Column("n", INT),)))["args"][0]
    {'ref': 'n', 'type': 'int'}
    """
    match expr:
        case Ref():
            found: dict[str, Any] = {"ref": expr.name} | ({} if expr.qualifier is None else {"of": expr.qualifier})
        case Literal():
            found = {"literal": _constant(expr.value)}
        case Call():
            found = {"call": expr.op, "args": [to_json(arg) for arg in expr.args]}
        case Cast():
            found = {"cast": to_json(expr.arg)} | ({"safe": True} if expr.safe else {})
        case Case():
            branches = [[to_json(when), to_json(then)] for when, then in expr.branches]
            found = {"case": branches, "else": to_json(expr.otherwise)}
        case _:
            raise TypeError(f"{expr!r} is no expression")
    return found | {"type": expr.type.name}


def _constant(value: Constant) -> bool | int | float | str | None:
    """Decimals as text, times in microseconds since 1970, intervals in milliseconds: exact in every language."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, timedelta):
        return value // MILLISECOND
    return value
