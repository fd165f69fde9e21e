"""Routes: which rows go where between two stages, as one projection over the chain.

The chain is the linear row form that both micro-batch and real-time plans share: one source, stages in a line, one
sink; every row says which step it goes to. Rows of different origins exclude each other, so one CASE serves them all;
only a port with several readers needs a row more than once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyspark.sql.functions as sf

from headrace.expr.types import Columns as Schema
from headrace.spark.lets import Lets

CHAIN = ("step", "port", "key", "time", "before", "src", "part", "off", "id", "payload")
"""Where a row goes (step, port), its key text, its event time and the watermark before the batch, its place in the
order of rule R2, its stable id (null: a row of the log itself), and its columns, packed."""

Columns = Mapping[str, Any]
"""Chain column -> Spark column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """On the way: rows with a fault become dead letters, rows that do not pass are gone."""

    fault: Any = None  # boolean Column
    dead: Columns | None = None  # what such a row becomes
    passes: Any = None  # boolean Column
    again: Gate | None = None  # for further copies of the same rows: it neither counts nor buries them


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of one port on their way through stateless steps: the gates they passed, their columns now, and how many
    layers of lets lie below these."""

    origin: Any
    values: dict[str, Any]
    columns: Schema
    meta: dict[str, Any]
    depth: int = 0
    gates: tuple[Gate, ...] = ()
    packed: Any = None  # all of them in one column, if they came so and have not changed
    gone: Any = None  # of a table's versions: whether it is a tombstone


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Rows of an origin, through gates in order, become chain rows with these columns."""

    origin: Any  # boolean Column
    gates: tuple[Gate, ...] = ()
    columns: Columns
    copy: int = 0  # 0 for an origin's first reader, 1 for the second, ...


def routed(frame: Any, routes: Sequence[Route], lets: Lets) -> Any:
    """The frame with every row sent along its routes, which may use the lets; rows on none are gone."""
    frame = lets.onto(frame)
    copies = 1 + max(route.copy for route in routes)
    if copies > 1:
        frame = frame.select("*", sf.explode(sf.array(*(sf.lit(n) for n in range(copies)))).alias("_copy"))
    ends: list[Columns] = []
    chosen = sf.lit(None).cast("int")
    for route in reversed(_counted_once(routes)):
        here = route.origin if copies == 1 else route.origin & (sf.col("_copy") == route.copy)
        chosen = sf.when(here, _end(route, ends)).otherwise(chosen)
    # Gates count rows, so Spark must neither repeat nor move them: they are non-deterministic to it.
    kept = frame.select("*", chosen.alias("_end")).where("_end is not null")
    return kept.select(*(_by_end(ends, name).alias(name) for name in CHAIN))


def _counted_once(routes: Sequence[Route]) -> list[Route]:
    """Of the routes that share a gate only the first counts there."""
    passed: set[int] = set()
    found = []
    for route in routes:
        gates = tuple(gate if id(gate) not in passed or gate.again is None else gate.again for gate in route.gates)
        passed.update(map(id, route.gates))
        found.append(replace(route, gates=gates))
    return found


def _end(route: Route, ends: list[Columns]) -> Any:
    """The number of the end that a row of this route reaches; null: none. A gate is asked only behind those before."""
    chosen = _number(ends, route.columns)
    for gate in reversed(route.gates):
        if gate.passes is not None:
            chosen = sf.when(gate.passes, chosen)
        if gate.dead is not None:
            chosen = sf.when(gate.fault, _number(ends, gate.dead)).otherwise(chosen)
    return chosen


def _number(ends: list[Columns], columns: Columns) -> Any:
    ends.append(columns)
    return sf.lit(len(ends) - 1)


def _by_end(ends: Sequence[Columns], name: str) -> Any:
    first = value = ends[0][name]
    for number, columns in enumerate(ends[1:], 1):
        if columns[name] is not first:
            value = sf.when(sf.col("_end") == number, columns[name]).otherwise(value)
    return value
