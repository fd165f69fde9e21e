"""Rows of a batch as Redis holds them: a key out of the pattern's columns, the row as JSON under it."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from msgspec.msgpack import encode

from headrace.base.keys import value_text
from headrace.expr.types import Columns
from headrace.model.target import GONE, RedisKeys
from headrace.stores import staged, wire
from headrace.stores.store import Batch

PIECE = 500
"""Rows a piece: Redis does nothing else while it writes one, a millisecond or two."""
NOTHING = encode([])


def pieces_of(batch: Batch, target: RedisKeys, columns: Columns) -> list[bytes]:
    """All rows in pieces, each a MessagePack list of key, value, key, value; an empty value: the key is gone.

    A script takes a piece as one argument: thousands of them cost the client more than the rows.
    """
    found = staged.latest(batch.files, target, columns)
    written = {column.name: wire.values(found[column.name], column.type) for column in columns}
    names, gone = list(written), found[GONE].to_pylist()
    values = [
        "" if away else wire.json(dict(zip(names, row, strict=True))).decode()
        for away, row in zip(gone, zip(*written.values(), strict=True), strict=True)
    ]
    keys = key_texts(target.name, [written[name] for name in target.key])
    flat = [one for row in zip(keys, values, strict=True) for one in row]
    return [encode(flat[at : at + 2 * PIECE]) for at in range(0, len(flat), 2 * PIECE)]


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
