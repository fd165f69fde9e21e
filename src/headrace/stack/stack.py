"""The embedded stack as a whole: up, down, status, addresses."""

from __future__ import annotations

import fcntl
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil

from headrace.base.errors import BadSetting, PortBusy, StackBusy
from headrace.stack import failure, guard, jars, kafka, ports, process, tie
from headrace.stack.connect import Connect
from headrace.stack.jvm import Fetch
from headrace.stack.kafka import Cluster, Kafka
from headrace.stack.part import LOOPBACK, Part, Tell
from headrace.stack.postgres import Postgres
from headrace.stack.redis import Redis

ALL = ("kafka", "postgres", "redis", "connect")
USUAL = ("kafka", "postgres", "redis")
LEAST_DISK = 64_000_000  # bytes; what the empty servers write at their first start
_TRIES = 3  # with other ports, where one that was free is taken before its part listens
_PATIENCE = 120.0  # seconds to wait for another `up` or `down` on the same home directory


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where clients find the parts; "" for a part that does not run."""

    kafka: str  # host:port, several separated by commas
    postgres: str = field(repr=False)  # postgresql://user:password@host:port/database
    redis: str = field(repr=False)  # redis://:password@host:port/0
    connect: str = ""  # http://host:port


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One line of `headrace status`."""

    name: str
    state: str  # "running", "stopped" (by us, or never started), "dead" (ended by itself or killed)
    pid: int | None
    address: str
    rss_bytes: int
    log: Path
    uptime: timedelta | None


def up(
    home: Path,
    cache: Path,
    *,
    brokers: int = 1,
    patience: timedelta = kafka.PATIENCE,
    parts: Sequence[str] = USUAL,
    foreground: bool = False,
    fixed_ports: Mapping[str, int] | None = None,
    door: int = 0,
    tell: Tell = jars.silent,
    progress: jars.Progress | None = None,
) -> Addresses:
    """Starts the parts that do not run yet, all at once, and returns when every one has answered.

    `foreground` ties what this call starts to this process: it ends when the process ends, even by kill -9. Parts that
    ran before stay as they are. `fixed_ports` are by name of the part; the others are found and remembered. `door` is a
    port in front of a lone broker, to which it sends its clients. If one part fails, those that this call started are
    stopped again. `patience` is with a lone broker (kafka.PATIENCE).
    """
    unknown = set(parts) - set(ALL)
    if unknown:
        raise BadSetting(f"there is no part {min(unknown)!r}", fix=f"the parts are {', '.join(ALL)}")
    home = home.absolute()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(home, tell):
        process.reap()
        with_kafka = not {"kafka", "connect"}.isdisjoint(parts)  # Connect is nothing without brokers
        cluster = kafka.cluster(home, brokers) if with_kafka else None
        names = [*(cluster.names if cluster else []), *(part for part in parts if part != "kafka")]
        missing = set(names) - _alive(home)
        if missing and shutil.disk_usage(home).free < LEAST_DISK:
            raise failure.disk_full(home, f"{', '.join(sorted(missing))} cannot be started")
        owner = tie.tie(home) if foreground and missing else ""
        for tries_left in reversed(range(_TRIES)):
            chosen = _choose_ports(home, cluster, missing, fixed_ports or {}, tell)
            fetch = partial(jars.fetch, cache=cache, tell=tell, progress=progress)
            made = _make(home, parts, cluster, chosen, door, patience, fetch)
            try:
                _start(process.Supervisor(owner=owner, cancelled=threading.Event(), tell=tell), made)
                break
            except PortBusy as taken:  # between our look and the part's start, by another stack that starts just now
                if not tries_left:
                    raise
                tell(f"{taken.what}, {taken.why}: trying another")
        return _addresses(home, cluster, _alive(home))


def down(home: Path, *, tell: Tell = jars.silent) -> list[str]:
    """Stops every part, in parallel; returns the names of those that ran."""
    home = home.absolute()
    if not home.exists():
        return []
    with _alone(home, tell):
        notes = guard.notes(home)
        running = [name for name, note in notes.items() if note.alive]
        if running:
            tell(f"stopping {', '.join(running)}")
        guard.end(list(notes.values()))
        for name in notes:
            (home / name / guard.NOTE).unlink(missing_ok=True)
        tie.untie(home)
        process.reap()
        return running


def status(home: Path) -> list[PartStatus]:
    """Every part of this home directory, running or not."""
    home = home.absolute()
    process.reap()
    notes, known = guard.notes(home), ports.remembered(home)
    cluster = kafka.known(home)
    names = [*(cluster.names if cluster else ["kafka"]), "postgres", "redis"]
    if (home / "connect").exists():
        names.append("connect")
    return [_status(home, name, notes.get(name), known.get(name)) for name in names]


def addresses(home: Path) -> Addresses | None:
    """Where the running parts are; None if none of them runs."""
    home = home.absolute()
    alive = _alive(home)
    return _addresses(home, kafka.known(home), alive) if alive else None


