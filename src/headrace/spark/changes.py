"""Changes of tables on the chain, and the messages that views are kept by: what steps/change.py, view_join.py and
changelog.py say of one change, as columns of Spark.

A change's payload is (version, before, after), both rows packed, null where there is none. Its key is the row's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyspark.sql.functions as sf

from headrace.expr.types import BOOL, BYTES, INT, Column, Columns
from headrace.model import changing
from headrace.spark.chain import Chain, ddl, values_of
from headrace.spark.columns import column
from headrace.spark.functions import spark_type
from headrace.steps.change import DELETE, INSERT, NO_VERSION, UPDATE

CHANGE: Columns = (Column("version", INT), Column("before", BYTES, True), Column("after", BYTES, True))
LINK: Columns = (Column("key", BYTES), Column("version", INT), Column("values", BYTES, True))
CAUSE: Columns = (Column("left_version", INT), Column("right_version", INT))
ANSWER: Columns = (*CAUSE, Column("left", BYTES), Column("right", BYTES, True))
SETTLING: Columns = (*CAUSE, Column("values", BYTES, True))
DELTA: Columns = (Column("enters", BOOL), Column("version", INT))


def payloads(node: changing.Changing) -> tuple[list[Columns], Columns]:
    """What the kernel of a step takes by each input, and what it gives."""
    match node:
        case changing.ViewJoin():
            return [LINK, CHANGE], ANSWER
        case changing.Settled():
            return [SETTLING, SETTLING], CHANGE
        case changing.Grouped():
            group = tuple(Column(name, value.type) for name, value in node.keys)
            arguments = tuple(Column(v.name, v.argument.type, True) for v in node.values if v.argument is not None)
            return [(*DELTA, *group, *arguments)], CHANGE
        case _:
            return [node.columns], CHANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A table's row before or after its change, on its way through stateless steps."""

    there: Any  # boolean Column: whether there is such a row
    values: Mapping[str, Any]
    packed: Any = None  # all of them in one column, if they came so and have not changed

    def where(self, condition: Any) -> Image:
        return replace(self, there=self.there & sf.coalesce(condition, sf.lit(False)))

    def select(self, values: Sequence[tuple[str, Any]]) -> Image:
        return Image(there=self.there, values={name: column(value, self.values) for name, value in values})

    def payload(self, chain: Chain) -> Any:
        """Packed, null where there is no row."""
        return sf.when(self.there, chain.pack(list(self.values.values())) if self.packed is None else self.packed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change as it is seen at some place of the plan."""

    version: Any
    before: Image
    after: Image

    def differs(self, chain: Chain) -> Any:
        """Whether anything of it is left to see."""
        return ~self.before.payload(chain).eqNullSafe(self.after.payload(chain))

    def payload(self, chain: Chain) -> Any:
        return chain.pack([self.version, self.before.payload(chain), self.after.payload(chain)])

    @property
    def op(self) -> Any:
        gone = sf.when(self.after.there, sf.lit(UPDATE)).otherwise(sf.lit(DELETE))
        return sf.when(self.before.there, gone).otherwise(sf.lit(INSERT))

    @property
    def time(self) -> Any:
        return sf.timestamp_micros(self.version)


class Message(NamedTuple):
    """What a change tells a step by another key, where it `passes`."""

    passes: Any
    key: Any
    payload: Any


def change_of(chain: Chain, columns: Columns) -> Change:
    """The change in this row's payload; its rows have these columns."""
    found = chain.fields(CHANGE)
    before, after = (image_of(chain, found[name], columns) for name in ("before", "after"))
    return Change(version=found["version"], before=before, after=after)


def image_of(chain: Chain, packed: Any, columns: Columns) -> Image:
    row = chain.unpack(packed, ddl(columns))
    return Image(there=packed.isNotNull(), values={c.name: row[c.name] for c in columns}, packed=packed)


def links(chain: Chain, node: changing.ViewJoin, change: Change) -> list[Message]:
    """What a left row's change tells the foreign key it pointed to, and the one it points to now."""
    old, new = (_foreign_key(chain, node, image) for image in (change.before, change.after))
    none = sf.lit(None).cast("binary")
    return [
        Message(
            old.isNotNull() & ~old.eqNullSafe(new),
            old,
            chain.pack([sf.col("key"), change.version, none]),
        ),
        Message(
            new.isNotNull(),
            new,
            chain.pack([sf.col("key"), change.version, change.after.payload(chain)]),
        ),
    ]


def at_once(chain: Chain, node: changing.Settled, change: Change) -> Message:
    """The answer that asks nobody: of a left row that has gone, or that points nowhere."""
    alone = _joined(chain, node, change.after, None) if node.of.outer else sf.lit(None).cast("binary")
    values = sf.when(change.after.there, alone)
    payload = chain.pack([change.version, sf.lit(NO_VERSION), values])
    return Message(_foreign_key(chain, node.of, change.after).isNull(), sf.col("key"), payload)


def answered(chain: Chain, node: changing.Settled) -> Message:
    """An answer of the step by foreign key, as the step by output key takes it: with the view's row."""
    found = chain.fields(ANSWER)
    left, right = (image_of(chain, found[side], of.columns)
                   for side, of in zip(("left", "right"), node.of.inputs, strict=True))  # fmt: skip
    values = _joined(chain, node, left, right)
    stays = sf.lit(True) if node.of.outer else right.there
    payload = chain.pack([found["left_version"], found["right_version"], sf.when(stays, values)])
    return Message(sf.lit(True), sf.col("key"), payload)


def deltas(chain: Chain, node: changing.Grouped, change: Change) -> list[Message]:
    """The row as it was leaves its group, the row as it is enters its group."""
    told = [_entry(chain, node, image) for image in (change.before, change.after)]
    differs = ~told[0][0].eqNullSafe(told[1][0])
    return [
        Message(entry.isNotNull() & differs, key, chain.pack([sf.lit(enters), change.version, *values]))
        for enters, (entry, key, values) in zip((False, True), told, strict=True)
    ]


def _entry(chain: Chain, node: changing.Grouped, image: Image) -> tuple[Any, Any, list[Any]]:
    """A row's group and arguments packed, null where it is in no group; the group's key; the values."""
    group = values_of([value for _, value in node.keys], image.values)
    values = group + values_of([v.argument for v in node.values if v.argument is not None], image.values)
    known = image.there
    for one in group:
        known = known & one.isNotNull()
    return sf.when(known, chain.pack(values)), chain.key_text(group), values


def _foreign_key(chain: Chain, node: changing.ViewJoin, image: Image) -> Any:
    """The text of the key that a left row points to; null where a part of it is, or where there is no row."""
    values = values_of(node.on, image.values)
    known = image.there
    for one in values:
        known = known & one.isNotNull()
    return sf.when(known, chain.key_text(values))


def _joined(chain: Chain, node: changing.Settled, left: Image, right: Image | None) -> Any:
    """The view's row of a left row and its partner, packed."""
    sides = zip(node.names, node.of.inputs, (left, right), strict=True)
    both = {f"{name}.{c.name}": _value(image, c) for name, of, image in sides for c in of.columns}
    return chain.pack([column(value, both) for _, value in node.values])


def _value(image: Image | None, of: Column) -> Any:
    return sf.lit(None).cast(spark_type(of.type)) if image is None else image.values[of.name]


Seen = Callable[[Image], Image]
"""A stateless step, as it shows a row."""
