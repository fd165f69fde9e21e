"""What joins share: who may be joined, the keys that rows meet by, and the columns that come out (rule J6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.base.duration import duration, show
from headrace.base.errors import BadStep
from headrace.base.where import Where
from headrace.expr.types import Columns, Party
from headrace.model import changing, declared

if TYPE_CHECKING:
    from headrace.model.declared import Node
    from headrace.model.static import Static
    from headrace.model.stream import Stream
    from headrace.model.table import Table
    from headrace.model.view import View

Named = tuple[tuple[str, Any], ...]


def check_stream(one: Stream, other: Any, place: Where | None, *, whole: bool = False) -> None:
    """Refuses to join a stream with what is none, or with `whole` to unite it."""
    from headrace.model.static import Static
    from headrace.model.stream import Stream
    from headrace.model.view import View

    if isinstance(other, View) and whole:
        raise BadStep(f"{other.called} is a table", why="it holds rows, and a union has those that come",
                      fix=f"{other.called}.changes() is a stream of its changes", where=place)  # fmt: skip
    if isinstance(other, View | Static):
        raise BadStep(f"{other.called} is a table", why="rows meet what it says now, or said at their time",
                      fix=f"{one.called}.enrich({other.called}, on=...)", where=place)  # fmt: skip
    if not isinstance(other, Stream):
        raise BadStep(f"{other!r} is no stream", fix="app.stream(SomeEvent, ...) is one", where=place)
    check_app(one, other, place)


def check_table(stream: Stream, table: Any, as_of: str | None, place: Where | None) -> None:
    """Refuses to enrich a stream with what is no table, or as of a time that it cannot tell."""
    from headrace.model.static import Static
    from headrace.model.table import Table
    from headrace.model.view import View

    if isinstance(table, View) and not isinstance(table, Table):
        raise BadStep(f"{table.called} is a view", why="rows are enriched with a table of the log",
                      fix='write it to a topic, view.to(app.topic("...", compact=True)), and app.table(...) that',
                      where=place)  # fmt: skip
    if not isinstance(table, Table | Static):
        raise BadStep(f"{table!r} is no table", why="streams are joined: .join(..., within=)",
                      fix="app.table(Customer)", where=place)  # fmt: skip
    check_app(stream, table, place)
    if as_of is None:
        return
    if isinstance(table, Static):
        raise BadStep(f"{table.called} is static", why="it has one version, valid at all times",
                      fix="leave as_of out", where=place)  # fmt: skip
    if table.read.history is None:
        raise BadStep(f"{table.called} keeps no history", why="old versions are needed to answer as of a time",
                      fix='app.table(..., history="30 d"): as far back as rows may be', where=place)  # fmt: skip
    time = _time_of(stream.node)
    if not time:
        raise BadStep(f"no column is the time of {stream.called} here",
                      why="a row of a join is dated as the later of its two, a match as its last row, "
                      "a window's result as its end",
                      fix="enrich the rows before that, as of their own time", where=place)  # fmt: skip
    if not isinstance(as_of, str) or as_of != time:
        raise BadStep(f"as_of={as_of!r} is not the time of {stream.called}",
                      why="the version valid at the event's time is looked up",
                      fix=f"as_of={time!r}", where=place)  # fmt: skip


def _time_of(node: Node) -> str:
    """The column that rows are dated by, under the name it was read with; "" where there is none."""
    match node:
        case declared.Read():
            return node.event.time
        case changing.ChangeRows():
            return changing.VERSION.name
        case declared.Featured():
            return _time_of(node.of)
        case (
            declared.Filter()
            | declared.Project()
            | declared.MapRows()
            | declared.FilterRows()
            | declared.Dedup()
            | declared.Changed()
            | declared.Enriched()
            | declared.LookedUp()
            | declared.Union()
        ):
            times = {_time_of(of) for of in node.inputs if not isinstance(of, declared.ReadTable)}
            return times.pop() if len(times) == 1 else ""
    return ""


def check_wait(wait: Any, as_of: str | None, place: Where | None) -> None:
    """Refuses a wait that would not be kept: a row waits for the watermark, or not at all (rule J4)."""
    if wait is None:
        return
    if as_of is None:
        raise BadStep("wait without as_of", why="a row that takes what the table says now waits for nothing",
                      fix="leave wait out, or say as_of=", where=place)  # fmt: skip
    if duration(wait) != timedelta(0):
        raise BadStep(f"wait={wait!r} is not known",
                      why="rows wait until versions up to their time are known, or not at all",
                      fix='leave wait out, or say wait="0 s"; a disorder= of the table makes them wait longer',
                      where=place)  # fmt: skip


def check_app(one: Stream | View, other: Stream | View | Static, place: Where | None) -> None:
    if one.app is not other.app:
        raise BadStep(f"{one.called} belongs to {one.app!r}, {other.called} to {other.app!r}",
                      why="what runs together is declared in one app", where=place)  # fmt: skip


def bounds(within: Any, place: Where | None) -> tuple[timedelta, timedelta]:
    """How much later the other's row may be, from and to; one duration means either way."""
    if isinstance(within, str | timedelta):
        either = duration(within)
        if either < timedelta(0):
            raise BadStep(f"within={show(either)} leaves no time", why="one duration means either way",
                          fix=f'say within=("{show(either)}", "0 s") if the other comes before',
                          where=place)  # fmt: skip
        return -either, either
    if isinstance(within, tuple | list) and len(within) == 2:
        return duration(within[0]), duration(within[1])
    raise BadStep(f"within={within!r} is no time bound", why="it is one duration, or a least and a greatest",
                  fix='say within=("0 s", "10 min"): how much later the other may be', where=place)  # fmt: skip


