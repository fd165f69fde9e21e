"""The table of everything an expression may say: each operator and function, its types, its nulls, its Python.

What is undefined is null (x / 0, ln(-1)); what exists but does not fit its type is an error for that row (rule B3).
Unless `nulls` says otherwise, a null argument makes the result null. Nothing here is random, reads a clock, runs the
user's code or touches the machine: the table is the allow-list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from headrace.expr import python, rules
from headrace.expr.decimals import MAX_PRECISION
from headrace.expr.types import BOOL, DURATION, FLOAT, INT, TEXT, TIME, DecimalType

if TYPE_CHECKING:
    from headrace.expr.nodes import Call, Expr

EXTRACT_UNITS = ("year", "quarter", "month", "week", "day", "isodow", "hour", "minute", "second")
TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


UNSTABLE = frozenset({
    "now", "current_timestamp", "current_date", "current_time", "localtimestamp", "unix_timestamp", "rand", "random",
    "randn", "uuid", "monotonically_increasing_id", "spark_partition_id", "input_file_name", "current_user", "user",
    "session_user", "version",
})  # fmt: skip
"""Never in the table. Some are called without brackets in SQL; a column of such a name is a column."""
UNSTABLE_WHY = "its answer changes from run to run, and a replay must give the same result"
UNSTABLE_FIX = "use the event's own columns, for example its time"


def never(_: object) -> bool:
    return False


def always(_: object) -> bool:
    return True


def by_zero(args: Sequence[Expr]) -> bool:
    """Whether the divisor may be zero: anything but a constant that is not."""
    divisor = args[1].written.constant
    return not isinstance(divisor, int | float | Decimal) or divisor == 0


def overflows(call: Call) -> bool:
    """Ints, floats and times have an end; decimals grow with their type, up to the most digits there are."""
    if isinstance(call.type, DecimalType):
        return call.type.precision == MAX_PRECISION
    return call.type != DURATION


def _ints_only(call: Call) -> bool:
    """The least int has no opposite."""
    return call.type == INT


def _cut_rounding(call: Call) -> bool:
    """round(decimal) may carry into a digit that the type has no room for."""
    return isinstance(call.type, DecimalType) and call.type.precision == MAX_PRECISION


def _cut_short(call: Call) -> bool:
    """A float may be too large for an int; a decimal's whole part only if it had no room to grow."""
    return call.args[0].type == FLOAT or _cut_rounding(call)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Function:
    """One row of the table."""

    usage: str  # how it is written
    says: str  # what it means, for the docs
    rule: rules.Rule
    # The Python function for a typed call, over non-null values; None where evaluation is lazy and evaluate.py has it.
    python: Callable[[Call], Callable[..., object]] | None = None
    nulls: Literal["strict", "lazy", "own"] = "strict"  # who handles null arguments
    null_if: Literal["any", "all", "never"] = "any"  # how many null arguments make the result null
    undefined: Callable[[Sequence[Expr]], bool] = never  # whether null is possible where no argument is null
    fails: Callable[[Call], bool] = never  # whether a result may exist and not fit
    approximate: bool = False  # engines agree within 1e-9, not bit for bit
    spark: str = ""  # the name in pyspark.sql.functions, where one function does the whole work

    def nullable(self, args: Sequence[Expr]) -> bool:
        some = {"any": any, "all": all, "never": never}[self.null_if]
        return self.undefined(args) or some(arg.nullable for arg in args)


def _plain(function: Callable[..., object]) -> Callable[[Call], Callable[..., object]]:
    """The same Python function whatever the types."""
    return lambda _call: function


def _compare(usage: str, says: str, function: Callable[[Any, Any], bool], rule: rules.Rule) -> Function:
    return Function(usage=usage, says=says, rule=rule, python=_plain(function))


def _text(usage: str, says: str, function: Callable[..., object], spark: str, rule: rules.Rule) -> Function:
    return Function(usage=usage, says=says, rule=rule, python=_plain(function), spark=spark)


def _real(usage: str, says: str, function: Callable[..., float | None], **more: Any) -> Function:
    """A function of floats."""
    parameters = (FLOAT,) * (usage.count(",") + 1)
    return Function(usage=usage, says=says, rule=rules.takes(*parameters, gives=FLOAT), python=_plain(function), **more)


