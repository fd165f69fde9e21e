"""Reading Redis: what stores have of keys, the sets of features and the rows of tables alike, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec.json import Decoder
from redis import Redis

from headrace.expr.types import Columns
from headrace.model.target import FeatureRows, RedisKeys
from headrace.stores import redis_catalogue, redis_link
from headrace.stores.redis_rows import key_texts
from headrace.stores.redis_scripts import READ

Member = list[Any]
"""A row that features remember: time, id, values."""
Key = Sequence[Any]
"""The values of a key's columns, in the order of the store's pattern."""
Held = Sequence[Any]
"""What is there of a key: of each store that keeps features the members of its set by time, of one that keeps rows the
row as JSON, or None."""

_TIMEOUT = 1.0
_AT_ONCE = 50
"""Keys that are read in one go: Redis does nothing else meanwhile."""
_members = Decoder(list[Member]).decode


class RedisReader:
    """Reads keys of one store or of several that share their keys; threads may share it."""

    def __init__(self, url: str, stores: Sequence[tuple[RedisKeys, Columns]], client: Redis | None = None) -> None:
        self._url = url
        self._stores = stores
        self._label = stores[0][0].label
        self._client = client or redis_link.connect(url, self._label, timeout=_TIMEOUT)
        self._prefixes = [target.prefix for target, _ in stores]
        self._checked: list[bytes] = []

    def read(self, keys: Sequence[Key]) -> list[Held]:
        """For each key what every store has of it, all in one round trip."""
        values = [list(column) for column in zip(*keys, strict=True)]
        named = zip(*(key_texts(target.name, values) for target, _ in self._stores), strict=True)
        found = self._found([name for of_key in named for name in of_key])
        return list(zip(*[iter(found)] * len(self._stores), strict=True))

    def close(self) -> None:
        self._client.close()

    def _found(self, names: list[str]) -> list[Any]:
        """What is under these names, of each store in turn."""
        with redis_link.told(self._url, f"{self._label} could not be read", "correct what it says"):
            found: list[bytes] = []
            for answer in self._answers(names):
                self._check(answer[: len(self._stores)])
                found += answer[len(self._stores) :]
        sets = [isinstance(target, FeatureRows) for target, _ in self._stores] * (len(names) // len(self._stores))
        return [_set(held) if is_set else held or None for held, is_set in zip(found, sets, strict=True)]

    def _answers(self, names: list[str]) -> list[list[bytes]]:
        """What the script says, of some keys at a time."""
        if len(names) <= _AT_ONCE:  # a pipeline takes longer to make than to use
            return [self._client.eval(READ, len(names) + 1, redis_catalogue.CATALOGUE, *names, *self._prefixes)]
        pipe = self._client.pipeline(transaction=False)
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
            pipe.eval(READ, len(some) + 1, redis_catalogue.CATALOGUE, *some, *self._prefixes)
        return pipe.execute()

    def _check(self, entries: list[bytes]) -> None:
        """With every answer: a flow may have written other rows since."""
        if entries != self._checked:
            for entry, (target, columns) in zip(entries, self._stores, strict=True):
                redis_catalogue.check_written(entry, target, columns)
            self._checked = entries


class Together:
    """Reads what several readers read, each a key of its own, in one round trip; all is in one Redis."""

    def __init__(self, several: Sequence[RedisReader]) -> None:
        first = several[0]
        self._all = RedisReader(first._url, [store for one in several for store in one._stores], first._client)
        self._several = [one._stores for one in several]

    def read(self, keys: Sequence[Key]) -> list[Held]:
        named = [
            key_texts(target.name, [[one] for one in key])[0]
            for stores, key in zip(self._several, keys, strict=True)
            for target, _ in stores
        ]
        found = iter(self._all._found(named))
        return [list(islice(found, len(stores))) for stores in self._several]


def _set(held: bytes) -> list[Member]:
    return _members(held) if held else []
