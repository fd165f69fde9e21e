"""Where every row of a flow went since its state began (rule D3): the batches' counts, summed and kept beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from headrace.model.declared import Aggregated
from headrace.observe.snapshot import Counts, StepState
from headrace.plan.plan import Flow

Terms = dict[str, int]
_FIELDS = {"in": "entered"}
_BESIDE = ("keys", "bytes")  # counted beside the rows; no terms of rule D3


@dataclass(slots=True)
class Totals:
    """A batch counts when it has ended: what a batch that failed had counted is forgotten, it will run again.

    The file is written after the batch was committed: of batches that ended right before a kill the counts are lost.
    """

    flow: Flow
    file: Path
    _sum: dict[int, Terms] = field(default_factory=dict)
    _open: dict[int, dict[int, Terms]] = field(default_factory=dict)  # by batch, those that have not ended

    def __post_init__(self) -> None:
        if self.file.exists():
            self._sum = {int(step): terms for step, terms in json.loads(self.file.read_text()).items()}

    def take(self, told: str, *, ended: int) -> None:
        """What the JVM told since it was last asked: {batch: {step: {term: rows}}}. `ended`: the last that has."""
        for batch, steps in json.loads(told).items():
            for step, terms in steps.items():
                _add(self._open.setdefault(int(batch), {}), int(step), terms)
        for batch in sorted(batch for batch in self._open if batch <= ended):
            for step, terms in self._open.pop(batch).items():
                _add(self._sum, step, terms)
        written = self.file.with_suffix(".new")
        written.write_text(json.dumps(self._sum))
        written.replace(self.file)

    def forget_open(self) -> None:
        self._open.clear()

    def counts(self) -> tuple[Counts, ...]:
        """By step, in the order data walks them."""
        return tuple(
            Counts(step=step.name, **{_FIELDS.get(term, term): n for term, n in terms.items() if term not in _BESIDE})
            for step in self.flow.steps
            if (terms := self._sum.get(step.ordinal)) is not None
        )

    def state(self) -> tuple[StepState, ...]:
        """What each step that keeps something keeps. Of rows that windows have counted only the sums are kept."""
        return tuple(
            StepState(
                step=step.name,
                keys=terms["keys"],
                rows=0 if isinstance(step.node, Aggregated) else terms.get("held", 0),
                bytes=terms.get("bytes", 0),
            )
            for step in self.flow.steps
            if "keys" in (terms := self._sum.get(step.ordinal, {}))
        )


def _add(to: dict[int, Terms], step: int, terms: Terms) -> None:
    total = to.setdefault(step, {})
    for term, count in terms.items():
        total[term] = total.get(term, 0) + count
