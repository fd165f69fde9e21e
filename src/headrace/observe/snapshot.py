"""A running flow at one moment: where time stands, who holds it back, and where every row went (rule D3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

TERMS = ("in", "used", "filtered", "late", "dead", "duplicates", "held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows of one step since its state began: `entered` + held before = the others + `held` now."""

    step: str
    entered: int = 0
    used: int = 0
    filtered: int = 0
    late: int = 0
    dead: int = 0
    duplicates: int = 0
    held: int = 0

    @property
    def missing(self) -> int:
        """Rows that went nowhere; anything but 0 is a fault of Headrace."""
        return self.entered - (self.used + self.filtered + self.late + self.dead + self.duplicates + self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """What a step keeps: keys, rows that wait, and the bytes of its keys' values (what joins of views keep in pieces
    beside them is not in it)."""

    step: str
    keys: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """What a step decides by: places and versions as decisions name them, "" where nothing stands. `refused`: records
    that were no policies for its rows, and `error` why the last of them was not."""

    policy: str
    seen: str = ""
    rules_version: str = ""
    model_version: str = ""
    shadow: str = ""
    refused: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    """How far a partition was read."""

    topic: str
    partition: int
    offset: int
    behind: int
    frontier: datetime | None
    idle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSnapshot:
    """One flow after a batch."""

    app: str
    version: str
    flow: str
    twin: int = 1
    mode: str
    state: str  # "starting" | "running" | "waiting" | "restarting" | "stopped" | "failed"
    batch: int = -1
    rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    watermark: datetime | None = None
    partitions: tuple[PartitionSnapshot, ...] = ()
    counts: tuple[Counts, ...] = ()
    kept: tuple[StepState, ...] = ()
    state_bytes: int = 0  # memory and disk that the state stores use
    policies: tuple[PolicyState, ...] = ()
    growth: str = ""  # "": as it should be
    restarts: int = 0
    error: str = ""
    since: datetime | None = None  # no batch has ended since: it waits, or is started again and again
    next_try: datetime | None = None
    at: datetime | None = None

    @property
    def name(self) -> str:
        """The flow, and which of its twins."""
        return twin_name(self.flow, self.twin)

    @property
    def state_keys(self) -> int:
        """Keys that have state, over all steps."""
        return sum(step.keys for step in self.kept)

    @property
    def slowest(self) -> PartitionSnapshot | None:
        """The partition that holds the watermark: the least frontier of those that are not idle."""
        awake = [(p.frontier, n, p) for n, p in enumerate(self.partitions) if not p.idle and p.frontier is not None]
        return min(awake)[2] if awake else None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"state_keys": self.state_keys}


def twin_name(flow: str, twin: int) -> str:
    """A flow's own name for the first twin, which most are the only one of; `payments~2` for the second."""
    return flow if twin == 1 else f"{flow}~{twin}"


@dataclass(slots=True)
class Board:
    """The latest snapshot of every flow of a run, for whoever wants to look."""

    flows: dict[str, FlowSnapshot] = field(default_factory=dict)

    def put(self, snapshot: FlowSnapshot) -> None:
        self.flows[snapshot.name] = snapshot
