"""The verdict on a run: what each fault cost, what each checker found."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil

from headrace.chaos.check import Finding
from headrace.chaos.schedule import Planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffered:
    """A fault that was, since when the system could recover from it, and the seconds to the first commit after that;
    None if none came."""

    planned: Planned
    since: float
    about: str
    recovery: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All that a run has shown."""

    seed: int
    seconds: float
    transfers: int
    suffered: tuple[Suffered, ...]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    """What went otherwise than planned and is no violation: a driver that ended by itself, a fault that was skipped."""

    @property
    def sound(self) -> bool:
        return all(finding.sound for finding in self.findings)

    @property
    def faults(self) -> list[dict[str, Any]]:
        """A row for each kind of fault."""
        by_name: dict[str, list[Suffered]] = {}
        for one in self.suffered:
            by_name.setdefault(one.planned.fault.name, []).append(one)
        return [_row(name, those) for name, those in sorted(by_name.items())]

    @property
    def checks(self) -> list[dict[str, Any]]:
        """A row for each checker."""
        return [
            {
                "checker": finding.checker,
                "compared": finding.compared,
                "wrong": finding.wrong,
                "verdict": "sound" if finding.sound else "VIOLATED",
                "for example": "; ".join(finding.examples),
            }
            for finding in self.findings
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "sound": self.sound,
            "seconds": round(self.seconds),
            "transfers": self.transfers,
            "machine": machine(),
            "faults": self.faults,
            "checks": self.checks,
            "remarks": list(self.remarks),
        }


def machine() -> str:
    memory = psutil.virtual_memory().total / (1 << 30)
    return f"{psutil.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


def _row(name: str, those: Sequence[Suffered]) -> dict[str, Any]:
    took = [one.recovery for one in those if one.recovery is not None]
    target = those[0].planned.fault.target
    return {
        "fault": name,
        "count": len(those),
        "recovery_p50_s": round(median(took), 1) if took else None,
        "recovery_max_s": round(max(took), 1) if took else None,
        "target_s": target,
        "over_target": sum(one.recovery is None or one.recovery > target for one in those),
    }
