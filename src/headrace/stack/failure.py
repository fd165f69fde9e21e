"""Why a part did not come up, told from its log, its ports and its disk."""

from __future__ import annotations

import errno
import re
import shutil
import signal
from pathlib import Path

from headrace.base.errors import CorruptData, DiskFull, HeadraceError, PartFailed
from headrace.stack import ports
from headrace.stack.part import Part

_FULL = ("No space left on device", "Disk quota exceeded")
_BUSY = ("Address already in use", "Address in use")
_LEAST = 1 << 20  # with less than this the log itself could not say that the disk is full
_LINES = 6
_DAMAGED = "damaged"
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ more)")  # of a Java stack trace: for the log file, not for people


def of_exit(part: Part, log: str, code: int) -> HeadraceError:
    """The error for a part that ended instead of answering; `log` is what it said since its start."""
    if any(mark in log for mark in _FULL) or _is_full(part.home):
        return disk_full(part.home, f"{part.name} could not start")
    if any(mark in log for mark in _BUSY):
        for name, port in part.ports.items():
            if not ports.free(port):
                return ports.busy(name, port)
    said = [line for line in log.splitlines() if any(mark in line for mark in part.corrupt)]
    if said:
        return corrupt(part, _last("\n".join(said[:2])))
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return PartFailed(f"{part.name} ended while starting ({how})", why=_last(log), fix=f"the whole log: {part.log}")


def of_alarm(part: Part, log: str) -> HeadraceError | None:
    """The error for a part that came up, but said in its log that it threw data away to do so.

    It is written down, because the next start would find nothing wrong any more and go on without what is lost.
    """
    said = [line.strip() for line in log.splitlines() if part.alarm and re.search(part.alarm, line)]
    if said:
        (part.home / _DAMAGED).write_text(said[0])
    return of_damage(part)


def of_damage(part: Part) -> HeadraceError | None:
    """The error that an alarm left behind, if there was one."""
    file = part.home / _DAMAGED
    return corrupt(part, file.read_text(), f"; to go on with what is left, delete {file}") if file.exists() else None


def of_silence(part: Part, log: str, seconds: float) -> HeadraceError:
    """The error for a part that runs but does not answer."""
    return PartFailed(
        f"{part.name} runs but did not answer within {seconds:.0f} s",
        why=_last(log),
        fix=f"the whole log: {part.log}; `headrace down` and `headrace up` start it anew",
    )


def of_os(part: Part, error: OSError) -> HeadraceError:
    """The error for a file or process operation of ours that the system refused."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(part.home, f"{part.name} could not start")
    return PartFailed(f"{part.name} could not be started", why=str(error), fix=f"check the rights on {part.home}")


def corrupt(part: Part, why: str, else_fix: str = "") -> HeadraceError:
    if _is_full(part.home):  # then what looks damaged was only never written
        return disk_full(part.home, f"{part.name} could not start")
    return CorruptData(
        f"the data of {part.name} cannot be used",
        why=why,
        fix=f"restore {part.home} from a copy, or move it away and start again with an empty one{else_fix}",
    )


def disk_full(place: Path, what: str) -> DiskFull:
    free = shutil.disk_usage(place).free / 1e6
    return DiskFull(f"{what}: the disk is full", why=f"{free:.1f} MB are left at {place}", fix="free some space there")


def _is_full(place: Path) -> bool:
    return shutil.disk_usage(place).free < _LEAST


def _last(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip() and not _FRAME.match(line)]
    return "\n         ".join(lines[-_LINES:]) or "it left nothing in its log"
