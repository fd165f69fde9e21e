"""Views: tables made of tables, by verbs that chain; a view follows every change of what it is made of (rule J5)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from headrace.base.errors import BadStep
from headrace.base.where import Where, here
from headrace.expr.types import Columns, Party
from headrace.model import changing, joining
from headrace.model.aggregate import UNRETRACTABLE, Aggregate, bind_all
from headrace.model.changing import Changing
from headrace.model.declaring import declaring
from headrace.model.naming import Named, condition_of, few, kept, refs
from headrace.model.output import Guarantee, Sink, output_of_view
from headrace.model.verbs import NOT_OF_TABLES, Verbs

if TYPE_CHECKING:
    from headrace.model.app import App
    from headrace.model.declared import Node
    from headrace.model.stream import Stream

HOWS = {"inner": False, "left": True}


@dataclass(frozen=True, slots=True, repr=False)
class View(Verbs):
    """Rows by key that change. Verbs return new views; nothing runs until an app is run."""

    KIND = "a table"
    ELSEWHERE = NOT_OF_TABLES
    OF_STREAMS = ".changes() is a stream of its changes, and has .VERB"

    app: App
    node: Changing
    key: Named
    label: str = ""  # what conditions call its rows, if `alias` said so

    def __repr__(self) -> str:
        key = ", ".join(name for name, _ in self.key)
        return f"<{type(self).__name__.lower()} of {few(self.columns)} by {key}>"

    @property
    def columns(self) -> Columns:
        """Name, type and nullability of each column."""
        return self.node.columns

    @property
    def called(self) -> str:
        """The name of its rows in conditions: of the alias, the step or the table it begins with (rule J6)."""
        node: Node = self.node
        while node.inputs and (not node.name or isinstance(node, changing.Versions)):
            node = node.inputs[0]
        return self.label or re.sub(r"\W", "_", node.name)

    @declaring('.alias("boss")')
    def alias(self, name: str) -> Self:
        """Another name for its rows in conditions, as a table that is joined with itself needs."""
        if not name.isidentifier():
            raise BadStep(f"{name!r} cannot name rows", fix="use letters, digits and _", where=here())
        return replace(self, label=name)

    @declaring('.named("order-view")')
    def named(self, name: str) -> View:
        """Names the step, for plans, metrics and stable ids."""
        if isinstance(self.node, changing.Versions):
            raise BadStep(f"{name!r} names a table", fix="name a table with app.table(..., name=)", where=here())
        return replace(self, node=replace(self.node, name=name))

    @declaring(""".where("status = 'open'")""")
    def where(self, condition: Any) -> View:
        """The rows for which the condition is true; others are not there."""
        place = here()
        found = condition_of(condition, self.columns, place)
        return self._made(changing.ViewFilter(of=self.node, condition=found, where=place), self.label)

    @declaring('.select("order_id, amount * 2 as double")')
    def select(self, columns: str) -> View:
        """New columns: `orders.select("order_id, amount * 2 as double")`. The key stays among them."""
        from headrace.expr import select_list

        place = here()
        values = select_list(columns, self.columns, where=place)
        self._check_key(values, place)
        return self._made(changing.ViewProject(of=self.node, values=values, where=place), self.label)

    @declaring('.join(users, on="orders.user_id = users.user_id")')
    def join(
        self, other: View, *, on: str, how: str = "inner", take: str | None = None, prefix: str | None = None
    ) -> View:
        """Each row with the row of another table or view that it points to by that one's key. The result has this one's
        key, and follows the changes of both. `how="left"` keeps rows that point to nothing."""
        place = here()
        _check_other(self, other, place)
        if how not in HOWS:
            raise BadStep(f"how={how!r} is not known", why="rows of the view are known by the key of the left: it is "
                          "inner or left", fix="turn the two around", where=place)  # fmt: skip
        parties = Party(self.called, self.columns), Party(other.called, other.columns)
        pairs = joining.keys(on, *parties, place)
        asked = _asked(pairs, other, place)
        missing = (False, HOWS[how])
        values = joining.columns(*parties, pairs, missing=missing, take=take, prefix=prefix, place=place)
        if take is not None:
            own = tuple((name, value) for name, value in values if getattr(value, "qualifier", None) == self.called)
            self._check_key(own, place)
        joined = changing.ViewJoin(
            left=self.node,
            right=other.node,
            on=asked,
            key=self.key,
            right_key=other.key,
            outer=HOWS[how],
            where=place,
        )
        return self._made(
            changing.Settled(of=joined, names=(self.called, other.called), values=values, where=place), ""
        )

    @declaring('.group_by("city")')
    def group_by(self, columns: str) -> GroupedView:
        """Rows with equal columns are a group: `view.group_by("city").agg(orders=hr.count())`."""
        from headrace.expr import select_list

        place = here()
        keys = select_list(columns, self.columns, where=place)
        for name, value in keys:
            _check_fits(name, value, place)
        return GroupedView(self, keys)

    @declaring(".changes()")
    def changes(self) -> Stream:
        """The changes as a stream: `op` (insert, update, delete), the key, `before_x` and `after_x` for every other
        column x, and `version`, which is also their event time."""
        from headrace.model.stream import Stream

        place = here()
        node = changing.ChangeRows(of=self.node, key=self.key, where=place)
        names = [column.name for column in node.columns]
        if taken := [name for name in names if names.count(name) > 1]:
            raise BadStep(f"the column {taken[0]!r} is taken", why="changes have a column of that name",
                          fix=f'rename it first: .select("..., {taken[0]} as ...")', where=place)  # fmt: skip
        return Stream(self.app, node, refs(tuple(name for name, _ in self.key), node.columns))

    @declaring('.to(app.topic("order-view", compact=True))')
    def to(self, sink: Sink, *, as_changes: bool = False, guarantee: Guarantee = "exactly-once") -> Self:
        """Keeps a compacted topic or a store equal to this: each row as it is now under its key, and none for what has
        gone. `as_changes=True` writes {op, key, before, after, version} to a topic that keeps all of them (rule F2)."""
        self.app.add(output_of_view(self, sink, as_changes=as_changes, guarantee=guarantee, place=here()))
        return self

    def _made(self, node: Changing, label: str) -> View:
        return View(self.app, node, refs(tuple(name for name, _ in self.key), node.columns), label)

    def _check_key(self, values: Named, place: Where | None) -> None:
        if not kept(self.key, values):
            names = ", ".join(name for name, _ in self.key)
            raise BadStep(f"the key of {self.called} gets lost", why=f"rows are known by it: {names}",
                          fix=f'keep it as it is: "{names}, ..."', where=place)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class GroupedView(Verbs):
    """A table or view in groups, waiting to be told what to say about each."""

    KIND = "a table in groups"
    OF_STREAMS = "say .agg(orders=hr.count()) first"

    of: View
    keys: Named

    def __repr__(self) -> str:
        return f"<{self.of!r} in groups by {', '.join(name for name, _ in self.keys)}>"

    @declaring('.agg(orders=hr.count(), spent=hr.sum("amount"))', why="each value is a column, and needs a name")
    def agg(self, **values: Aggregate) -> View:
        """One row per group, by the group's columns. A row that changes or goes takes back what it had added; a group
        without rows is not there."""
        place = here()
        bound = bind_all(values, self.of.columns, {name for name, _ in self.keys}, place)
        for value in bound:
            if value.kind in UNRETRACTABLE:
                raise BadStep(f"{value} over a table", why=UNRETRACTABLE[value.kind],
                              fix="choose another aggregate", where=place)  # fmt: skip
            if value.argument is not None:
                _check_fits(value.name, value.argument, place)
        # Over a table a total may leave its type and come back; it is null meanwhile.
        told = tuple(replace(value, nullable=value.nullable or value.kind in ("sum", "avg")) for value in bound)
        node = changing.Grouped(of=self.of.node, keys=self.keys, values=told, where=place)
        return View(self.of.app, node, refs(tuple(name for name, _ in self.keys), node.columns))


def _asked(pairs: tuple[tuple[Any, Any], ...], right: View, place: Where | None) -> tuple[Any, ...]:
    """The right's key as the left row has it, in that key's order."""
    names = [name for name, _ in right.key]
    by_name = {str(theirs): own for own, theirs in pairs}
    if set(by_name) != set(names) or len(pairs) != len(names):
        key = ", ".join(names)
        raise BadStep(f"{right.called} is not asked by its key", why=f"its key is {key}; others could find many rows",
                      fix=f'on="{key}", or .group_by(...) it first by what you ask for', where=place)  # fmt: skip
    for own, theirs in pairs:
        _check_fits(str(theirs), own, place)
    return tuple(by_name[name] for name in names)


def _check_fits(name: str, value: Any, place: Where | None) -> None:
    """A row whose group or partner cannot be told could not be taken back either."""
    if any(node.fails for node in value.walk()):
        raise BadStep(f"{value} may not fit its type", why=f"{name} must be known for every row, now and when it goes",
                      fix="compute it in a .select(...) before", where=place)  # fmt: skip


def _check_other(one: View, other: Any, place: Where | None) -> None:
    from headrace.model.static import Static
    from headrace.model.stream import Stream

    if isinstance(other, Stream):
        raise BadStep(f"{other.called} is a stream", why="its rows pass by, so a view could never hold them",
                      fix=f"turn it around: {other.called}.enrich({one.called}, on=...)", where=place)  # fmt: skip
    if isinstance(other, Static):
        raise BadStep(f"{other.called} is static", why="a view follows the changes of tables, and it has none",
                      fix=f"{one.called}.changes().enrich({other.called}, on=...)", where=place)  # fmt: skip
    if not isinstance(other, View):
        raise BadStep(f"{other!r} is no table", fix="app.table(Customer) is one", where=place)
    joining.check_app(one, other, place)
