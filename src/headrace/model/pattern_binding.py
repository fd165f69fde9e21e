"""A pattern's names become places: which stream each step reads, what its condition asks, what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from headrace.base.errors import BadStep
from headrace.expr.build import Col
from headrace.expr.check import Source
from headrace.expr.earlier import Rows
from headrace.expr.nodes import Call, Expr
from headrace.expr.show import show_term, untyped
from headrace.expr.sql import term, terms
from headrace.expr.syntax import Apply, Name, Term, Value, conjunction
from headrace.expr.types import Column, Party, same
from headrace.model import declared
from headrace.model.aggregate import result_of
from headrace.model.matched import Condition, Fit, Flag, Group, Step
from headrace.model.naming import Named, key_columns
from headrace.model.sequence import Written
from headrace.model.stream import Stream

if TYPE_CHECKING:
    from headrace.model.pattern import Pattern


class Binding:
    """Walks the steps in order. What a pattern reads are whole streams: steps that take different parts of one stream,
    `logins.where("ok")` and `logins.where("not ok")`, share an input, so that a row is one row to the pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._inputs: list[_Shared] = []
        self._of: dict[str, Stream] = {}  # the stream of each step
        self._taken: dict[str, Party] = {}  # steps so far that take rows
        self._flags: list[Flag] = []
        self._conditions: list[Condition] = []
        self._find_streams(pattern.parts, None)
        self._steps = tuple(map(self._part, pattern.parts))

    def node(self) -> declared.Pattern:
        pattern = self._pattern
        rows, values = self._output()
        within = pattern.bound or pattern.keep
        assert within is not None
        return declared.Pattern(
            of=tuple(shared.node(pattern) for shared in self._inputs),
            names=tuple(shared.name for shared in self._inputs),
            keys=tuple(shared.key for shared in self._inputs),
            steps=self._steps,
            within=within,
            kept=pattern.bound is None,
            after=pattern.after,
            to=pattern.after_step,
            flags=tuple(self._flags),
            conditions=tuple(self._conditions),
            needed=tuple(self._needed(rows)),
            asks=rows.asks,
            values=values,
            name=pattern.name,
            where=pattern.place,
        )

    # -- streams

    def _find_streams(self, parts: tuple[Written, ...], before: Stream | None) -> Stream | None:
        """A step without a stream takes that of the step before it."""
        for part in parts:
            if part.steps:
                before = self._find_streams(part.steps, before)
                continue
            stream = part.stream or before
            if stream is None:
                raise BadStep(f"{part.name} says no stream", why="the first step says whose rows it takes",
                              fix=f'.first("{part.name}", stream)', where=part.place)  # fmt: skip
            if part.name in self._of:
                raise BadStep(f"two steps are called {part.name!r}", why="rows are told by their step",
                              fix="give one another name", where=part.place)  # fmt: skip
            self._of[part.name] = before = stream
            self._share(stream, part)
        return before

    def _share(self, stream: Stream, part: Written) -> None:
        pattern = self._pattern
        if stream.app is not pattern.app:
            raise BadStep(f"{stream.called} belongs to {stream.app!r}, {pattern.name} to {pattern.app!r}",
                          why="what runs together is declared in one app", where=part.place)  # fmt: skip
        key = key_columns(pattern.key, stream.columns, part.place)
        first = self._inputs[0].key if self._inputs else key
        if [name for name, _ in first] != [name for name, _ in key]:
            raise BadStep(f"the key of {stream.called} is {', '.join(name for name, _ in key)}",
                          why=f"that of {self._inputs[0].name} is {', '.join(name for name, _ in first)}",
                          fix="say the columns by name", where=part.place)  # fmt: skip
        for (name, one), (_, other) in zip(first, key, strict=True):
            if not same(one.type, other.type):
                raise BadStep(f"the key {name} is {one.type}, but {other.type} in {stream.called}",
                              why="keys of different types are never equal",
                              fix=f'cast it first: .select("cast({name} as ...) as {name}, ...")',
                              where=part.place)  # fmt: skip
        base, filters = _unfiltered(stream)
        number = self._place(base)
        if number is None:
            number = len(self._inputs)
            self._inputs.append(_Shared(base, self._free(stream.called), key))
        self._inputs[number].parts.setdefault(filters, stream)

    def _place(self, base: declared.Node) -> int | None:
        same = (number for number, shared in enumerate(self._inputs) if _same(shared.base, base))
        return next(same, None)

    def _free(self, name: str) -> str:
        taken = {shared.name for shared in self._inputs}
        return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)

    # -- steps

    def _part(self, part: Written) -> Step | Group:
        how_often: dict[str, Any] = {
            "least": part.least, "most": part.most, "optional": part.optional, "inner": part.inner,
            "within": part.within,
        }  # fmt: skip
        if part.steps:
            return Group(how=part.how, steps=tuple(map(self._part, part.steps)), **how_often)
        stream = self._of[part.name]
        base, filters = _unfiltered(stream)
        number = self._place(base)
        assert number is not None
        shared = self._inputs[number]
        party = Party(shared.name, stream.columns)
        if not part.never:
            self._taken[part.name] = party
        until = None if part.until is None else self._fit(part, party, number, part.until, f"until {part.name}", ())
        told_apart = filters if len(shared.parts) > 1 else ()
        fit = self._fit(part, party, number, part.condition, f"is {part.name}", told_apart)
        return Step(name=part.name, how=part.how, input=number, fit=fit, greedy=part.greedy, until=until, **how_often)

    def _fit(self, part: Written, party: Party, number: int, given: Any, name: str, filters: tuple[Expr, ...]) -> Fit:
        alone, condition, said = list(filters), None, [untyped(one) for one in filters]
        if given is not None:
            rows, wanted = self._rows(part, party, given)
            found = rows.condition(wanted)
            said.append(wanted)
            alone += [] if found.alone is None else [found.alone]
            if found.test is not None:
                condition = len(self._conditions)
                self._conditions.append(Condition(asks=found.asks, test=found.test))
        flag = None
        if alone or len(self._inputs) > 1:
            flag = len(self._flags)
            self._flags.append(Flag(name=name, input=number, test=_joined("and", alone) if alone else None))
        return Fit(flag=flag, condition=condition, text=show_term(conjunction(said)) if said else "")

    def _rows(self, part: Written, party: Party, given: Any) -> tuple[Rows, Term]:
        if not isinstance(given, str | Col):
            told = getattr(given, "__name__", repr(given))
            raise BadStep(f"the condition of {part.name} is {told}", why="rows taken before are not known to Python",
                          fix="say it as text; a Python function maps or tests rows before the pattern (rule P5)",
                          where=part.place)  # fmt: skip
        source = Source(text=given if isinstance(given, str) else show_term(given.term), where=part.place)
        found = term(source, over_rows=True) if isinstance(given, str) else given.term
        return Rows(source, result_of, self._taken, part.name, party), found

    # -- what comes out

    def _output(self) -> tuple[Rows, Named]:
        pattern = self._pattern
        seldom = set(_seldom(pattern.parts))
        taken = {name: _maybe(party) if name in seldom else party for name, party in self._taken.items()}
        keys = {name: Column(name, value.type) for name, value in self._inputs[0].key}
        source = Source(text=pattern.chosen or "", where=pattern.place)
        rows = Rows(source, result_of, taken, keys=keys)
        listed = terms(source, over_rows=True) if pattern.chosen is not None else list(self._usual(keys))
        found: dict[str, Any] = {}
        for given, one in listed:
            name, value = rows.chosen(given, one)
            if name in found:
                raise BadStep(f"two columns are named {name!r}", fix='say select="... as ..."', where=pattern.place)
            if any(node.fails for node in value.walk()):
                raise BadStep(f"{name} may not fit its type", why="a pattern only chooses columns",
                              fix="compute it in a .select(...) after it", where=pattern.place)  # fmt: skip
            found[name] = value
        return rows, tuple(found.items())

    def _usual(self, keys: dict[str, Column]) -> Iterator[tuple[str, Term]]:
        """The name of the pattern, the key, and of each step the columns of the last row it took; how many rows, where
        that is not clear."""
        yield "pattern", Value(self._pattern.name)
        yield from ((name, Name(name)) for name in keys)
        repeated = set(_repeated(self._pattern.parts))
        for step, party in self._taken.items():
            if step in repeated:
                yield f"{step}_count", Apply("count", (Name(step),))
            for column in party.columns:
                if column.name not in keys:
                    yield f"{step}_{column.name}", Name(column.name, step)

    def _needed(self, rows: Rows) -> Iterator[tuple[int, Column]]:
        """The columns that conditions and slots read, in the order of the inputs."""
        asks = [*rows.asks, *(ask for condition in self._conditions for ask in condition.asks)]
        read = {ask.column for ask in asks}
        read |= {ref.path for condition in self._conditions for ref in condition.test.refs()}
        for number, shared in enumerate(self._inputs):
            for column in shared.base.columns:
                if f"{shared.name}.{column.name}" in read:
                    yield number, column


