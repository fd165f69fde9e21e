"""Rows of a batch as Redis holds them: a key out of the pattern's columns, the row as JSON under it."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from headrace.base.keys import value_text
from headrace.expr.types import Columns
from headrace.model.target import GONE, RedisKeys
from headrace.stores import staged, wire
from headrace.stores.store import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A key and a value for each row; an empty value: the key is gone."""

    keys: list[str]
    values: list[bytes]

    def pieces(self, size: int) -> list[Rows]:
        starts = range(0, len(self.keys), size)
        return [Rows(keys=self.keys[at : at + size], values=self.values[at : at + size]) for at in starts]


def rows_of(batch: Batch, target: RedisKeys, columns: Columns) -> Rows:
    found = staged.latest(batch.files, target, columns)
    written = {column.name: wire.values(found[column.name], column.type) for column in columns}
    names, gone = list(written), found[GONE].to_pylist()
    values = [
        b"" if away else wire.json(dict(zip(names, row, strict=True)))
        for away, row in zip(gone, zip(*written.values(), strict=True), strict=True)
    ]
    return Rows(keys=key_texts(target.name, [written[name] for name in target.key]), values=values)


def key_texts(pattern: str, columns: list[list[Any]]) -> list[str]:
    """The keys of rows whose values, in their wire form, stand in these columns, one for each place of the pattern.

    Two rows never share a key: in every value but the last, % and the signs that separate the places are written as %
    and two hexadecimal digits.

    >>> key_texts("spend:{card_id}", [["c1", "a:b"]])
    ['spend:c1', 'spend:a:b']
    >>> key_texts("spend:{card_id}:{day}", [["c1", "a:b"], ["1", "2:3"]])
    ['spend:c1:1', 'spend:a%3Ab:2:3']
    """
    _, *between, _ = re.split(r"\{\w+\}", pattern)
    signs = re.compile(f"[{re.escape('%' + ''.join(text[0] for text in between))}]")
    texts = [[_text(value) for value in column] for column in columns]
    texts[:-1] = [[signs.sub(lambda sign: f"%{ord(sign[0]):02X}", text) for text in column] for column in texts[:-1]]
    template = re.sub(r"\{\w+\}", "%s", pattern.replace("%", "%%"))
    return [template % row for row in zip(*texts, strict=True)]


def _text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else value_text(value)
