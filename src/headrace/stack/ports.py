"""Loopback ports: found once, remembered in the home directory, and the name of whoever holds one that we wanted."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Collection, Mapping
from pathlib import Path

import psutil

from headrace.base.errors import PortBusy
from headrace.stack.part import LOOPBACK, Tell

# Below the range from which systems take the ports of outgoing connections: a stopped stack keeps its ports free.
_RANGE = range(20_000, 32_000)
_FILE = "ports.json"


def remembered(home: Path) -> dict[str, int]:
    """The ports of the last start by name ("kafka", "kafka.controller", "postgres", ...)."""
    try:
        return {str(name): int(port) for name, port in json.loads((home / _FILE).read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def choose(home: Path, names: Collection[str], fixed: Mapping[str, int], tell: Tell) -> dict[str, int]:
    """A free port for each name: the fixed one, else the remembered one, else a new one; remembers and returns all.

    Only names about to be started belong here: the port of a running part is rightly taken.
    """
    known = remembered(home)
    taken = set(known.values()) | set(fixed.values())
    for name in names:
        port = fixed.get(name) or known.get(name)
        if port is not None and not free(port):
            if name in fixed:
                raise busy(name, port)
            tell(f"port {port} of {name} is now held by {holder(port)}: {name} moves to another")
            port = None
        known[name] = port or _find(taken)
        taken.add(known[name])
    draft = home / f"{_FILE}.new"
    draft.write_text(json.dumps(known, indent=1) + "\n")
    draft.replace(home / _FILE)
    return known


def free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: connections of the last run that are still fading away do not matter, listeners do.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def holder(port: int) -> str:
    """The process that listens on a port, as people know it: name and pid."""
    try:
        listeners = [c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    except psutil.AccessDenied:
        return "a process that only root may see"
    for listener in listeners:
        if listener.laddr.port == port:
            if listener.pid is None:
                return "a process of another user"
            try:
                return f"{psutil.Process(listener.pid).name()} (pid {listener.pid})"
            except psutil.NoSuchProcess:
                break
    return "a process that is gone by now"


def busy(name: str, port: int) -> PortBusy:
    return PortBusy(
        f"{name} cannot listen on {LOOPBACK}:{port}",
        why=f"the port is held by {holder(port)}",
        fix=f"stop that process, or choose another port for {name}",
    )


def _find(taken: Collection[int]) -> int:
    for port in random.sample(_RANGE, len(_RANGE)):
        if port not in taken and free(port):
            return port
    raise PortBusy(
        f"no free port on {LOOPBACK}", why=f"every port from {_RANGE.start} to {_RANGE.stop} is taken", fix="free some"
    )
