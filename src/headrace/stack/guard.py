"""The side of supervision that lives outside our process: becoming a part, knowing it again, ending it, guarding a run.

This file is imported as a module and also run as a script, `python -I -S guard.py become|watch ...`: standard library
only, and little of it, so that a start costs 20 ms.

A *note* is the small file `<part>/pid` in the home directory. The part writes it itself, before it turns into the real
server: there is no instant at which a server runs that nobody could find again, whoever is killed meanwhile.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

NOTE = "pid"
GRACE = 2.2  # seconds between the polite signal and SIGKILL; `down` promises 3 in all

# From the headers of Linux.
_CAP_DAC_OVERRIDE, _CAPABILITY_VERSION = 1, 0x20080522
_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP = 28, 4
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2


class Note(NamedTuple):
    """Which process a part is: pid and birth together, since pids are used again."""

    pid: int
    birth: str
    owner: str  # the foreground run that this part must not outlive; "" for a stack that stays
    stop: int  # the signal that asks it to end

    @property
    def alive(self) -> bool:
        return birth(self.pid) == self.birth


def birth(pid: int) -> str | None:
    """Tells a process from an earlier or later one with the same pid; None if there is none, or only a zombie."""
    if not sys.platform.startswith("linux"):
        return _birth_by_ps(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold spaces and brackets
    state, threads, started = fields[0], int(fields[17]), fields[19]
    # The first thread of a killed server is a zombie already while others still hold its ports and its lock.
    return None if state in "ZX" and threads <= 1 else f"{boot}/{started}"


def _birth_by_ps(pid: int) -> str | None:
    import subprocess

    found = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = found.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def read(part: Path) -> Note | None:
    """The note in a part's directory; None if there is none that can be read."""
    try:
        return Note(**json.loads((part / NOTE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def notes(home: Path) -> dict[str, Note]:
    """All notes under a home directory by name of the part, of the living and the dead."""
    found = {file.parent.name: read(file.parent) for file in home.glob(f"*/{NOTE}")}
    return {name: note for name, note in sorted(found.items()) if note is not None}


def end(those: list[Note], grace: float = GRACE) -> None:
    """Ends processes: asks all at once, waits, then kills with their groups. Returns when none is left."""
    for note in those:
        if note.alive:
            os.kill(note.pid, note.stop)
    if _gone(those, grace):
        return
    for note in those:
        if note.alive:
            os.killpg(note.pid, signal.SIGKILL)
    _gone(those, grace)


def _gone(those: list[Note], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while any(note.alive for note in those):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def become(part: Path, owner: str, stop: int, user: str, command: list[str]) -> None:
    """Writes the note, gives up root where asked, and turns into the real server (same pid)."""
    pid = os.getpid()
    draft = part / f"{NOTE}.new"
    draft.write_text(json.dumps(Note(pid, birth(pid) or "", owner, stop)._asdict()))
    draft.replace(part / NOTE)
    if user:
        _drop_root(user)
    os.execvp(command[0], command)  # noqa: S606  # becoming it is the point


def _drop_root(user: str) -> None:
    """Goes on as `user`, but keeps root's right to pass through directories.

    PostgreSQL refuses to run as root. Its binaries and its data may lie below directories that only root can enter
    (/root); opening those to everybody would be worse than letting one process of root's through.
    """
    import ctypes
    import pwd
    import struct

    entry = pwd.getpwnam(user)
    libc = ctypes.CDLL(None)
    linux = sys.platform.startswith("linux")
    if linux:
        # Capabilities stay over the change of user, and access(2), by which PostgreSQL finds its files, counts them.
        libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    if linux:  # of all capabilities kept so far keep one, and hand it on over exec
        mask = 1 << _CAP_DAC_OVERRIDE
        libc.capset(struct.pack("Ii", _CAPABILITY_VERSION, 0), struct.pack("6I", mask, mask, mask, 0, 0, 0))
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)


def watch(home: Path, owner: str, parent: int) -> None:
    """Waits for the end of a foreground run, however it comes, then ends the parts that belong to it.

    The run holds the other end of our stdin. It is asked for by pid as well, because a child that the run forked
    holds the pipe open too.
    """
    while os.getppid() == parent and not select.select([sys.stdin], [], [], 0.5)[0]:
        pass
    while ours := [note for note in notes(home).values() if note.owner == owner and note.alive]:
        end(ours)
        time.sleep(0.1)  # look again: a part that was just being started writes its note within this time


if __name__ == "__main__":
    verb, place, of, number, *rest = sys.argv[1:]
    if verb == "become":
        become(Path(place), of, int(number), rest[0], rest[1:])
    else:
        watch(Path(place), of, int(number))
