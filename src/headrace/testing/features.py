"""Features in a test run: what a program would be told that asks for them online."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headrace.base.clock import micros
from headrace.features.telling import Teller, Vector, key_of
from headrace.model.featured import Featured
from headrace.model.output import Output
from headrace.model.target import FeatureRows
from headrace.reference.batch import Record
from headrace.steps import plain
from headrace.steps.known import Known


class Asked:
    """`rows`: what the run has sent to each of the outputs that keep the features."""

    def __init__(
        self, node: Featured, outputs: Sequence[Output], rows: Sequence[Sequence[Record]], now: datetime
    ) -> None:
        self._node = node
        self._outputs = outputs
        self._rows = rows
        self._now = now

    def get(self, *, at: datetime | None = None, **key: Any) -> Vector:
        """What is known of a key, now or at another time: `t.features(card).get(card_id="c1", at=t.time("10:30"))`."""
        names = [name for name, _ in self._node.keys]
        wanted = key_of(self._node, key, names)
        own = [
            _known(output, records, dict(zip(names, wanted, strict=True)))
            for output, records in zip(self._outputs, self._rows, strict=True)
        ]
        return Teller(self._node).at(micros(at or self._now), own)


def _known(output: Output, records: Sequence[Record], key: dict[str, Any]) -> list[Known]:
    """The rows of a key by time, of several with one id the first."""
    target, columns = output.target, output.of.columns
    assert isinstance(target, FeatureRows)
    types = {column.name: column.type for column in columns}
    values = [name for name, _ in target.values]
    into = [plain.into(types[name]) for name in values]
    found: dict[Any, Known] = {}
    for record in sorted(records, key=lambda record: record.time):
        row = dict(zip(types, record.values, strict=True))
        if all(row[name] == value for name, value in key.items()):
            args = plain.each(into, [row[name] for name in values])
            found.setdefault(row[target.id] if target.id else record.id, Known(record.time, args))
    return list(found.values())
