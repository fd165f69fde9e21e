"""Features online: what is in Redis of a key, told as of now or of another moment, by the code that tells rows."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from headrace.base.clock import micros
from headrace.base.errors import UsageError
from headrace.expr.types import BYTES, DecimalType, ListType, Type
from headrace.features.declared import told
from headrace.model.featured import Featured
from headrace.model.output import Output
from headrace.model.target import FeatureRows
from headrace.steps import features, plain
from headrace.steps.features import Known, State
from headrace.steps.spec import step_of
from headrace.stores.redis_sets import Member, SetReader

Vector = dict[str, Any]
"""The features of a key, by name."""
Conversions = list[tuple[int, Callable[[Any], Any]]]
"""Places of values that Redis has in another form than steps, and how they get into it."""


class Online:
    """Reads what the features remember, and tells what they say."""

    def __init__(self, node: Featured, outputs: Sequence[Output], url: str) -> None:
        """`outputs`: those that keep the rows, one for each stream."""
        targets = [output.target for output in outputs if isinstance(output.target, FeatureRows)]
        self._name = node.name
        self._key = targets[0].key
        self._once = node.once is not None
        self._spec: features.Spec = replace(step_of(node)[1], once="", seen=False)
        self._into = [_conversions(node.asked(number)) for number in range(len(targets))]
        self._names = [column.name for column in told(node)]
        self._back = [plain.back(column.type) for column in told(node)]
        columns = [output.of.columns for output in outputs]
        self._reader = SetReader(url, list(zip(targets, columns, strict=True)))

    def get(self, keys: Sequence[Mapping[str, Any]], at: datetime | None) -> list[Vector]:
        """The features of each key, in one round trip."""
        moment = micros(datetime.now(UTC) if at is None else at)
        found = self._reader.read([self._key_of(key) for key in keys]) if keys else []
        return [self._vector(sets, moment) for sets in found]

    def close(self) -> None:
        self._reader.close()

    def _key_of(self, key: Mapping[str, Any]) -> list[Any]:
        if key.keys() != set(self._key):
            raise UsageError(
                f"{self._name} is asked for by {', '.join(key) or 'nothing'}",
                why=f"its key is {', '.join(self._key)}",
                fix=f".get({', '.join(f'{name}=...' for name in self._key)})",
            )
        return [key[name] for name in self._key]

    def _vector(self, sets: Sequence[list[Member]], moment: int) -> Vector:
        own, *others = sets
        sets = [_first(own) if self._once else own, *others]
        state = State(tuple(_rows(members, into) for members, into in zip(sets, self._into, strict=True)))
        values = plain.each(self._back, features.known_at(self._spec, state, moment))
        return dict(zip(self._names, values, strict=True))


def _first(members: Iterable[Member]) -> list[Member]:
    """Of several with one id the first; they are in the order of time."""
    found: dict[Any, Member] = {}
    for member in members:
        found.setdefault(member[1], member)
    return list(found.values())


def _rows(members: Iterable[Member], into: Conversions) -> list[Known]:
    rows = []
    for time, _, *args in members:
        for place, convert in into:
            if args[place] is not None:
                args[place] = convert(args[place])
        rows.append(Known(time, tuple(args)))
    return rows


def _conversions(asked: Sequence[Any]) -> Conversions:
    found = [(place, _into(one.type)) for place, one in enumerate(asked)]
    return [(place, convert) for place, convert in found if convert is not None]


def _into(type: Type) -> Callable[[Any], Any] | None:
    """From a value as Redis has it (stores/redis_sets.py) to the plain one of steps; None: it is the same."""
    if isinstance(type, DecimalType):
        return lambda text: int(text.replace(".", ""))  # it has all digits of its scale
    if isinstance(type, ListType):
        convert = _into(type.item)
        return None if convert is None else lambda values: [convert(one) for one in values]
    return b64decode if type == BYTES else None
