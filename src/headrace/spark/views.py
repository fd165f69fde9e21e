"""Views on the chain: where changes of tables go from a stage, step by step (rules J5, J6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyspark.sql.functions as sf

from headrace.expr.types import Columns
from headrace.model import changing
from headrace.plan.plan import Exit, Flow, Step
from headrace.spark import changes, stored
from headrace.spark.chain import EXIT, Chain
from headrace.spark.changes import Change, Image, Message, change_of
from headrace.spark.columns import column, fault
from headrace.spark.routes import Gate, Route, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Changing:
    """Changes of one step on their way through stateless steps: the gates they passed, their rows' columns now."""

    origin: Any
    change: Change
    columns: Columns
    gates: tuple[Gate, ...] = ()


@dataclass(frozen=True, slots=True)
class Views:
    """The routes of a flow's changes. `same`: the chain's columns as they are; `dead`: the chain row of a dead letter,
    from a row and the words of its fault; `walk`: where rows of a port go, once changes are rows of a stream."""

    chain: Chain
    flow: Flow
    same: dict[str, Any]
    dead: Callable[[Rows, Any], dict[str, Any]]
    walk: Callable[[Step, str, Rows], Iterator[Route]]

    def routes(self, step: Step) -> Iterator[Route]:
        """Of what a staged step over tables gives."""
        here = sf.col("step") == step.ordinal
        if isinstance(step.node, changing.ViewJoin):
            for reader, number in self.flow.readers(step.ordinal, "rows"):
                assert isinstance(reader.node, changing.Settled)
                yield self._told(here, (), reader, number, changes.answered(self.chain, reader.node))
        else:
            columns = step.node.columns
            yield from self._walk(step, Changing(origin=here, change=change_of(self.chain, columns), columns=columns))

    def _walk(self, step: Step, at: Changing) -> Iterator[Route]:
        """Follows changes through stateless steps up to stages and exits."""
        for reader, number in self.flow.readers(step.ordinal, "rows"):
            match reader.node:
                case changing.ViewFilter(condition=condition):
                    yield from self._reshaped(reader, at, [condition], _filtered(condition))
                case changing.ViewProject(values=values):
                    yield from self._reshaped(reader, at, [value for _, value in values], _projected(values))
                case changing.ChangeRows() as node:
                    yield from self.walk(reader, "rows", self._rows(reader, node, at))
                case _:
                    for message in self._messages(reader.node, number, at.change):
                        yield self._told(at.origin, at.gates, reader, number, message)
        for leaving in self.flow.leaving(step.ordinal, "rows"):
            yield self._out(leaving, at)

    def _messages(self, node: Any, number: int, change: Change) -> list[Message]:
        """What a change tells a staged step by this input."""
        match node:
            case changing.ViewJoin() if number == 0:
                return changes.links(self.chain, node, change)
            case changing.ViewJoin():
                return [Message(sf.lit(True), sf.col("key"), change.payload(self.chain))]
            case changing.Settled():
                return [changes.at_once(self.chain, node, change)]
        assert isinstance(node, changing.Grouped)
        return changes.deltas(self.chain, node, change)

    def _told(self, origin: Any, gates: tuple[Gate, ...], step: Step, port: int, message: Message) -> Route:
        made = {"step": sf.lit(step.ordinal), "port": sf.lit(port), "key": message.key, "payload": message.payload}
        return Route(origin=origin, gates=(*gates, Gate(passes=message.passes)), columns={**self.same, **made})

    @property
    def _meta(self) -> dict[str, Any]:
        return {name: self.same[name] for name in ("time", "before", "src", "part", "off", "id")}

    def _reshaped(self, step: Step, at: Changing, expressions: list[Any], seen: changes.Seen) -> Iterator[Route]:
        """Behind a filter or a projection. A row for which it has no value that fits is a dead letter when it comes,
        and is not there; what was there before it goes all the same."""
        before, after = at.change.before, at.change.after
        misfit = _misfit(expressions, after)
        sound = [_sound(image, expressions) for image in (before, after)]
        change = replace(at.change, before=seen(sound[0]), after=seen(sound[1]))
        differs = change.differs(self.chain)
        told = self.chain.counted(differs, step.ordinal, "used", "filtered")
        if misfit is not None:
            broken = after.there & misfit.isNotNull()
            told = sf.when(broken, differs).otherwise(told)
            rows = Rows(origin=at.origin, values=dict(after.values), columns=at.columns, meta=self._meta)
            gate = Gate(passes=self.chain.counted(broken, step.ordinal, "dead", ""))
            yield Route(origin=at.origin, gates=(*at.gates, gate), columns=self.dead(rows, misfit))
        gate = Gate(passes=told, again=Gate(passes=differs))
        columns = step.node.columns
        yield from self._walk(step, Changing(origin=at.origin, change=change, columns=columns, gates=(*at.gates, gate)))

    def _rows(self, step: Step, node: changing.ChangeRows, at: Changing) -> Rows:
        """Changes as rows of a stream: op, the key, the other columns before and after, the version as time."""
        change, key = at.change, {}
        for name, value in node.key:
            before, after = (column(value, image.values) for image in (change.before, change.after))
            key[name] = sf.when(change.after.there, after).otherwise(before)
        sides = {"before": change.before, "after": change.after}
        told = {f"{when}_{c.name}": image.values[c.name] for when, image in sides.items() for c in node.others}
        values = {"op": change.op, **key, **told, "version": change.time}
        gate = Gate(passes=self.chain.counted(sf.lit(True), step.ordinal, "used", ""), again=Gate())
        return Rows(origin=at.origin, values=values, columns=node.columns, meta=self._meta, gates=(*at.gates, gate))

    def _out(self, leaving: Exit, at: Changing) -> Route:
        """Of upserts the row as it is now, of changes all."""
        if leaving.stored:
            payload = stored.payload(self.chain, leaving, at.change)
        elif leaving.form == "upserts":
            payload = at.change.after.payload(self.chain)
        else:
            payload = at.change.payload(self.chain)
        columns = {**self.same, "step": sf.lit(EXIT + leaving.ordinal), "payload": payload}
        return Route(origin=at.origin, gates=at.gates, columns=columns)


def told(chain: Chain, columns: Columns) -> Any:
    """The payload of a change as the JSON of rule F2: {op, key, before, after, version}."""
    change = change_of(chain, columns)
    before, after = (
        sf.when(image.there, sf.struct(*(image.values[c.name].alias(c.name) for c in columns)))
        for image in (change.before, change.after)
    )
    named = {"op": change.op, "key": sf.col("key").cast("string"), "before": before, "after": after,
             "version": change.time}  # fmt: skip
    return chain.json([value.alias(name) for name, value in named.items()])


def _filtered(condition: Any) -> changes.Seen:
    return lambda image: image.where(column(condition, image.values))


def _projected(values: Any) -> changes.Seen:
    return lambda image: image.select(values)


def _misfit(expressions: list[Any], image: Image) -> Any:
    """Why a step has no value that fits for a row, as text; None if it always has."""
    words = [found for e in expressions if (found := fault(e, image.values)) is not None]
    return sf.coalesce(*words) if words else None


def _sound(image: Image, expressions: list[Any]) -> Image:
    """The row, if the step has a value that fits for it."""
    misfit = _misfit(expressions, image)
    return image if misfit is None else image.where(misfit.isNull())
