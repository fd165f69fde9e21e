"""What went wrong on a disk, in our words: it is full, it is not ours to write, or it fails."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from headrace.base.errors import DiskFull, HeadraceError, StoreRefused, StoreUnreachable

_NUMBER = re.compile(r"\(os error (\d+)\)")  # as Rust writes it


def told(failed: Exception, label: str, folder: Path, setting: str) -> HeadraceError:
    """An error of Python, Arrow or Delta, met while `label` was written to `folder`, which `setting` chooses."""
    why = f"{folder}: {' '.join(str(failed).split())}"
    number = _number(failed)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"{label} cannot be written: the disk is full",
            why=why,
            fix="free some space and start the flow again; it goes on where it was, and nothing is there by half",
        )
    if number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
        return StoreRefused(
            f"{label} cannot be written",
            why=why,
            fix=f"give the user of this process the right to write there, or set {setting}",
        )
    return StoreUnreachable(
        f"{label} failed", why=why, fix="correct what it says; the batch is not lost, and written then"
    )


def _number(failed: Exception) -> int | None:
    if isinstance(failed, OSError) and failed.errno is not None:
        return failed.errno
    found = _NUMBER.search(str(failed))
    return int(found[1]) if found else None
