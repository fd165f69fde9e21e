"""Features as of any time: the lake's rows in the order of time, told by the code that tells them as they come.

A key's rows go through the same step that the stream runs, the oldest first, so that nothing younger than the moment
that is asked for can be among them. The lake has all rows; the stream told what had come by then.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from headrace.base.clock import MICROSECOND, from_micros, micros
from headrace.features import declared, history
from headrace.model.featured import Featured
from headrace.model.naming import refs
from headrace.model.output import Output
from headrace.steps import features, plain
from headrace.steps.known import Known
from headrace.steps.row import MILLI, Row
from headrace.steps.spec import step_of

Key = tuple[Any, ...]

_FIRST = micros(datetime.min.replace(tzinfo=UTC))
"""No row is older."""


class Ask(NamedTuple):
    """A question: what is known of a key at a time; with an id, what the row of that id was told."""

    key: Key
    time: int
    id: Any = None


@dataclass(frozen=True, slots=True)
class Told:
    """The answer: the features, and whether the lake has the row of that id."""

    vector: tuple[Any, ...]
    found: bool


class _Row(NamedTuple):
    time: int
    id: Any
    args: tuple[Any, ...]


Kept = dict[Key, list[_Row]]
"""Rows of a stream by key, each key's by time and id."""


def told(node: Featured, outputs: Sequence[Output], lake: Path, asks: Sequence[Ask], source: str = "") -> list[Told]:
    """An answer to each question, in their order. `source`: the table that has the source's rows; none: where they are
    kept."""
    if not asks:
        return []
    whole: dict[str, Any] = {"lateness": 0, "most": sys.maxsize}  # rows come in order, and all of them
    spec: features.Spec = replace(step_of(node)[1], once="", seen=False, **whole)
    back = [plain.back(column.type) for column in declared.told(node)]
    streams = [_rows(node, number, outputs, lake, asks, source) for number in range(len(node.inputs))]
    asked: dict[Key, list[tuple[Ask, int]]] = defaultdict(list)
    for number, ask in enumerate(asks):
        asked[ask.key].append((ask, number))
    answers: dict[int, Told] = {}
    for key, own in asked.items():
        for number, vector, found in _walk(spec, [kept.get(key, []) for kept in streams], own):
            answers[number] = Told(plain.each(back, vector), found)
    return [answers[number] for number in range(len(asks))]


def id_of(node: Featured) -> Any:
    """What a row of the source is known by: what `once` says, else the id of its event; None: nothing."""
    if node.once is not None:
        return node.once
    event = declared.event_of(node)
    found = [column.name for column in node.of.columns if event is not None and column.name == event.id]
    return refs((found[0],), node.of.columns)[0][1] if found else None


def _rows(node: Featured, number: int, outputs: Sequence[Output], lake: Path, asks: Sequence[Ask], source: str) -> Kept:
    """Of the keys that are asked for, the rows of a stream that the answers can be over."""
    id = id_of(node) if number == 0 else None
    keys, asked = [value for _, value in node.key_of(number)], node.asked(number)
    into, end = [plain.into(one.type) for one in asked], len(keys) + len(asked)
    reach = max(node.reach, max((one.n for one in node.before), default=0) * node.ttl) // MICROSECOND
    since = from_micros(max(min(ask.time for ask in asks) - reach, _FIRST))
    until = from_micros(max(ask.time for ask in asks))
    wanted = {ask.key for ask in asks}
    kept: Kept = defaultdict(list)
    stream = node.inputs[number]
    place = history.in_table(stream, source) if source and number == 0 else history.find(stream, outputs)
    expressions = [*keys, *asked, *([] if id is None else [id])]
    only = [set(column) for column in zip(*wanted, strict=True)]
    for time, values in history.rows(place, lake, expressions, only, since, until):
        key = values[: len(keys)]
        if key in wanted:
            row = _Row(time, None if id is None else values[-1], plain.each(into, values[len(keys) : end]))
            kept[key].append(row)
    for rows in kept.values():
        rows.sort(key=itemgetter(0, 1))
    # What stands twice in the table came once through a step that tells each row once.
    before = (step.once for step in place.steps if isinstance(step, Featured))
    told_once = number == 0 and any(once is not None for once in (node.once, *before))
    return {key: _first(rows) for key, rows in kept.items()} if told_once and id is not None else kept


def _first(rows: list[_Row]) -> list[_Row]:
    """Of several with one id the first."""
    found: dict[Any, _Row] = {}
    for row in rows:
        found.setdefault(row.id, row)
    return list(found.values())


def _walk(
    spec: features.Spec, streams: Sequence[list[_Row]], asks: Sequence[tuple[Ask, int]]
) -> Iterator[tuple[int, tuple[Any, ...], bool]]:
    """One key: its rows and the questions about it, by time. A question without a row of its own comes after all rows
    of its time. Rows of other streams may all be there from the start: windows end where they must."""
    rows, *others = streams
    there = {row[:2] for row in rows}
    own: dict[tuple[int, Any], list[int]] = defaultdict(list)
    waiting: list[tuple[int, int]] = []
    for ask, number in asks:
        if ask.id is not None and (ask.time, ask.id) in there:
            own[ask.time, ask.id].append(number)
        else:
            waiting.append((ask.time, number))
    waiting.sort(reverse=True)
    state = features.from_rows(spec, [[], *([Known(row.time, row.args) for row in other] for other in others)])
    for row in [*rows, None]:
        while waiting and (row is None or waiting[-1][0] < row.time):
            time, number = waiting.pop()
            features.on_time(spec, state, time // MILLI)
            yield number, features.known_at(spec, state, time), False
        if row is None:
            return
        numbers = own.get(row[:2])
        if numbers is None:
            state.inputs[0].append(Known(row.time, row.args))
            continue
        features.on_time(spec, state, row.time // MILLI)
        _, vector = features.step(spec, state, Row(row.time, (row.time, 0, 0, 0, ""), row.args), None)
        for number in numbers:
            yield number, vector, True
