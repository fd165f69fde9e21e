"""A checkpoint as shown: whose it is, how far it came, what state it keeps, and who uses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far a partition of a topic was read and committed; `end`: where it ends now, if a broker could be asked."""

    topic: str
    partition: int
    offset: int
    end: int | None = None

    @property
    def behind(self) -> int | None:
        return None if self.end is None else max(0, self.end - self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState:
    """What a stateful operator keeps. A start reads the snapshot (0: none yet) and the changes up to `version`."""

    operator: int
    partitions: int
    bytes: int
    files: int
    version: int
    snapshot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointView:
    """One flow's checkpoint. -1: no batch yet. `same_plan` is None where the app's declaration is not at hand."""

    app: str
    version: str
    flow: str
    folder: Path
    driver: int | None
    """The process that runs from it."""
    plan_made: datetime | None
    same_plan: bool | None
    planned: int = -1
    committed: int = -1
    watermark: datetime | None = None
    reached: tuple[Reached, ...] = ()
    state: tuple[OperatorState, ...] = ()
    keys: dict[str, int] = field(default_factory=dict)
    """Keys that have state, by step."""
    trouble: str = ""
    """Why not all of it could be read."""