def keys(on: str, left: Party, right: Party, place: Where | None) -> tuple[tuple[Any, Any], ...]:
    """The keys as the left and as the right row has them."""
    from headrace.expr.on import pairs

    if not isinstance(on, str):
        raise BadStep(f"on={on!r} is no key", fix='say on="customer_id", or on="a.x = b.y"', where=place)
    if left.name == right.name:
        raise BadStep(
            f"both sides are called {left.name!r}",
            why="in conditions and lists of columns the name would mean either",
            fix=f'give one of them another name: .alias("other_{left.name}")',
            where=place,
        )
    return pairs(on, left, right, where=place)


def enriched(
    stream: Stream,
    table: Table | Static,
    *,
    on: str,
    as_of: bool,
    wait: bool,
    take: str | None,
    prefix: str | None,
    place: Where | None,
) -> declared.Enriched | declared.LookedUp:
    """The step that asks a table for each row, by the table's key."""
    from headrace.model.table import Table

    parties = Party(stream.called, stream.columns), Party(table.called, table.columns)
    pairs, key = keys(on, *parties, place), table.event.key
    by_name = {str(theirs): own for own, theirs in pairs}
    if set(by_name) != set(key) or len(pairs) != len(key):
        raise BadStep(f"{table.called} is not asked by its key", why=f"its key is {', '.join(key)}",
                      fix=f'on="{", ".join(key)}"', where=place)  # fmt: skip
    asked = tuple(by_name[name] for name in key)
    values = columns(*parties, pairs, missing=(False, True), take=take, prefix=prefix, place=place)
    names = stream.called, table.called
    if not isinstance(table, Table):
        return declared.LookedUp(
            of=stream.node, event=table.event, rows=table.rows, names=names, on=asked, values=values, where=place
        )
    return declared.Enriched(
        of=stream.node,
        table=table.read,
        names=names,
        on=asked,
        as_of=as_of,
        wait=wait,
        values=values,
        where=place,
    )


def columns(
    left: Party,
    right: Party,
    on: tuple[tuple[Any, Any], ...],
    *,
    missing: tuple[bool, bool],
    one_sided: str = "",
    take: str | None,
    prefix: str | None,
    place: Where | None,
) -> Named:
    """The columns that come out, as expressions over both rows: what `take` says, else all, a key that both call the
    same once. `missing`: whose row may not be there; `one_sided`: how, if only the left row comes out."""
    from headrace.expr import select_list
    from headrace.expr.check import Checker, Source
    from headrace.expr.syntax import Apply, Name, Term

    known = {party.name: party.columns for party in (left, right)}
    left, right = (_maybe(party, gone) for party, gone in zip((left, right), missing, strict=True))
    names = {left.name: left.columns, right.name: right.columns}
    if take is not None:
        taken = select_list(take, (), where=place, names=names)
        if one_sided and any(ref.qualifier == right.name for _, value in taken for ref in value.refs()):
            raise BadStep(f"take asks for columns of {right.name}",
                          why=f"of a {one_sided} join only rows of {left.name} come out",
                          fix=f'take columns of {left.name}, or say how="left"', where=place)  # fmt: skip
        return _chosen(taken, place)
    source = Source(text="", where=place)
    checker = Checker(source=source, columns=(), names=names)
    same = shared(on)
    found: dict[str, Any] = {}
    for column in left.columns:
        own = Name(column.name, left.name)
        found[column.name] = checker.check(own)
        if column.name in same:  # whichever row is there has it
            either: Term = Apply("coalesce", (own, Name(column.name, right.name)))
            found[column.name] = Checker(source=source, columns=(), names=_alike(known, column.name)).check(either)
    clash = []
    for column in () if one_sided else right.columns:
        if column.name not in same:
            name = f"{prefix or ''}{column.name}"
            clash += [name] if name in found else []
            found[name] = checker.check(Name(column.name, right.name))
    if clash:
        raise BadStep(
            f"{left.name} and {right.name} both have {', '.join(clash)}",
            why="the rows that come out would have two columns of one name",
            fix=f'say prefix="{right.name}_", or take="{left.name}.*, ..."',
            where=place,
        )
    return tuple(found.items())


def _chosen(values: Named, place: Where | None) -> Named:
    for name, value in values:
        if any(node.fails for node in value.walk()):
            raise BadStep(f"{name} may not fit its type", why="a join only chooses columns",
                          fix="compute it in a .select(...) after the join", where=place)  # fmt: skip
    return values


def shared(on: tuple[tuple[Any, Any], ...]) -> set[str]:
    """Keys that are one column, called the same on both sides."""
    from headrace.expr.nodes import Ref

    return {a.name for a, b in on if isinstance(a, Ref) and isinstance(b, Ref) and a.name == b.name}


def _alike(parties: dict[str, Columns], name: str) -> dict[str, Columns]:
    """Both rows with a key that may be null if it may be in either."""
    nullable = any(column.nullable for columns in parties.values() for column in columns if column.name == name)
    return {
        party: tuple(replace(column, nullable=nullable) for column in columns) for party, columns in parties.items()
    }


def _maybe(party: Party, missing: bool) -> Party:
    if not missing:
        return party
    return party._replace(columns=tuple(replace(column, nullable=True) for column in party.columns))
