"""The rows of a stream as the lake keeps them: which table has them, and what the stream makes of them on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from headrace.base.errors import BadStore, DoesNotFit
from headrace.expr import compile
from headrace.expr.nodes import Ref
from headrace.model.declared import Enriched, Filter, Node, Pattern, Project, Read, Union
from headrace.model.featured import Featured
from headrace.model.matched import Step
from headrace.model.output import Output
from headrace.model.target import LakeTable
from headrace.stores import lake_rows

Evaluate = Callable[[Any], Any]
Reading = Callable[[Any], Evaluate]
"""How a column is read from a row."""
Passed = Filter | Project | Featured | Enriched
"""Steps that keep a row the row it was: same time, same place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where a stream's rows are: a table of the lake with their time in a column, and the steps from there to the
    stream."""

    table: str
    time: str
    steps: tuple[Passed, ...]


def find(stream: Node, outputs: Sequence[Output]) -> Kept:
    """The table that has the stream's rows, or those that it is made of by conditions and selects."""
    tables: dict[str, list[Node]] = {}
    for output in outputs:
        if isinstance(output.target, LakeTable) and output.form == "rows":
            tables.setdefault(output.target.name, []).append(output.of)
    source, steps = _back(stream)
    time = _dated_by(source)
    if time is not None:
        topic = source.event.topic if isinstance(source, Read) else None
        written = [output.of for output in outputs if output.target.label == topic]
        for place, node in enumerate((source, *steps)):  # nearest to the source: all columns are there
            for table, kept in tables.items():
                whole = any(_same(one, node) for one in kept) or (node is source and _all_in(written, kept))
                if whole and any(column.name == time for column in node.columns):
                    return Kept(table=table, time=time, steps=tuple(steps[place:]))
    raise BadStore(
        f"the lake does not keep the rows of {stream.name or 'the stream'}",
        why="no output of the app sends them there as they come, dated by a column of their own",
        fix='keep the source: payments.to(hr.lake("payments", partition="day(at)"))',
        where=stream.where,
    )


def in_table(stream: Node, table: str) -> Kept:
    """A table that has the rows of the stream's source beside whatever else, by somebody's word."""
    source, steps = _back(stream)
    time = _dated_by(source)
    if time is None:
        raise BadStore(f"the source of {stream.name or 'the stream'} has no column with its time",
                       why="a table's rows are told apart by when they were", where=stream.where)  # fmt: skip
    return Kept(table=table, time=time, steps=tuple(steps))


def rows(
    kept: Kept, lake: Path, wanted: Sequence[Any], only: Sequence[set[Any]], since: datetime, until: datetime
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Of each row in [since, until] its time in micros, and what these expressions over the stream's columns say. What
    the stream filters, or makes a dead letter of, is left out. `only`: of the first expressions, the values that
    somebody asks for; where they are columns of the table, other rows are left out as well."""
    import pyarrow as pa
    import pyarrow.compute as pc

    places: dict[str, int] = {}  # the columns that are read, each at its first mention
    read: Reading = lambda ref: itemgetter(places.setdefault(ref.name, len(places)))  # noqa: E731
    conditions: list[Evaluate] = []
    for step in kept.steps:
        if isinstance(step, Filter):
            conditions.append(compile(step.condition, read))
        else:
            read = _through(step, read)
    values = [compile(one, read) for one in wanted]
    columns = list(dict.fromkeys([*places, kept.time]))
    found = lake_rows.read(lake, kept.table, columns, time=kept.time, since=since, until=until)
    for value, some in zip(values, only, strict=False):
        if isinstance(value, itemgetter):
            column = found[value(columns)]
            found = found.filter(pc.is_in(column, value_set=pa.array(list(some), column.type)))
    times = found[kept.time].cast(pa.int64()).to_pylist()
    for time, row in zip(times, zip(*(found[name].to_pylist() for name in columns), strict=True), strict=True):
        with suppress(DoesNotFit):
            if all(condition(row) for condition in conditions):
                yield time, tuple([value(row) for value in values])


def _back(stream: Node) -> tuple[Node, list[Passed]]:
    """What a stream's rows were at first, and the steps from there."""
    steps: list[Passed] = []
    while isinstance(stream, Passed):
        steps.insert(0, stream)
        stream = stream.of
    return stream, steps


def _through(step: Project | Featured | Enriched, read: Reading) -> Reading:
    """How a column that comes out of a step is read from a row that went in."""
    if isinstance(step, Project):
        named = dict(step.values)
        return lambda ref: compile(named[ref.name], read)
    before = {column.name: column.name for column in step.of.columns}
    if isinstance(step, Enriched):
        taken = [(name, value) for name, value in step.values if isinstance(value, Ref)]
        before = {name: ref.name for name, ref in taken if ref.qualifier == step.names[0]}

    def passed(ref: Any) -> Evaluate:
        if ref.name not in before:
            raise BadStore(
                f"{ref.name} is what {step.name or 'the table'} knows of a row, and the lake keeps only the rows",
                why="features of what steps before say are told by the stream alone",
                where=step.where,
            )
        return read(replace(ref, name=before[ref.name]))

    return passed


def _all_in(written: list[Node], kept: list[Node]) -> bool:
    """Whether all that is written to a topic, if anything is, goes to a table as well."""
    return bool(written) and all(any(one is other for other in kept) for one in written)


def _dated_by(node: Node) -> str | None:
    """The column that has the time of a stream's rows."""
    match node:
        case Read():
            return node.event.time
        case Filter():
            return _dated_by(node.of)
        case Project():
            at = _dated_by(node.of)
            return next((name for name, value in node.values if isinstance(value, Ref) and value.name == at), None)
        case Union():
            names = {_dated_by(one) for one in node.inputs}
            return names.pop() if len(names) == 1 else None
        case Pattern(steps=(*_, Step(optional=False, how="next" | "then" | "then_any") as last)):  # by its last row
            at = f"last({last.name}.{_dated_by(node.of[last.input])})"
            return next((name for name, value in node.values if isinstance(value, Ref) and value.name == at), None)
        case _:
            return None


def _same(one: Node, other: Node) -> bool:
    """Whether it is one stream; of two apps that read a topic each has its own handle."""
    if isinstance(one, Read) and isinstance(other, Read):
        return one.event.topic == other.event.topic
    return one is other
