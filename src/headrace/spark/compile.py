"""Plan to Spark: a flow becomes one streaming frame, from the log source to records for the sink.

source -> routes -> stage 1 -> routes -> stage 2 -> ... -> records. Stateless steps are Spark SQL inside the routes;
stateful steps and Python functions are stages. Every row says which step it goes to, so one line serves all branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from typing import Any

import pyspark.sql.functions as sf

from headrace.expr import Expr
from headrace.expr.nodes import Ref
from headrace.expr.types import Columns
from headrace.model import declared
from headrace.model.changing import Changing
from headrace.plan.places import shuffled
from headrace.plan.plan import Exit, Flow, Plan, Step
from headrace.spark import stored
from headrace.spark.chain import DEAD, EXIT, PORTS, Chain, ddl, entering, given, values_of
from headrace.spark.columns import column, fault
from headrace.spark.lets import Lets
from headrace.spark.letters import RECORD, grave, letter, no_record
from headrace.spark.routes import CHAIN, Gate, Route, Rows, routed
from headrace.spark.stages import GIVING, staged
from headrace.spark.views import Views, told

NO_TIME = 0
"""On the chain, whose times are never null: the event time of a dead row that has none."""
LARGEST = 1_000_000
"""Bytes of a value. Brokers take records of 1 MiB with key, headers and all, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles one flow. `home`: the query's own folder. `arrival`: in real time rows have their turn as they come
    (rule P1)."""

    plan: Plan
    flow: Flow
    chain: Chain
    home: str
    arrival: bool = False

    def records(self, source: Any) -> Any:
        """From the source's frame, watermark set, to a row per record to write: topic, key, value, time, headers; and
        where there are stores, to a row per row of theirs, in columns after these."""
        frame = self._routed(source, self._from_source)
        same = {name: sf.col(name) for name in CHAIN}  # the same for all routes: what is not changed needs no CASE
        moved = shuffled(self.flow)
        for level in range(1, self.flow.levels + 1):
            steps = [s for s in self.flow.steps if s.staged and s.level == level]
            in_place = level not in moved
            frame = staged(self.chain, self.plan, self.flow, steps, frame, self.home, self.arrival, in_place)
            frame = self._routed(frame, partial(self._from_stage, steps, same), self._onward(level, same))
        return self._encoded(frame)

    def _routed(self, frame: Any, routes: Callable[[Lets], list[Route]], *others: Route) -> Any:
        lets = Lets()
        return routed(frame, [*others, *routes(lets)], lets)

    # -- routes

    def _from_source(self, lets: Lets) -> list[Route]:
        meta = {
            "time": sf.col("time"),
            "before": sf.col("before"),
            "src": sf.col("topic"),
            "part": sf.col("partition"),
            "off": sf.col("offset"),
            "id": sf.lit(None).cast("binary"),
        }
        routes: list[Route] = []
        for number, step in enumerate(self.flow.by_topic):
            here, dead = sf.col("topic") == number, sf.col("dead").isNotNull()
            routes.append(self._undecoded(step, here & dead, meta))
            row = sf.col(f"e{number}")
            gone = row.isNull() if isinstance(step.node, declared.ReadTable) else None
            values = {c.name: row[c.name] for c in step.node.columns}
            rows = Rows(origin=here & ~dead, values=values, columns=step.node.columns, meta=meta, gone=gone)
            first, *others = _copies(self._walk(lets, step, "rows", rows))
            routes += [replace(first, gates=(self._tally(step, "used"), *first.gates)), *others]
        return routes

    def _from_stage(self, steps: list[Step], same: dict[str, Any], lets: Lets) -> list[Route]:
        meta = {name: same[name] for name in ("time", "before", "src", "part", "off", "id")}
        views = Views(self.chain, self.flow, same, self._dead, partial(self._walk, lets))
        routes: list[Route] = []
        for step in steps:
            if isinstance(step.node, Changing):
                routes += _copies(views.routes(step))
                continue
            for port, columns in step.ports:
                here = (sf.col("step") == step.ordinal) & (sf.col("port") == PORTS[port])
                rows = self._given(lets, step.node, port, Rows(origin=here, values={}, columns=columns, meta=meta))
                found = _copies(self._walk(lets, step, port, rows))
                if isinstance(step.node, declared.Decided):  # which has no kernel that would count
                    found[0] = replace(found[0], gates=(self._tally(step, "used"), *found[0].gates))
                routes += found
        return routes

    def _given(self, lets: Lets, node: declared.Node, port: str, rows: Rows) -> Rows:
        """A port's rows with their columns, and the payload if it holds just these: kernels of joins and patterns give
        what the columns are made of, those of features what they were asked for too."""
        columns = rows.columns
        if not isinstance(node, GIVING) or (isinstance(node, declared.Featured) and not node.computed(0)):
            return replace(rows, values=self._unpacked(lets, rows, columns), depth=1, packed=sf.col("payload"))
        raw = self._unpacked(lets, rows, given(node, port))
        rows = replace(rows, values={c.name: raw[c.name] for c in columns if c.name in raw}, depth=1)
        if isinstance(node, declared.Featured):
            return rows
        if isinstance(node, declared.Enriched) and port == "late":
            return replace(
                rows, values=rows.values | {c.name: raw[f"{node.names[0]}.{c.name}"] for c in node.of.columns}
            )
        made = self._let(lets, rows, {name: column(value, raw) for name, value in node.values})
        return replace(made, values=rows.values | made.values)

    def _unpacked(self, lets: Lets, rows: Rows, columns: Columns) -> dict[str, Any]:
        return lets.keep(0, rows.origin, self.chain.unpacked(ddl(columns)), [c.name for c in columns])

    def _let(self, lets: Lets, rows: Rows, values: dict[str, Any]) -> Rows:
        """Rows of values made of their columns, each computed once."""
        made = sf.struct(*(value.alias(name) for name, value in values.items()))
        return replace(rows, values=lets.keep(rows.depth, rows.origin, made, values), depth=rows.depth + 1)

    def _onward(self, level: int, same: dict[str, Any]) -> Route:
        """Rows that are bound for exits or later stages go on as they are."""
        later = [s.ordinal for s in self.flow.steps if s.staged and s.level > level]
        bound = (sf.col("step") >= EXIT) | sf.col("step").isin(later) if later else sf.col("step") >= EXIT
        return Route(origin=bound, columns=same)

    def _walk(self, lets: Lets, step: Step, port: str, rows: Rows) -> Iterator[Route]:
        """Follows a port's rows through stateless steps up to stages and exits."""
        for reader, number in self.flow.readers(step.ordinal, port):
            node = reader.node
            if isinstance(node, declared.Union):
                id = self.chain.numbered(rows.meta["id"], sf.lit(number)) if node.numbered else rows.meta["id"]
                gate = self._gate(reader, rows, [])
                passed = replace(rows, gates=(*rows.gates, gate), meta=rows.meta | {"id": id})
                yield from self._walk(lets, reader, "rows", passed)
            elif isinstance(node, declared.Filter):
                gate = self._gate(reader, rows, [node.condition], passes=column(node.condition, rows.values))
                yield from self._walk(lets, reader, "rows", replace(rows, gates=(*rows.gates, gate)))
            elif isinstance(node, (declared.Project, declared.LookedUp)):
                yield from self._walk(lets, reader, "rows", self._reshaped(lets, reader, node, rows))
            else:
                yield self._into(reader, number, rows)
        for leaving in self.flow.leaving(step.ordinal, port):
            yield self._out(leaving, rows)

    def _reshaped(self, lets: Lets, step: Step, node: declared.Project | declared.LookedUp, rows: Rows) -> Rows:
        """Behind a step that gives other columns."""
        if isinstance(node, declared.LookedUp):
            gate = self._gate(step, rows, list(node.on))
            made = self._let(lets, rows, self._looked_up(node, rows))
        else:
            gate = self._gate(step, rows, [value for _, value in node.values])
            values = {name: column(value, rows.values) for name, value in node.values}
            moved = all(isinstance(value, Ref) for _, value in node.values)  # there is nothing to compute
            made = replace(rows, values=values) if moved else self._let(lets, rows, values)
        return replace(made, gates=(*rows.gates, gate), columns=node.columns, packed=None)

    def _looked_up(self, node: declared.LookedUp, rows: Rows) -> dict[str, Any]:
        """The columns that come out, of a row and what a static table has for it."""
        own, theirs = node.names
        found = self.chain.lookup(self._met_by(list(node.on), rows), node)
        both = {f"{own}.{name}": value for name, value in rows.values.items()}
        both |= {f"{theirs}.{c.name}": found[c.name] for c in node.event.columns}
        return {name: column(value, both) for name, value in node.values}

    def _gate(self, step: Step, rows: Rows, expressions: list[Any], passes: Any = None) -> Gate:
        """A stateless step as a gate."""
        broken, words = _faults(expressions, rows)
        through = sf.lit(True) if passes is None else sf.coalesce(passes, sf.lit(False))
        counted = self.chain.counted(through, step.ordinal, "used", "filtered")
        if broken is None:
            return Gate(passes=counted, again=Gate(passes=through))
        dead = self.chain.counted(broken, step.ordinal, "dead", "")
        return Gate(fault=dead, dead=self._dead(rows, words), passes=counted, again=Gate(passes=~broken & through))

    def _tally(self, step: Step, term: str) -> Gate:
        """Lets every row pass, and counts it."""
        return Gate(passes=self.chain.counted(sf.lit(True), step.ordinal, term, ""))

    def _into(self, step: Step, number: int, rows: Rows) -> Route:
        _, wanted, keys = entering(step, number, self.flow)
        broken, words = _faults([e for e in (*wanted, *keys) if isinstance(e, Expr)], rows)
        gate = Gate() if broken is None else Gate(
            fault=self.chain.counted(broken, step.ordinal, "dead", ""), dead=self._dead(rows, words)
        )  # fmt: skip
        packed = self.chain.pack(self.chain.values(wanted, rows.values))
        if rows.gone is None:
            key = self._met_by(keys, rows)
        else:  # a table's row is known by the key of its record, which a tombstone has too
            key, packed = sf.col("key"), sf.when(~rows.gone, packed)
        return self._route(replace(rows, gates=(*rows.gates, gate)), step.ordinal, key, packed, port=number)

    def _met_by(self, keys: list[Any], rows: Rows) -> Any:
        """The key as text; null if a part of it is null: such a row meets nobody (rule J6)."""
        values = values_of(keys, rows.values)
        text = self.chain.key_text(values)
        there = [value.isNotNull() for value, key in zip(values, keys, strict=True) if key.nullable]
        return sf.when(reduce(and_, there), text) if there else text

    def _out(self, leaving: Exit, rows: Rows) -> Route:
        broken, words = _faults([value for _, value in leaving.key], rows)
        gate = Gate() if broken is None else Gate(fault=broken, dead=self._dead(rows, words))
        key = self.chain.key_text(values_of([value for _, value in leaving.key], rows.values))
        packed = self.chain.pack([rows.values[c.name] for c in leaving.columns]) if rows.packed is None else rows.packed
        return self._route(replace(rows, gates=(*rows.gates, gate)), EXIT + leaving.ordinal, key, packed)

    def _route(self, rows: Rows, step: int, key: Any, payload: Any, port: int = 0) -> Route:
        columns = {"step": sf.lit(step), "port": sf.lit(port), "key": key, "payload": payload, **rows.meta}
        return Route(origin=rows.origin, gates=rows.gates, columns=columns)

    # -- dead letters (rules B1, B3)

    def _undecoded(self, step: Step, origin: Any, meta: dict[str, Any]) -> Route:
        """Records that the source could not decode, with their original bytes."""
        record = [grave(self.flow, sf.col("topic")), *map(sf.col, ("value", "dead", "key", "headers"))]
        return Route(origin=origin, gates=(self._tally(step, "dead"),), columns=self._dead_row(meta, record))

    def _dead(self, rows: Rows, words: Any) -> dict[str, Any]:
        """A decoded row that a step cannot use: its columns as JSON stand for its bytes."""
        reason = sf.concat(sf.lit("does-not-fit: "), words)
        value = self.chain.json([rows.values[c.name].alias(c.name) for c in rows.columns])
        return self._dead_row(rows.meta, [grave(self.flow, rows.meta["src"]), value, reason, *no_record()])

    def _dead_row(self, meta: dict[str, Any], record: list[Any]) -> dict[str, Any]:
        return {
            **meta,
            "time": sf.coalesce(meta["time"], sf.lit(NO_TIME)),
            "step": sf.lit(DEAD),
            "port": sf.lit(0),
            "key": sf.lit(None).cast("binary"),
            "payload": self.chain.pack(record),
        }

    # -- records

    def _encoded(self, frame: Any) -> Any:
        """Chain rows as records: the wire form of rule F1, headers with type, schema and stable id. Rows for stores are
        no records: each store has a column of its own for them."""
        dead = self.chain.unpacked(RECORD)
        topic, value = dead["topic"], dead["value"]
        key, headers = letter(self.plan, self.flow, dead["reason"], dead["key"], dead["headers"])
        key = sf.when(sf.col("step") == DEAD, key).otherwise(sf.col("key"))
        stores: dict[str, Any] = {}
        for leaving in self.flow.exits:
            here = sf.col("step") == EXIT + leaving.ordinal
            if leaving.stored:
                row = stored.staged(self.chain, self.plan, self.flow, leaving)
                name = stored.column_of(self.flow, leaving)
                stores[name] = sf.when(here, row).otherwise(stores[name]) if name in stores else sf.when(here, row)
                topic, value, headers = (sf.when(~here, column) for column in (topic, value, headers))
                continue
            topic = sf.when(here, sf.lit(leaving.target.name)).otherwise(topic)
            columns = leaving.columns
            own = told(self.chain, columns) if leaving.form == "changes" else self.chain.encoded(columns)
            value = sf.when(here, own).otherwise(value)
            headers = sf.when(here, self.chain.headers(self.plan, self.flow, leaving)).otherwise(headers)
        # A record that could not be decoded has no event time: its letter is dated when it is written.
        time = sf.when((sf.col("step") != DEAD) | (sf.col("time") != NO_TIME), sf.col("time"))
        made = {"topic": topic, "key": key, "value": value, "time": time, "headers": headers}
        if stores:  # after the partition of a record, which is left to its key
            made |= {"partition": sf.lit(None).cast("int"), **stores}
        kept = ("step", "src", "part", "off", "id")
        return self._fitting(frame.select(*kept, *(column.alias(name) for name, column in made.items())), list(made))

    def _fitting(self, records: Any, names: list[str]) -> Any:
        """Records that the broker would refuse for their size are dead letters: one of them must not stop a stream."""
        size = sf.length("value")
        large = (sf.col("step") != DEAD) & (size > LARGEST)
        words = sf.concat(sf.lit("record-too-large: "), size.cast("string"), sf.lit(" bytes for "), sf.col("topic"))
        key, headers = letter(self.plan, self.flow, words, sf.col("key"), no_record()[1])
        buried = {"topic": grave(self.flow, sf.col("src")), "key": key, "headers": headers}
        said = {name: sf.when(large, column).otherwise(sf.col(name)).alias(name) for name, column in buried.items()}
        return records.select(*(said.get(name, sf.col(name)) for name in names))


def _copies(routes: Iterator[Route]) -> list[Route]:
    """Routes of one origin: each reader gets a copy of its own."""
    return [replace(route, copy=number) for number, route in enumerate(routes)]


def _faults(expressions: list[Any], rows: Rows) -> tuple[Any, Any]:
    """Whether any expression has no value that fits, and the words for the first; None where all always fit."""
    words = [found for e in expressions if (found := fault(e, rows.values)) is not None]
    if not words:
        return None, None
    first = sf.coalesce(*words)
    return first.isNotNull(), first