class _Shared:
    """An input: a stream without its filters. `parts`: the parts of it that steps take, by their filters."""

    def __init__(self, base: declared.Node, name: str, key: Named) -> None:
        self.base = base
        self.name = name
        self.key = key
        self.parts: dict[tuple[Expr, ...], Stream] = {}

    def node(self, pattern: Pattern) -> declared.Node:
        """Rows that some step could take: the one part there is, or all parts together."""
        if len(self.parts) == 1:
            (stream,) = self.parts.values()
            return stream.node
        if () in self.parts:
            return self.base
        either = _joined("or", [_joined("and", filters) for filters in self.parts])
        return declared.Filter(of=self.base, condition=either, where=pattern.place)


def _unfiltered(stream: Stream) -> tuple[declared.Node, tuple[Expr, ...]]:
    node, filters = stream.node, []
    while isinstance(node, declared.Filter):
        filters.append(node.condition)
        node = node.of
    return node, tuple(reversed(filters))


def _same(one: declared.Node, other: declared.Node) -> bool:
    """Whether two handles are of one stream: a side output is made anew whenever it is asked for."""
    if isinstance(one, declared.Side) and isinstance(other, declared.Side):
        return one.of is other.of and one.port == other.port
    return one is other


def _joined(op: str, conditions: Sequence[Expr]) -> Expr:
    return reduce(lambda one, other: Call(op=op, args=(one, other)), conditions)


def _maybe(party: Party) -> Party:
    return party._replace(columns=tuple(replace(column, nullable=True) for column in party.columns))


def _seldom(parts: tuple[Written, ...], inside: bool = False) -> Iterator[str]:
    """Steps that may have taken no row."""
    for part in parts:
        maybe = inside or part.optional
        yield from _seldom(part.steps, maybe) if part.steps else [part.name] if maybe else ()


def _repeated(parts: tuple[Written, ...], inside: bool = False) -> Iterator[str]:
    """Steps that may have taken several rows."""
    for part in parts:
        often = inside or part.most != 1
        yield from _repeated(part.steps, often) if part.steps else [part.name] if often else ()
