"""The chain's own expressions: packing columns into a payload and back, key texts, stable ids, records, counters.

Each is a Catalyst expression in Scala (jvm/), reached through the gateway; this file gives them Python names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyspark.sql.functions as sf

from headrace.base.ids import stable_id
from headrace.expr.types import BYTES, Column, Columns
from headrace.log.codec import Codec
from headrace.model import declared
from headrace.model.decided import SAID
from headrace.plan.places import key_into
from headrace.plan.plan import Exit, Flow, Plan, Step
from headrace.spark.columns import column
from headrace.spark.functions import spark_type
from headrace.spark.session import Spark

EXIT = 1_000_000
"""Chain rows with step EXIT + n go to the flow's n-th exit."""
DEAD = 2_000_000
"""Chain rows that go to dead letters; their payload is a whole record (letters.py)."""
PORTS = {"rows": 0, "late": 1, "duplicates": 2, "unmatched": 3, "timeouts": 4}


def ddl(columns: Columns) -> str:
    """Columns as Spark's DDL."""
    return ", ".join(f"`{c.name}` {spark_type(c.type)}" for c in columns)


def fields(columns: Columns) -> list[dict[str, Any]]:
    """Columns as jvm/Field.scala reads them."""
    return [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in columns]


def entering(step: Step, number: int, flow: Flow) -> tuple[Columns, list[Any], list[Any]]:
    """What a staged step is handed by its n-th input: the columns of the payload, the expressions behind them, and the
    key. A window gets its key columns, its aggregates' arguments, and all columns only if somebody reads its late rows.
    A pattern gets one layout from all its inputs.
    An expression may be the name of a column, or names: these columns, packed into one.
    """
    node = step.node
    whole = node.inputs[number].columns
    key = list(key_into(node, number))
    if isinstance(node, declared.Pattern):
        return node.layout, list(node.entering(number)), key
    if isinstance(node, declared.Featured):
        handed: list[Any] = [*(c.name for c in whole), *node.computed(number)]
        return node.layout(number), handed, key
    if isinstance(node, declared.Aggregated):
        named = [(f"k{n}", value) for n, value in enumerate(key)]
        named += [(f"a{n}", v.argument) for n, v in enumerate(node.values) if v.argument is not None]
        columns = tuple(Column(name, value.type, value.nullable) for name, value in named)
        row = (Column("row", BYTES),) if node.ranked else ()
        late = whole if flow.reads(step.ordinal, "late") else ()
        wanted = [value for _, value in named] + [tuple(c.name for c in node.ranked) for _ in row]
        return (*columns, *row, *late), wanted + [c.name for c in late], key
    return whole, [c.name for c in whole], key


def given(node: declared.Joined | declared.Enriched | declared.Featured | declared.Pattern, port: str) -> Columns:
    """The payload of rows as their kernel gives them. Of a pattern: the slots. Of features: the row as it was handed
    over, and after it what the kernel knows. Of a join: both rows one after the
    other, null where there is none; beside the rows that come out as they should, which side it is of, and of a late
    one the watermark it met."""
    if isinstance(node, declared.Pattern):
        return node.given
    if isinstance(node, declared.Featured):
        told = {"rows": node.features, "late": (declared.WATERMARK,), "duplicates": ()}
        return (*node.layout(0), *told[port])
    both = tuple(
        Column(f"{name}.{c.name}", c.type, True)
        for name, of in zip(node.names, node.inputs, strict=True)
        for c in of.columns
    )
    return both + {"rows": (), "unmatched": (declared.SIDE,), "late": (declared.SIDE, declared.WATERMARK)}[port]


