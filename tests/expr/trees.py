"""Random well-typed expressions and random rows for them, with the values that break things."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

from headrace.base.errors import ExpressionType
from headrace.expr.check import Checker, Source
from headrace.expr.decimals import EXACT
from headrace.expr.functions import EXTRACT_UNITS, TRUNC_UNITS
from headrace.expr.nodes import Expr
from headrace.expr.syntax import Apply, CastTo, Choose, Name, Term, Value, negate
from headrace.expr.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    MONEY,
    TEXT,
    TIME,
    Column,
    Columns,
    DecimalType,
    Type,
    decimal,
)

COLUMNS: Columns = (
    Column("i", INT, nullable=True),
    Column("j", INT),
    Column("f", FLOAT, nullable=True),
    Column("g", FLOAT),
    Column("m", MONEY, nullable=True),
    Column("w", decimal(38, 10), nullable=True),
    Column("n", decimal(9, 4)),
    Column("t", TEXT, nullable=True),
    Column("u", TEXT),
    Column("at", TIME, nullable=True),
    Column("until", TIME),
    Column("ok", BOOL, nullable=True),
    Column("yes", BOOL),
    Column("raw", BYTES, nullable=True),
)

INTS = [0, 1, -1, 2, 7, 10, -10, 100, 1_000_000_007, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) + 1]
FLOATS = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.1,
    0.285,
    1.005,
    1e-9,
    123456.789,
    1e15,
    2.0**52 + 1,
    2.0**63,
    -(2.0**63),
]
FLOATS += [1e300, -1e300, 1.7976931348623157e308, 5e-324, 0.49999999999999994, 1e23]
DECIMALS = ["0", "1", "-1", "0.01", "-0.01", "0.005", "99.995", "12.345", "1e6", "-123456.7891", "99999.9999"]
DECIMALS += ["9999999999999999.99", "-9999999999999999.99", "9999999999999999999999999999.9999999999"]
TEXTS = [
    "",
    " ",
    "a",
    "A",
    " padded ",
    "straße",
    "ÉCOLE",
    "ΣΑΣ",
    "日本語",
    "🚀 go",
    "%_",
    "a%b_c",
    "back\\slash",
    "it's",
    "\n",
]
TEXTS += [
    "0",
    "12",
    "-7",
    "+3",
    "007",
    " 5",
    "1.5",
    "-0.005",
    "1e3",
    "1e400",
    "9223372036854775808",
    "true",
    "false",
    "TRUE",
]
TEXTS += [
    "2026-11-03T15:00:00Z",
    "2026-02-30T00:00:00Z",
    "1969-12-31T23:59:59.999999+02:00",
    "2026-11-03",
    "0001-01-01T00:00:00+01:00",
]
TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 10, 12, tzinfo=UTC),
    datetime(1900, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 34, 56, 789_012, tzinfo=UTC),
    datetime(2026, 11, 3, 15, tzinfo=UTC),
    datetime(2101, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
SPANS = [
    timedelta(milliseconds=1),
    timedelta(minutes=5),
    timedelta(days=400),
    timedelta(days=-36_500),
    timedelta(days=3_000_000),
]
PATTERNS = ["%", "", "a%", "%a%", "_", "__%", "\\%\\_", "a\\%b%", "日%", "%\\\\%", "% %"]
DECIMAL_TYPES = [MONEY, decimal(38, 0), decimal(38, 18), decimal(5, 2), decimal(20, 10), decimal(10, 0)]


def row(random: Random) -> dict[str, object]:
    return {column.name: _sample(column.type, column.nullable, random) for column in COLUMNS}


def _sample(type: Type, nullable: bool, random: Random) -> object:
    if nullable and random.random() < 0.2:
        return None
    if isinstance(type, DecimalType):
        limit = 10**type.precision - 1
        units = [random.randint(-limit, limit), random.randint(-10_000, 10_000), 0, 5, limit, -limit]
        return EXACT.scaleb(Decimal(random.choice(units)), -type.scale)
    samples: dict[Type, Callable[[], object]] = {
        INT: lambda: random.choice([*INTS, random.randint(-100, 100), random.randint(-(2**63), 2**63 - 1)]),
        FLOAT: lambda: random.choice([*FLOATS, random.uniform(-1000, 1000), random.gauss(0, 1e9)]),
        TEXT: lambda: random.choice(TEXTS),
        TIME: lambda: random.choice([*TIMES, TIMES[4] + timedelta(microseconds=random.randint(-(10**16), 10**16))]),
        BOOL: lambda: random.random() < 0.5,
        BYTES: lambda: random.choice([b"", b"\x00\xff", b"abc"]),
    }
    return samples[type]()


class Trees:
    """Makes well-typed trees of a wished depth; what the checker refuses is made again."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def expr(self, depth: int = 4) -> Expr:
        while True:
            term = self.random.choice([self.bool, self.int, self.float, self.decimal, self.text, self.time])(depth)
            try:
                return Checker(source=Source(text=""), columns=COLUMNS).check(term)
            except ExpressionType:
                continue

    def _one(self, *makers: Callable[[], Term]) -> Term:
        return self.random.choice(makers)()

    def _call(self, op: str, *args: Term) -> Term:
        return Apply(op, args)

    def _choice(self, depth: int, make: Callable[[int], Term]) -> Term:
        return self._one(
            lambda: Choose(((self.bool(depth), make(depth)), (self.bool(depth), make(depth))), make(depth)),
            lambda: Choose(((self.bool(depth), make(depth)),)),
            lambda: Choose(((self.bool(depth), Value(None)),), make(depth)),
            lambda: Apply("coalesce", (make(depth), make(depth))),
            lambda: Apply("coalesce", (Value(None), make(depth), make(depth))),
            lambda: Apply("nullif", (make(depth), make(depth))),
        )

    def _extreme(self, depth: int, make: Callable[[int], Term]) -> Term:
        args = tuple(make(depth) for _ in range(self.random.randint(2, 4)))
        return Apply(self.random.choice(["greatest", "least"]), args)

    def number(self, depth: int) -> Term:
        return self._one(lambda: self.int(depth), lambda: self.float(depth), lambda: self.decimal(depth))

    def bool(self, depth: int) -> Term:
        if depth <= 0:
            return self._one(lambda: Name("ok"), lambda: Name("yes"), lambda: Value(self.random.random() < 0.5))
        d = depth - 1
        compare = self.random.choice(["=", "<>", "<", "<=", ">", ">="])
        ordered = self.random.choice([self.number, self.number, self.text, self.time])
        return self._one(
            lambda: Apply("and", (self.bool(d), self.bool(d))),
            lambda: Apply("or", (self.bool(d), self.bool(d))),
            lambda: Apply("not", (self.bool(d),)),
            lambda: Apply(compare, (ordered(d), ordered(d))),
            lambda: Apply(compare, (ordered(d), ordered(d))),
            lambda: Apply("between", (ordered(d), ordered(d), ordered(d))),
            lambda: Apply("in", (ordered(d), *(ordered(d) for _ in range(self.random.randint(1, 3))))),
            lambda: Apply(
                "in", (self.float(d), *(Value(f) for f in (0.0, 1.0, 2.5, 1e300, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)))
            ),
            lambda: Apply("in", (self.int(d), Value(None), *(Value(i) for i in INTS[: self.random.randint(1, 14)]))),
            lambda: Apply("distinct", (ordered(d), ordered(d))),
            lambda: Apply("is_null", (self.random.choice([self.number, self.text, self.time, self.bool])(d),)),
            lambda: Apply("is_null", (Name("raw"),)),
            lambda: Apply("=", (Name("raw"), Name("raw"))),
            lambda: Apply("like", (self.text(d), Value(self.random.choice(PATTERNS)))),
            lambda: Apply(self.random.choice(["starts_with", "ends_with", "contains"]), (self.text(d), self.text(d))),
            lambda: Apply(compare, (Apply("-", (self.time(d), self.time(d))), Value(self.random.choice(SPANS)))),
            lambda: CastTo(self.text(d), BOOL, safe=self.random.random() < 0.5),
            lambda: self._choice(d, self.bool),
        )

    def int(self, depth: int) -> Term:
        if depth <= 0:
            return self._one(lambda: Name("i"), lambda: Name("j"), lambda: Value(self.random.choice(INTS)))
        d = depth - 1
        safe = self.random.random() < 0.5
        return self._one(
            lambda: Apply(self.random.choice("+-*%"), (self.int(d), self.int(d))),
            lambda: Apply(self.random.choice("+-*%"), (self.int(d), self.int(d))),
            lambda: negate(self.int(d)),
            lambda: Apply("abs", (self.int(d),)),
            lambda: Apply(self.random.choice(["floor", "ceil"]), (self.float(d),)),
            lambda: Apply("round", (self.int(d),)),
            lambda: Apply("length", (self.text(d),)),
            lambda: Apply("extract", (Value(self.random.choice(EXTRACT_UNITS)), self.time(d))),
            lambda: Apply("unix_millis", (self.time(d),)),
            lambda: CastTo(self._one(lambda: self.number(d), lambda: self.text(d), lambda: self.bool(d)), INT, safe),
            lambda: self._choice(d, self.int),
            lambda: self._extreme(d, self.int),
        )

    def float(self, depth: int) -> Term:
        if depth <= 0:
            return self._one(lambda: Name("f"), lambda: Name("g"), lambda: Value(self.random.choice(FLOATS)))
        d = depth - 1
        safe = self.random.random() < 0.5
        return self._one(
            lambda: Apply(self.random.choice("+-*/%"), (self.float(d), self.number(d))),
            lambda: Apply(self.random.choice("+-*/%"), (self.number(d), self.float(d))),
            lambda: Apply("/", (self.int(d), self.int(d))),
            lambda: negate(self.float(d)),
            lambda: Apply("abs", (self.float(d),)),
            lambda: Apply("sqrt", (self.number(d),)),
            lambda: Apply("round", (self.float(d), Value(self.random.randint(0, 15)))),
            lambda: Apply("seconds_between", (self.time(d), self.time(d))),
            lambda: CastTo(self._one(lambda: self.number(d), lambda: self.text(d)), FLOAT, safe),
            lambda: self._choice(d, self.float),
            lambda: self._extreme(d, self.float),
        )

    def decimal(self, depth: int) -> Term:
        if depth <= 0:
            return self._one(
                lambda: Name("m"), lambda: Name("w"), lambda: Name("n"),
                lambda: Value(Decimal(self.random.choice(DECIMALS))),
            )  # fmt: skip
        d = depth - 1
        safe = self.random.random() < 0.5
        return self._one(
            lambda: Apply(self.random.choice("+-*/%"), (self.decimal(d), self.decimal(d))),
            lambda: Apply(self.random.choice("+-*/%"), (self.decimal(d), self.int(d))),
            lambda: Apply(self.random.choice("+-*/%"), (self.int(d), self.decimal(d))),
            lambda: negate(self.decimal(d)),
            lambda: Apply(self.random.choice(["abs", "floor", "ceil"]), (self.decimal(d),)),
            lambda: Apply("round", (self.decimal(d), Value(self.random.randint(0, 15)))),
            lambda: CastTo(
                self._one(lambda: self.number(d), lambda: self.text(d)), self.random.choice(DECIMAL_TYPES), safe
            ),
            lambda: self._choice(d, self.decimal),
            lambda: self._extreme(d, self.decimal),
        )

    def text(self, depth: int) -> Term:
        if depth <= 0:
            return self._one(lambda: Name("t"), lambda: Name("u"), lambda: Value(self.random.choice(TEXTS)))
        d = depth - 1
        other = self._one(lambda: self.int(d), lambda: self.decimal(d), lambda: self.time(d), lambda: self.bool(d))
        return self._one(
            lambda: Apply(self.random.choice(["lower", "upper", "trim"]), (self.text(d),)),
            lambda: Apply("||", (self.text(d), self.text(d))),
            lambda: Apply("substr", (self.text(d), self.int(0), self.int(0))),
            lambda: Apply(
                "substr", (self.text(d), Value(self.random.randint(-5, 5)), Value(self.random.randint(-2, 5)))
            ),
            lambda: Apply("replace", (self.text(d), self.text(0), self.text(0))),
            lambda: CastTo(other, TEXT),
            lambda: self._choice(d, self.text),
            lambda: self._extreme(d, self.text),
        )

    def time(self, depth: int) -> Term:
        if depth <= 0:
            return self._one(lambda: Name("at"), lambda: Name("until"), lambda: Value(self.random.choice(TIMES)))
        d = depth - 1
        span = Value(self.random.choice(SPANS))
        return self._one(
            lambda: Apply("+", (self.time(d), span)),
            lambda: Apply("+", (span, self.time(d))),
            lambda: Apply("-", (self.time(d), span)),
            lambda: Apply("date_trunc", (Value(self.random.choice(TRUNC_UNITS)), self.time(d))),
            lambda: Apply("timestamp_millis", (self.int(d),)),
            lambda: CastTo(self.text(d), TIME, safe=self.random.random() < 0.5),
            lambda: self._choice(d, self.time),
            lambda: self._extreme(d, self.time),
        )
