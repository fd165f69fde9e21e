"""What a condition implies where it is true: columns that then cannot be null, so that they may become keys."""

from __future__ import annotations

from headrace.expr.functions import FUNCTIONS
from headrace.expr.nodes import Call, Cast, Expr, Ref


def never_null(condition: Expr) -> frozenset[str]:
    """Names of columns that hold a value in every row for which the condition is true.

    `a is not null and b > 3` implies both; `a > 1 or b > 1` implies neither.
    """
    if isinstance(condition, Call) and condition.op == "and":
        return never_null(condition.args[0]) | never_null(condition.args[1])
    if isinstance(condition, Call) and condition.op == "not":
        (arg,) = condition.args
        return _needed(arg.args[0]) if isinstance(arg, Call) and arg.op == "is_null" else _needed(arg)
    return _needed(condition)


def _needed(expr: Expr) -> frozenset[str]:
    """Columns without which this expression would be null."""
    if isinstance(expr, Ref):
        return frozenset() if expr.qualifier else frozenset({expr.name})
    if isinstance(expr, Cast):
        return _needed(expr.arg)
    if isinstance(expr, Call) and FUNCTIONS[expr.op].nulls == "strict":
        return frozenset().union(*map(_needed, expr.args))
    return frozenset()