@dataclass(frozen=True, slots=True)
class Chain:
    """The expressions of one session."""

    spark: Spark

    def pack(self, values: Sequence[Any]) -> Any:
        """Values as one binary column."""
        return self._call("pack", sf.struct(*(v.alias(f"c{n}") for n, v in enumerate(values))))

    def values(self, wanted: Sequence[Any], at: Mapping[str, Any]) -> list[Any]:
        """Expressions as `entering` gives them, as Spark columns."""
        return [self.pack(values_of(one, at)) if isinstance(one, tuple) else values_of([one], at)[0] for one in wanted]

    def unpacked(self, schema: str) -> Any:
        """The payload's columns, as a struct of this DDL."""
        return self.unpack(sf.col("payload"), schema)

    def unpack(self, packed: Any, schema: str) -> Any:
        """A packed column as a struct of this DDL."""
        return self._call("unpack", packed, schema)

    def fields(self, columns: Columns) -> dict[str, Any]:
        """The payload's columns by name."""
        struct = self.unpacked(ddl(columns))
        return {c.name: struct[c.name] for c in columns}

    def key_text(self, values: Sequence[Any]) -> Any:
        """The wire key of rule F1: one value's text, several as a JSON array; null where there is no key."""
        return self._call("keyText", sf.struct(*values)) if values else sf.lit(None).cast("binary")

    def encoded(self, columns: Columns) -> Any:
        """The payload as the JSON of rule F1."""
        return self._call("encode", self.unpacked(ddl(columns)))

    def json(self, values: Sequence[Any]) -> Any:
        """Named values as the JSON of rule F1."""
        return self._call("encode", sf.struct(*values))

    def numbered(self, id: Any, number: Any) -> Any:
        """The id of the n-th row that was made of one: what is made of a row of the log is named by its place
        (rule D2), the others by the id of their row."""
        origin = sf.when(sf.length(id) == 16, sf.lower(sf.hex(id)).cast("binary")).otherwise(id)
        suffix = sf.concat(sf.lit("/"), sf.lpad(number.cast("string"), 6, "0")).cast("binary")
        return sf.concat(sf.coalesce(origin, sf.lit("").cast("binary")), suffix)

    def lookup(self, key: Any, node: declared.LookedUp) -> Any:
        """The static row of a key text, as a struct; null where there is none."""
        codec: Codec[Any] = Codec(node.event.cls)
        encoded = [codec.encode(row) for row in node.rows]
        rows = [(key.decode(), value.decode()) for key, value, *_ in encoded if key is not None]
        return self._call("lookup", key, json.dumps({"fields": fields(node.event.columns), "rows": rows}))

    def decide(self, packed: Any, place: str, node: declared.Decided) -> Any:
        """A packed row with what the policy that stands at this place says of it (deciding.py)."""
        return self._call("decide", packed, place, node.default, ddl(node.of.columns), ddl(SAID))

    def counted(self, condition: Any, step: int, yes: str, no: str) -> Any:
        """The same condition, counting rows under a term of rule D3 where it is true and where it is not ("": not)."""
        return self._call("counted", condition, step, yes, no)

    def headers(self, plan: Plan, flow: Flow, leaving: Exit) -> Any:
        """Type, schema and stable id of an exit's records."""
        name = leaving.target.name
        schema = stable_id(name, *map(str, leaving.columns))[:16]
        return sf.array(
            header("hr-type", sf.lit(name).cast("binary")),
            header("hr-schema", sf.lit(schema).cast("binary")),
            header("hr-id", self.stable_id(plan, flow, leaving)),
        )

    def stable_id(self, plan: Plan, flow: Flow, leaving: Exit) -> Any:
        """The id of an exit's row; a row of the log gets it here, its place is the cause (rule D2)."""
        known = json.dumps([plan.app, plan.version, leaving.target.label, flow.topics])
        return self._call("stableId", sf.struct("key", "src", "part", "off", "id"), known)

    def _call(self, name: str, argument: Any, *more: Any) -> Any:
        from pyspark.sql.classic.column import Column as Made

        return Made(getattr(self.spark.jvm.Chain, name)(argument._jc, *more))


def header(name: str, value: Any) -> Any:
    """One header of a record."""
    return sf.struct(sf.lit(name).alias("key"), value.alias("value"))


def values_of(wanted: Sequence[Any], at: Mapping[str, Any]) -> list[Any]:
    """Expressions (or plain column names) as Spark columns."""
    return [at[w] if isinstance(w, str) else column(w, at) for w in wanted]
