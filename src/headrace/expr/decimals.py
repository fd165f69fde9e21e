"""The one table of decimal results (rule D5): which digits an operation keeps, HALF_UP rounding, and what does not fit.

It is Spark's own table, so that a compiled plan needs no corrections; digits beyond 38 are taken from the scale first,
but never below six.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

from headrace.expr.types import INT, DecimalType, Type, decimal, same

MAX_PRECISION = 38
MIN_SCALE = 6  # what a result keeps after the point when whole digits press from the other side

# Never Python's own operators on decimals: they round to the 28 digits of the thread's context, `-x` and abs() too.
EXACT = Context(prec=200, rounding=ROUND_HALF_UP, Emin=-10_000, Emax=10_000)  # wider than any intermediate result
# The JVM rounds products to 39 digits and quotients to 39 decimal places before it rounds to the result's scale.
PRODUCT = Context(prec=39, rounding=ROUND_HALF_UP, Emin=-10_000, Emax=10_000)
QUOTIENT_STEP = Decimal(1).scaleb(-39)


class Unfit(ArithmeticError):
    """A result exists but does not fit its type; the row becomes a dead letter (rule B3)."""


def bounded(precision: int, scale: int) -> DecimalType:
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, MIN_SCALE)))


def sum_type(a: DecimalType, b: DecimalType) -> DecimalType:
    scale = max(a.scale, b.scale)
    return bounded(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def product_type(a: DecimalType, b: DecimalType) -> DecimalType:
    return bounded(a.precision + b.precision + 1, a.scale + b.scale)


def quotient_type(a: DecimalType, b: DecimalType) -> DecimalType:
    scale = max(MIN_SCALE, a.scale + b.precision + 1)
    return bounded(a.precision - a.scale + b.scale + scale, scale)


def common_type(a: DecimalType, b: DecimalType) -> DecimalType:
    """The narrowest decimal that holds both; money stays money."""
    scale = max(a.scale, b.scale)
    found = bounded(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return a if same(a, found) else b if same(b, found) else found


def whole_type(a: DecimalType) -> DecimalType:
    """Of floor and ceil: one digit more, because 9.5 goes up to 10."""
    return a if a.scale == 0 else bounded(a.precision - a.scale + 1, 0)


def rounded_type(a: DecimalType, digits: int) -> DecimalType:
    return a if digits >= a.scale else bounded(a.precision - a.scale + 1 + digits, digits)


def of_constant(value: int | Decimal) -> DecimalType:
    """The narrowest decimal that holds a constant: 100 is decimal(3, 0), 0.05 is decimal(2, 2)."""
    _, digits, exponent = Decimal(value).as_tuple()
    scale = max(0, -int(exponent))
    return decimal(max(len(digits) + max(0, int(exponent)), scale, 1), scale)


def as_decimal(type: Type) -> DecimalType:
    """The decimal an int or decimal counts as; 19 digits hold every 64-bit int."""
    if isinstance(type, DecimalType):
        return type
    assert type == INT
    return decimal(19, 0)


def widens(a: DecimalType, b: DecimalType) -> bool:
    """Every value of `a` is a value of `b`."""
    return b.scale >= a.scale and b.precision - b.scale >= a.precision - a.scale


def fit(value: Decimal, type: DecimalType) -> Decimal:
    """The value with exactly the type's scale, rounded HALF_UP, or Unfit."""
    found = EXACT.quantize(value, _UNIT[type.scale])
    if found.copy_abs() >= _LIMIT[type.precision - type.scale]:
        raise Unfit
    return found or found.copy_abs()  # -0.00 is a Python thing; the JVM has one zero


_UNIT = tuple(Decimal(1).scaleb(-scale) for scale in range(MAX_PRECISION + 1))
_LIMIT = tuple(Decimal(10) ** whole for whole in range(MAX_PRECISION + 1))
