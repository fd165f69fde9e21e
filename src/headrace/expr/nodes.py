"""Typed expressions: frozen nodes checked at construction, so that an ill-typed tree cannot exist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from headrace.expr.casts import castable, fails, fits
from headrace.expr.functions import FUNCTIONS
from headrace.expr.syntax import Constant
from headrace.expr.types import BOOL, DURATION, FLOAT, INT, NULL, TEXT, TIME, DecimalType, Type, same


class Unknown(Enum):
    """The constant of what is not constant; null is a value, so None cannot say it."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """A typed expression; `str()` of it parses back to an equal tree."""

    type: Type
    nullable: bool

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    @property
    def constant(self) -> Constant | Unknown:
        """The value where it is written down, else UNKNOWN."""
        return UNKNOWN

    @property
    def written(self) -> Expr:
        """The same without a conversion that the type checker added; those keep the value."""
        return self

    @property
    def fails(self) -> bool:
        """Whether this very node may have a result that does not fit (its children apart)."""
        return False

    def walk(self) -> Iterator[Expr]:
        yield self
        for child in self.children:
            yield from child.walk()

    def refs(self) -> tuple[Ref, ...]:
        """The columns it reads, in order of first use."""
        return tuple(dict.fromkeys(node for node in self.walk() if isinstance(node, Ref)))

    @property
    def approximate(self) -> bool:
        """Whether engines agree within 1e-9 only (logarithms, powers): not fit for a key."""
        return any(isinstance(node, Call) and FUNCTIONS[node.op].approximate for node in self.walk())

    def __str__(self) -> str:
        from headrace.expr.show import show  # the printer knows the nodes, not the other way round

        return show(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref(Expr):
    """A column of the row, or of a named row."""

    name: str
    qualifier: str | None = None

    @property
    def path(self) -> str:
        """What the column is called where several rows stand side by side: `buy.country`."""
        return self.name if self.qualifier is None else f"{self.qualifier}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Expr):
    """A constant; decimals carry exactly their type's scale."""

    value: Constant
    nullable: bool = field(init=False)

    def __post_init__(self) -> None:
        _demand(_holds(self.type, self.value), f"{self.value!r} is not {self.type}")
        object.__setattr__(self, "nullable", self.value is None)

    @property
    def constant(self) -> Constant | Unknown:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Expr):
    """A function or operator of the table, with arguments of exactly the types it takes."""

    op: str
    args: tuple[Expr, ...]
    type: Type = field(init=False)
    nullable: bool = field(init=False)

    def __post_init__(self) -> None:
        function = FUNCTIONS[self.op]
        taken, result = function.rule(self.args)
        _demand(len(taken) == len(self.args), f"{self.op} takes {len(taken)} arguments")
        for arg, wanted in zip(self.args, taken, strict=True):
            _demand(same(arg.type, wanted), f"{self.op} takes {wanted}, not {arg.type}")
        object.__setattr__(self, "type", result)
        object.__setattr__(self, "nullable", function.nullable(self.args))

    @property
    def fails(self) -> bool:
        return FUNCTIONS[self.op].fails(self)

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(Expr):
    """A conversion; an implicit one was added by the type checker and is not printed."""

    arg: Expr
    type: Type
    safe: bool = False
    implicit: bool = False
    nullable: bool = field(init=False)

    def __post_init__(self) -> None:
        _demand(castable(self.arg.type, self.type), f"{self.arg.type} does not become {self.type}")
        object.__setattr__(self, "nullable", self.arg.nullable or self.safe)

    @property
    def written(self) -> Expr:
        return self.arg if self.implicit else self

    @property
    def fails(self) -> bool:
        if self.safe or not fails(self.arg.type, self.type):
            return False
        return not isinstance(self.arg, Literal) or not fits(self.arg.value, self.arg.type, self.type)

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Expr):
    """The first branch whose condition is true, else `otherwise`; all of one type."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: Type = field(init=False)
    nullable: bool = field(init=False)

    def __post_init__(self) -> None:
        _demand(bool(self.branches), "a case has a branch")
        results = [*(then for _, then in self.branches), self.otherwise]
        for condition, then in self.branches:
            _demand(condition.type == BOOL, f"a condition is bool, not {condition.type}")
            _demand(same(then.type, self.otherwise.type), f"{then.type} beside {self.otherwise.type}")
        object.__setattr__(self, "type", self.otherwise.type)
        object.__setattr__(self, "nullable", any(result.nullable for result in results))

    @property
    def children(self) -> tuple[Expr, ...]:
        return (*(part for branch in self.branches for part in branch), self.otherwise)


_PYTHON: dict[Type, type] = {BOOL: bool, INT: int, FLOAT: float, TEXT: str, TIME: datetime, DURATION: timedelta}


def _holds(type: Type, value: Constant) -> bool:
    if value is None:
        return type == NULL
    if isinstance(type, DecimalType):
        return isinstance(value, Decimal) and -int(value.as_tuple().exponent) == type.scale
    return _PYTHON.get(type) is value.__class__


def _demand(holds: bool, why: str) -> None:
    if not holds:
        raise TypeError(why)  # a fault of ours: users meet ExpressionType from the checker long before
