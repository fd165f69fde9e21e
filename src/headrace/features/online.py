"""Features online: what is in Redis of a key, told as of now or of another moment, by the code that tells rows."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from headrace.base.clock import micros
from headrace.base.keys import value_text
from headrace.expr.types import BYTES, DecimalType, ListType, Type
from headrace.features.telling import Teller, Vector, key_of
from headrace.model.featured import Featured
from headrace.model.output import Output
from headrace.model.target import FeatureRows
from headrace.steps.known import Known
from headrace.stores.redis_reader import Key, Member, RedisReader

Conversions = list[tuple[int, Callable[[Any], Any]]]
"""Places of values that Redis has in another form than steps, and how they get into it."""
Sets = Sequence[list[Member]]
"""What is remembered of a key: the rows of the source, then those of each other stream."""


class Coming(NamedTuple):
    """A row that is not there yet, as features see it. `id`: None, unless they tell a row once."""

    time: int
    id: Any
    args: tuple[Any, ...]


class Online:
    """Reads what the features remember, and tells what they say."""

    def __init__(self, node: Featured, outputs: Sequence[Output], url: str) -> None:
        """`outputs`: those that keep the rows, one for each stream."""
        targets = [output.target for output in outputs if isinstance(output.target, FeatureRows)]
        self._node = node
        self._key = targets[0].key
        self._teller = Teller(node)
        self._into = [_conversions(node.asked(number)) for number in range(len(targets))]
        columns = [output.of.columns for output in outputs]
        self.reader = RedisReader(url, list(zip(targets, columns, strict=True)))

    def get(self, keys: Sequence[Mapping[str, Any]], at: datetime | None) -> list[Vector]:
        """The features of each key, in one round trip."""
        moment = micros(datetime.now(UTC) if at is None else at)
        found = self.reader.read([key_of(self._node, dict(key), self._key) for key in keys]) if keys else []
        return [self._teller.at(moment, self._rows(sets)) for sets in found]

    def key(self, key: Mapping[str, Any]) -> Key:
        """A key as sets are read by it."""
        return [key[name] for name in self._key]

    def read(self, key: Key) -> Sets:
        (found,) = self.reader.read([key])
        return found

    def tell(self, row: Coming, sets: Sets) -> Vector:
        """What a row would be told that comes now; if it is there already, as if it were not. `sets`: of its key."""
        own, *others = sets
        if row.id is not None:
            own = [member for member in own if member[1] != value_text(row.id)]
        return self._teller.of(row.time, row.args, self._rows([own, *others]))

    def close(self) -> None:
        self.reader.close()

    def _rows(self, sets: Sets) -> list[list[Known]]:
        own, *others = sets
        sets = [own if self._node.once is None else _first(own), *others]
        return [_known(members, into) for members, into in zip(sets, self._into, strict=True)]


def _first(members: Iterable[Member]) -> list[Member]:
    """Of several with one id the first; they are in the order of time."""
    found: dict[Any, Member] = {}
    for member in members:
        found.setdefault(member[1], member)
    return list(found.values())


def _known(members: Iterable[Member], into: Conversions) -> list[Known]:
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
