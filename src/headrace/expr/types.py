"""Column types: the few kinds of values an event can hold, the same in Python, JSON and Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Type:
    """A kind of value; `name` is how errors and plans print it."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType(Type):
    """Exact decimal with `scale` digits after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """A list of one kind of value."""

    item: Type


def decimal(precision: int, scale: int) -> DecimalType:
    return DecimalType(f"decimal({precision}, {scale})", precision, scale)


def list_of(item: Type) -> ListType:
    return ListType(f"list of {item}", item)


def same(one: Type, other: Type) -> bool:
    """Money is decimal(18, 2) by another name; every other type is equal only to itself."""
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        return (one.precision, one.scale) == (other.precision, other.scale)
    return one == other


BOOL = Type("bool")
INT = Type("int")  # 64 bits
FLOAT = Type("float")  # 64 bits
TEXT = Type("text")
TIME = Type("time")  # an instant, UTC, microseconds
BYTES = Type("bytes")
MONEY = DecimalType("money", 18, 2)
DURATION = Type("duration")  # only inside expressions: `interval '5 min'`, or one time less another; never a column
NULL = Type("null")  # only inside expressions: the type of a bare `null` until its neighbours say what it is


@dataclass(frozen=True, slots=True)
class Column:
    """A named, typed place in a row."""

    name: str
    type: Type
    nullable: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'?' if self.nullable else ''}"


Columns = tuple[Column, ...]


class Party(NamedTuple):
    """A row that has a name, beside others in a join or a pattern."""

    name: str
    columns: Columns