def _alive(home: Path) -> set[str]:
    return {name for name, note in guard.notes(home).items() if note.alive}


def _choose_ports(
    home: Path, cluster: Cluster | None, missing: Collection[str], fixed: Mapping[str, int], tell: Tell
) -> dict[str, int]:
    names = cluster.names if cluster else []
    brokers = [name for name in names if name in missing]
    if len(brokers) < len(names):
        # The brokers that run were told where the controllers of the others are.
        known = ports.remembered(home)
        fixed = {kafka.controller(name): known[kafka.controller(name)] for name in brokers} | dict(fixed)
    return ports.choose(home, [*sorted(missing), *map(kafka.controller, brokers)], fixed, tell)


def _make(
    home: Path,
    parts: Collection[str],
    cluster: Cluster | None,
    known: Mapping[str, int],
    door: int,
    patience: timedelta,
    fetch: Fetch,
) -> list[Part]:
    made: list[Part] = []
    if "postgres" in parts:
        made.append(Postgres(name="postgres", home=home / "postgres", ports={"postgres": known["postgres"]}))
    if "redis" in parts:
        made.append(Redis(name="redis", home=home / "redis", ports={"redis": known["redis"]}))
    if cluster is None:
        return made
    controllers = tuple(known[kafka.controller(name)] for name in cluster.names)
    for node, name in enumerate(cluster.names, 1):
        own = {port: known[port] for port in (name, kafka.controller(name))}
        made.append(
            Kafka(
                name=name,
                home=home / name,
                ports=own,
                node=node,
                cluster=cluster,
                controllers=controllers,
                fetch=fetch,
                door=door,
                patience=patience,
            )
        )
    if "connect" in parts:
        made.append(
            Connect(
                name="connect",
                home=home / "connect",
                ports={"connect": known["connect"]},
                brokers=",".join(f"{LOOPBACK}:{known[name]}" for name in cluster.names),
                copies=cluster.brokers,
                fetch=fetch,
            )
        )
    return made


def _start(supervisor: process.Supervisor, parts: Sequence[Part]) -> None:
    """All at once; Connect after the brokers it needs. On failure nothing stays that was started here."""
    started: list[Part] = []
    try:
        for wave in ([p for p in parts if p.name != "connect"], [p for p in parts if p.name == "connect"]):
            if wave:
                _start_wave(supervisor, wave, started.append)
    except BaseException:
        ours = [note for part in started if (note := guard.read(part.home)) is not None]
        guard.end(ours)
        for part in started:
            (part.home / guard.NOTE).unlink(missing_ok=True)
        raise


def _start_wave(supervisor: process.Supervisor, wave: Sequence[Part], started: Callable[[Part], None]) -> None:
    def start(part: Part) -> None:
        if supervisor.up(part):
            started(part)

    with ThreadPoolExecutor(len(wave)) as pool:
        jobs = [pool.submit(start, part) for part in wave]
        try:
            for job in as_completed(jobs):
                job.result()
        except BaseException:
            supervisor.cancelled.set()  # the other threads give up; leaving the block waits for them
            raise


def _addresses(home: Path, cluster: Cluster | None, alive: set[str]) -> Addresses:
    known = ports.remembered(home)
    brokers = cluster.names if cluster and not alive.isdisjoint(cluster.names) else []
    return Addresses(
        kafka=",".join(f"{LOOPBACK}:{known[name]}" for name in brokers),
        postgres=Postgres(name="postgres", home=home / "postgres", ports=known).url if "postgres" in alive else "",
        redis=Redis(name="redis", home=home / "redis", ports=known).url if "redis" in alive else "",
        connect=f"http://{LOOPBACK}:{known['connect']}" if "connect" in alive else "",
    )


def _status(home: Path, name: str, note: guard.Note | None, port: int | None) -> PartStatus:
    log = home / name / f"{name}.log"
    address = f"{LOOPBACK}:{port}" if port else ""
    try:
        if note is not None and note.alive:
            server = psutil.Process(note.pid)
            age = timedelta(seconds=round(time.time() - server.create_time(), 1))
            return PartStatus(name, "running", note.pid, address, _rss(server), log, age)
    except psutil.NoSuchProcess:
        pass  # ended between two looks
    return PartStatus(name, "dead" if note is not None else "stopped", None, address, 0, log, None)


def _rss(server: psutil.Process) -> int:
    total = 0
    for one in (server, *server.children(recursive=True)):
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


@contextmanager
def _alone(home: Path, tell: Tell) -> Iterator[None]:
    """One `up` or `down` at a time on a home directory. The system drops the lock of a process that dies."""
    with (home / "lock").open("a") as file:
        deadline = time.monotonic() + _PATIENCE
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StackBusy(
                        f"another `up` or `down` is at work in {home}",
                        why=f"it has held {home / 'lock'} for {_PATIENCE:.0f} s",
                        fix="wait for it, or stop that process",
                    ) from None
            if not waiting:
                tell("another `up` or `down` is at work here: waiting for it")
                waiting = True
            time.sleep(0.05)
        yield
