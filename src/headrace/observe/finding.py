"""A finding: one thing that was looked at, how grave it is, where, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.base.errors import HeadraceError

Severity = Literal["fine", "note", "warning", "error"]
"""`note`: nothing is wrong, but you may want to know. `warning`: it works, and will hurt. `error`: it does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, and what was seen."""

    check: str
    severity: Severity
    what: str
    where: str = ""
    why: str = ""
    fix: str = ""


def fine(check: str, what: str) -> Finding:
    return Finding(check=check, severity="fine", what=what)


def of_error(check: str, error: HeadraceError) -> Finding:
    """An error as a finding: it has the same parts."""
    return Finding(check=check, severity="error", what=error.what, why=error.why, fix=error.fix)
