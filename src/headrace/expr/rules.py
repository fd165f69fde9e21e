"""Typing rules: given the arguments of a function, the types it takes them as and the type it gives back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from headrace.expr.casts import widens_to
from headrace.expr.decimals import (
    as_decimal,
    common_type,
    of_constant,
    product_type,
    quotient_type,
    rounded_type,
    sum_type,
    whole_type,
)
from headrace.expr.types import BOOL, BYTES, DURATION, FLOAT, INT, NULL, TEXT, TIME, DecimalType, Type, same

if TYPE_CHECKING:
    from headrace.expr.nodes import Expr

MOST_DIGITS = 15  # after the point, in round()
LIKE_ESCAPE = "\\"


class Signature(NamedTuple):
    """What a function makes of its arguments."""

    args: tuple[Type, ...]
    type: Type


Rule = Callable[[Sequence["Expr"]], Signature]


class Mismatch(Exception):
    """These arguments do not fit; `index` is the one to blame, or None for the whole call."""

    def __init__(self, why: str, *, fix: str = "", index: int | None = None) -> None:
        super().__init__(why)
        self.why, self.fix, self.index = why, fix, index


def takes(*wanted: Type, gives: Type) -> Rule:
    """A fixed list of parameters."""

    def rule(args: Sequence[Expr]) -> Signature:
        _count(args, len(wanted))
        for index, want in enumerate(wanted):
            _demand(args, index, want)
        return Signature(wanted, gives)

    return rule


def compared(args: Sequence[Expr]) -> Signature:
    """Equality: both sides of one type, whatever it is."""
    for index, arg in enumerate(args):
        if arg.constant is None:
            raise Mismatch("a comparison with null is never true", fix="write `is null` or `is not null`", index=index)
    return Signature((common(args),) * len(args), BOOL)


def ordered(args: Sequence[Expr]) -> Signature:
    """Before and after: types that have an order people agree on."""
    found = compared(args)
    _orderable(found.args[0])
    return found


def extreme(args: Sequence[Expr]) -> Signature:
    """greatest and least: the common type."""
    _count(args, 2, 100)
    shared = common(args)
    _orderable(shared)
    return Signature((shared,) * len(args), shared)


def alike(args: Sequence[Expr]) -> Signature:
    """coalesce: the common type, any type."""
    _count(args, 2, 100)
    shared = common(args)
    return Signature((shared,) * len(args), shared)


def null_if(args: Sequence[Expr]) -> Signature:
    _count(args, 2)
    shared = common(args)
    return Signature((shared, shared), shared)


def among(args: Sequence[Expr]) -> Signature:
    """in: a value, and the values it may be."""
    return Signature((common(args),) * len(args), BOOL)


def anything(args: Sequence[Expr]) -> Signature:
    """is null: any type."""
    _count(args, 1)
    return Signature((args[0].type,), BOOL)


def plus(args: Sequence[Expr]) -> Signature:
    left, right = (arg.type for arg in args)
    if (left, right) in ((TIME, DURATION), (DURATION, TIME)):
        return Signature((left, right), TIME)
    return arithmetic(sum_type)(args)


def minus(args: Sequence[Expr]) -> Signature:
    left, right = (arg.type for arg in args)
    if (left, right) == (TIME, DURATION):
        return Signature((left, right), TIME)
    if (left, right) == (TIME, TIME):
        return Signature((left, right), DURATION)
    return arithmetic(sum_type)(args)


def arithmetic(decimals: Callable[[DecimalType, DecimalType], DecimalType], ints: Type = INT) -> Rule:
    """Two numbers: float if one is, else decimal by the table, else `ints`."""

    def rule(args: Sequence[Expr]) -> Signature:
        _count(args, 2)
        _numbers(args)
        if any(arg.type == FLOAT for arg in args):
            return Signature((FLOAT, FLOAT), FLOAT)
        if any(isinstance(arg.type, DecimalType) for arg in args):
            left, right = (_digits(arg) for arg in args)
            return Signature((left, right), decimals(left, right))
        return Signature((ints, ints), ints)

    return rule


def divided(args: Sequence[Expr]) -> Signature:
    """int / int is a float: 1 / 2 is a half."""
    return arithmetic(quotient_type, ints=FLOAT)(args)


def remainder(args: Sequence[Expr]) -> Signature:
    _count(args, 2)
    _numbers(args)
    shared = common(args)
    return Signature((shared, shared), shared)


def number(args: Sequence[Expr]) -> Signature:
    """negate and abs: the same kind of number."""
    _count(args, 1)
    _numbers(args)
    return Signature((args[0].type,), args[0].type)


def to_whole(args: Sequence[Expr]) -> Signature:
    """floor and ceil: a float becomes an int, a decimal loses its scale."""
    _count(args, 1)
    _numbers(args)
    type = args[0].type
    return Signature((type,), whole_type(type) if isinstance(type, DecimalType) else INT)


def rounded(args: Sequence[Expr]) -> Signature:
    _count(args, 1, 2)
    _numbers(args[:1])
    digits = args[1].constant if len(args) == 2 else 0
    if not isinstance(digits, int) or not 0 <= digits <= MOST_DIGITS:
        raise Mismatch(f"the digits to keep are a constant from 0 to {MOST_DIGITS}", index=1)
    type = args[0].type
    result = rounded_type(type, digits) if isinstance(type, DecimalType) else type
    return Signature((type, INT)[: len(args)], result)


def liked(args: Sequence[Expr]) -> Signature:
    _demand(args, 0, TEXT)
    pattern = args[1].constant
    if not isinstance(pattern, str):
        raise Mismatch(
            "the pattern of like is a constant text", fix="write contains(...) to look for a column", index=1
        )
    if not _well_escaped(pattern):
        raise Mismatch("a backslash stands only before %, _ or another backslash", fix="double it", index=1)
    return Signature((TEXT, TEXT), BOOL)


def part_of_time(units: Collection[str], gives: Type) -> Rule:
    """extract and date_trunc: a unit by name, and a time."""

    def rule(args: Sequence[Expr]) -> Signature:
        _count(args, 2)
        if args[0].constant not in units:
            raise Mismatch(f"the unit is one of {', '.join(units)}", index=0)
        _demand(args, 1, TIME)
        return Signature((TEXT, TIME), gives)

    return rule


def common(args: Sequence[Expr]) -> Type:
    """The one type that all arguments widen to; null is of every type."""
    said = [(index, arg) for index, arg in enumerate(args) if arg.type != NULL]
    if not said:
        raise Mismatch("nothing here says of which type null is", fix="write cast(null as int), for example")
    first = said[0][1].type
    if all(same(arg.type, first) for _, arg in said):
        return first
    for index, arg in said:
        if not _numeric(arg.type) or not _numeric(first):
            if same(arg.type, first):
                continue
            raise Mismatch(f"{first} and {arg.type} have no common type", index=index)
    if any(arg.type == FLOAT for _, arg in said):
        return FLOAT
    return reduce(common_type, (_digits(arg) for _, arg in said))


def _digits(arg: Expr) -> DecimalType:
    """An int constant counts with the digits it has, so that `amount > 100` stays narrow."""
    if arg.type == INT and isinstance(arg.constant, int):
        return of_constant(arg.constant)
    return as_decimal(INT if arg.type == NULL else arg.type)


def _count(args: Sequence[Expr], at_least: int, at_most: int | None = None) -> None:
    most = at_least if at_most is None else at_most
    if not at_least <= len(args) <= most:
        span = str(at_least) if most == at_least else f"{at_least} to {most}"
        raise Mismatch(f"it takes {span} argument{'' if span == '1' else 's'}, not {len(args)}")


def _demand(args: Sequence[Expr], index: int, want: Type) -> None:
    arg = args[index]
    if not widens_to(arg.type, want):
        raise Mismatch(f"it takes {want}, and {arg} is {arg.type}", index=index)


def _numbers(args: Sequence[Expr]) -> None:
    for index, arg in enumerate(args):
        if not _numeric(arg.type):
            raise Mismatch(f"it takes numbers, and {arg} is {arg.type}", index=index)


def _numeric(type: Type) -> bool:
    return type in (INT, FLOAT) or isinstance(type, DecimalType)


def _orderable(type: Type) -> None:
    if not (_numeric(type) or type in (TEXT, TIME, DURATION)):
        raise Mismatch(f"{type} has no order", fix="use = or <>" if type in (BOOL, BYTES) else "")


def _well_escaped(pattern: str) -> bool:
    rest = iter(pattern)
    return all(next(rest, "") in ("%", "_", LIKE_ESCAPE) for char in rest if char == LIKE_ESCAPE)


product = arithmetic(product_type)