FUNCTIONS: dict[str, Function] = {
    # logic
    "and": Function(usage="a and b", says="false if one is false, else null if one is null", nulls="lazy",
                    rule=rules.takes(BOOL, BOOL, gives=BOOL)),
    "or": Function(usage="a or b", says="true if one is true, else null if one is null", nulls="lazy",
                   rule=rules.takes(BOOL, BOOL, gives=BOOL)),
    "not": Function(usage="not a", says="null stays null", rule=rules.takes(BOOL, gives=BOOL),
                    python=_plain(python.negated)),
    # comparison
    "=": _compare("a = b", "equal; ints, decimals and floats compare as their common type", python.eq, rules.compared),
    "<>": _compare("a <> b", "not equal (also !=)", python.ne, rules.compared),
    "<": _compare("a < b", "before; text by code point", python.lt, rules.ordered),
    "<=": _compare("a <= b", "before or equal", python.le, rules.ordered),
    ">": _compare("a > b", "after", python.gt, rules.ordered),
    ">=": _compare("a >= b", "after or equal", python.ge, rules.ordered),
    "distinct": Function(usage="a is distinct from b", says="not equal, where null equals null", rule=rules.among,
                         nulls="own", null_if="never", python=_plain(python.ne)),
    "is_null": Function(usage="a is null", says="never null itself; also `is not null`", nulls="own", null_if="never",
                        rule=rules.anything, python=_plain(python.is_null)),
    "in": Function(usage="a in (b, c)", says="equal to one of them; null if none is and one is null; also `not in`",
                   rule=rules.among, nulls="own", python=_plain(python.among)),
    "between": Function(usage="a between b and c", says="b <= a and a <= c", rule=rules.ordered, nulls="own",
                        python=_plain(python.between)),
    "like": Function(usage="a like 'b%'", says="% any text, _ one character, backslash escapes; a constant",
                     rule=rules.liked, python=python.like),
    # arithmetic
    "+": Function(usage="a + b", says="numbers; or a time and an interval", rule=rules.plus, python=python.plus,
                  fails=overflows),
    "-": Function(usage="a - b", says="numbers; a time less an interval; time less time is an interval to compare",
                  rule=rules.minus, python=python.minus, fails=overflows),
    "*": Function(usage="a * b", says="numbers", rule=rules.product, python=python.times, fails=overflows),
    "/": Function(usage="a / b", says="int / int is float; null if b is 0", rule=rules.divided, python=python.divide,
                  undefined=by_zero, fails=overflows),
    "%": Function(usage="a % b", says="the sign of a; null if b is 0; also mod(a, b)", rule=rules.remainder,
                  python=python.remainder, undefined=by_zero, spark="try_mod"),
    "negate": Function(usage="-a", says="numbers", rule=rules.number, python=python.negate, fails=_ints_only),
    "abs": Function(usage="abs(a)", says="without its sign", rule=rules.number, python=python.absolute,
                    fails=_ints_only),
    "round": Function(usage="round(a, 2)", says="half away from zero; no digits: to a whole number", rule=rules.rounded,
                      python=python.round_to, fails=_cut_rounding),
    "floor": Function(usage="floor(a)", says="down; a float becomes an int", rule=rules.to_whole, python=python.floor,
                      fails=_cut_short),
    "ceil": Function(usage="ceil(a)", says="up; a float becomes an int", rule=rules.to_whole, python=python.ceil,
                     fails=_cut_short),
    "sqrt": _real("sqrt(a)", "null if a < 0", python.sqrt, undefined=always),
    "power": _real("power(a, b)", "null where undefined", python.power, undefined=always, fails=always,
                   approximate=True),
    "exp": _real("exp(a)", "e to the power of a", python.exp, fails=always, approximate=True),
    "ln": _real("ln(a)", "null if a <= 0", python.ln, undefined=always, approximate=True),
    "sin": _real("sin(a)", "of radians", python.sin, approximate=True, spark="sin"),
    "cos": _real("cos(a)", "of radians", python.cos, approximate=True, spark="cos"),
    "asin": _real("asin(a)", "null outside -1 to 1", python.asin, undefined=always, approximate=True),
    "radians": _real("radians(a)", "of degrees", python.radians, approximate=True, spark="radians"),
    "distance_km": _real("distance_km(lat, lon, lat2, lon2)",
                         "between two places in degrees, over a sphere of 6371 km, rounded to metres; null beyond "
                         "90 and 180 degrees", python.distance_km, undefined=always),
    # choice
    "coalesce": Function(usage="coalesce(a, b)", says="the first that is not null", rule=rules.alike, nulls="lazy",
                         null_if="all", spark="coalesce"),
    "nullif": Function(usage="nullif(a, b)", says="null if they are equal, else a", rule=rules.null_if, nulls="own",
                       python=_plain(python.null_if), undefined=always),
    "greatest": Function(usage="greatest(a, b)", says="nulls do not count", rule=rules.extreme, nulls="own",
                         null_if="all", python=_plain(python.greatest), spark="greatest"),
    "least": Function(usage="least(a, b)", says="nulls do not count", rule=rules.extreme, nulls="own", null_if="all",
                      python=_plain(python.least), spark="least"),
    # text
    "||": _text("a || b", "one after the other; also concat(a, b)", python.concat, "concat",
                rules.takes(TEXT, TEXT, gives=TEXT)),
    "lower": _text("lower(a)", "small letters, by Unicode", str.lower, "lower", rules.takes(TEXT, gives=TEXT)),
    "upper": _text("upper(a)", "capitals, by Unicode", str.upper, "upper", rules.takes(TEXT, gives=TEXT)),
    "trim": _text("trim(a)", "without spaces at both ends", python.trim, "trim", rules.takes(TEXT, gives=TEXT)),
    "length": Function(usage="length(a)", says="characters (code points)", rule=rules.takes(TEXT, gives=INT),
                       python=_plain(len)),
    "substr": Function(usage="substr(a, 2, 3)", says="from character 2 (the first is 1, the last -1), 3 of them",
                       rule=rules.takes(TEXT, INT, INT, gives=TEXT), python=_plain(python.substr)),
    "replace": _text("replace(a, b, c)", "every b becomes c; an empty b changes nothing", python.replace, "replace",
                     rules.takes(TEXT, TEXT, TEXT, gives=TEXT)),
    "starts_with": _text("starts_with(a, b)", "a begins with b", str.startswith, "startswith",
                         rules.takes(TEXT, TEXT, gives=BOOL)),
    "ends_with": _text("ends_with(a, b)", "a ends with b", str.endswith, "endswith",
                       rules.takes(TEXT, TEXT, gives=BOOL)),
    "contains": _text("contains(a, b)", "b is somewhere in a", str.__contains__, "contains",
                      rules.takes(TEXT, TEXT, gives=BOOL)),
    "crc32": Function(usage="crc32(a)", says="the checksum of its UTF-8, 0 to 4294967295: for samples and buckets",
                      rule=rules.takes(TEXT, gives=INT), python=_plain(python.crc32), spark="crc32"),
    # time
    "extract": Function(usage="extract(hour from t)", says=f"an int, in UTC: {', '.join(EXTRACT_UNITS)}; also hour(t)",
                        rule=rules.part_of_time(EXTRACT_UNITS, INT), python=python.extract),
    "date_trunc": Function(usage="date_trunc('hour', t)", says=f"its start, in UTC: {', '.join(TRUNC_UNITS)}",
                           rule=rules.part_of_time(TRUNC_UNITS, TIME), python=python.date_trunc),
    "seconds_between": Function(usage="seconds_between(a, b)", says="b less a, a float",
                                rule=rules.takes(TIME, TIME, gives=FLOAT), python=_plain(python.seconds_between)),
    "unix_millis": Function(usage="unix_millis(t)", says="whole milliseconds since 1970", spark="unix_millis",
                            rule=rules.takes(TIME, gives=INT), python=_plain(python.unix_millis)),
    "timestamp_millis": Function(usage="timestamp_millis(a)", says="the time that many milliseconds after 1970 began",
                                 rule=rules.takes(INT, gives=TIME), python=_plain(python.timestamp_millis),
                                 fails=always),
}  # fmt: skip
