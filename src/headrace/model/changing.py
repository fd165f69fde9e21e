"""What was declared over tables: nodes that take and give changes, {op, before, after, version} per key (rule J5).

`columns` are those of the row before and after. A table's key columns are part of its rows all the way, so the key of a
change is always at hand: it is never carried beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.base.where import Where
from headrace.expr.types import TEXT, TIME, Column, Columns
from headrace.model.aggregate import Bound
from headrace.model.node import Choosing, Narrowing, OneInput, Passing

if TYPE_CHECKING:
    from headrace.model.declared import Node, ReadTable

Named = tuple[tuple[str, Any], ...]

OP = Column("op", TEXT)
VERSION = Column("version", TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions(Passing):
    """A table's versions become its net changes (steps/table.py); one such step serves all views of the table."""

    of: ReadTable
    name: str
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFilter(Narrowing):
    """Changes as seen through a condition: a row that begins to fulfil it is inserted, one that ceases is deleted."""

    of: Node
    condition: Any
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewProject(OneInput, Choosing):
    """Changes of rows with new columns, the key's among them; one that changes none of them is no change."""

    of: Node
    values: Named
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewJoin:
    """Left rows and the right row that each points to (steps/view_join.py); gives answers, which Settled takes.
    `on`: the right's primary key as the left row has it, in that key's order; `key`: the left's own primary key;
    `right_key`: the right's. `outer`: a left row without partner stays."""

    left: Node
    right: Node
    on: tuple[Any, ...]
    key: Named
    right_key: Named
    outer: bool
    name: str = ""
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def columns(self) -> Columns:
        """Of an answer: both rows, one after the other, null where there is none."""
        right = tuple(replace(column, nullable=True) for column in self.right.columns)
        return self.left.columns + right


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Choosing):
    """A view of two tables: answers become net changes by the left's primary key (steps/settle.py).

    It has two inputs. From `of` come the answers of rows that point somewhere. The left's own changes come once more,
    for what is answered without asking (`view_join.links`): a row that has gone, or that points nowhere.
    `names`: of the left and the right row in `values`, the columns that come out."""

    of: ViewJoin
    names: tuple[str, str]
    values: Named
    name: str = ""
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.of, self.of.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped(OneInput):
    """Aggregates per group over a changing table (steps/changelog.py): a view by the group's columns. A row with a null
    among them is in no group."""

    of: Node
    keys: Named
    values: tuple[Bound, ...]
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        return (
            *(Column(name, value.type) for name, value in self.keys),
            *(Column(value.name, value.type, value.nullable) for value in self.values),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRows(OneInput):
    """Changes as rows of a stream: op, the key, the other columns before and after, and the version as time."""

    of: Node
    key: Named
    name: str = ""
    where: Where | None = None

    @property
    def others(self) -> Columns:
        """The columns that are not the key's."""
        names = {name for name, _ in self.key}
        return tuple(column for column in self.of.columns if column.name not in names)

    @property
    def columns(self) -> Columns:
        told = [(when, column) for when in ("before", "after") for column in self.others]
        return (
            OP,
            *(Column(name, value.type) for name, value in self.key),
            *(Column(f"{when}_{column.name}", column.type, True) for when, column in told),
            VERSION,
        )


Changing = Versions | ViewFilter | ViewProject | ViewJoin | Settled | Grouped
