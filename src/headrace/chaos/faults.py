"""The faults: each hurts one part of the rig, and leaves it so that it can recover."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from headrace.chaos.driver import log
from headrace.chaos.rig import Rig
from headrace.chaos.traffic import CARDS

INSTANTS = {
    "before-rows": "before-rows",
    "after-rows": "after-rows",
    "before-stores": "before-stores",
    "after-postgres": "after-store/postgres:chaos_spend",
    "after-redis": "after-store/redis:chaos-balance:{account}",
    "after-lake": "after-store/lake:chaos_ledger",
    "after-token": "after-token",
    "after-commit": "after-commit",
}
"""Of a batch, in their order, and what jvm/Failpoint.scala calls them."""
_LONGEST = 180.0
"""Seconds for an armed instant to be reached, or a driver to end."""


class Hurt(NamedTuple):
    """What was done, and since when the system could recover (seconds of the run)."""

    since: float
    about: str


Inject = Callable[[Rig, random.Random], Hurt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of fault. `weight`: how often it comes; `target`: seconds to the first new commit that we promise;
    `alone`: the next fault waits until then. After lesser ones it does not, and so faults meet."""

    name: str
    inject: Inject
    weight: float = 4
    target: float = 20.0
    alone: bool = True


# -- kills


def kill_jvm(rig: Rig, _: random.Random) -> Hurt:
    """The JVM; the Python process notices, says so and ends."""
    since = rig.history.now
    jvm = rig.driver.jvm
    os.kill(jvm or rig.driver.process.pid, signal.SIGKILL)
    rig.until(lambda: not rig.driver.alive, _LONGEST)
    rig.restart_driver()
    return Hurt(since, f"jvm {jvm}")


def kill_driver(rig: Rig, _: random.Random) -> Hurt:
    """The Python process; the JVM notices and ends."""
    since, jvm = rig.history.now, rig.driver.jvm
    os.kill(rig.driver.process.pid, signal.SIGKILL)
    rig.driver.process.wait()
    gone = rig.until(lambda: jvm is None or not Path(f"/proc/{jvm}").exists(), _LONGEST)
    rig.start_driver()
    return Hurt(since, f"its jvm {jvm} {'ended' if gone else 'STAYED'}")


def kill_worker(rig: Rig, chance: random.Random) -> Hurt:
    """A Python worker in the middle of its rows, if there is one."""
    workers = rig.driver.workers
    since = rig.history.now
    if not workers:
        return Hurt(since, "there was none")
    pid = chance.choice(workers)
    os.kill(pid, signal.SIGKILL)
    return Hurt(since, f"worker {pid} of {len(workers)}")


def kills(part: str) -> Inject:
    """An embedded server; it is started again at once."""

    def inject(rig: Rig, _: random.Random) -> Hurt:
        since = rig.history.now
        rig.kill_part(part)
        rig.up()
        return Hurt(since, f"up again after {rig.history.now - since:.1f} s")

    return inject


# -- pauses


def pause_driver(rig: Rig, chance: random.Random) -> Hurt:
    seconds = chance.uniform(1, 4)
    rig.driver.signal(signal.SIGSTOP)
    time.sleep(seconds)
    rig.driver.signal(signal.SIGCONT)
    return Hurt(rig.history.now, f"{seconds:.1f} s")


def pauses(part: str, longest: float) -> Inject:
    """An embedded server and all its processes."""

    def inject(rig: Rig, chance: random.Random) -> Hurt:
        seconds, server = chance.uniform(1, longest), psutil.Process(rig.part(part).pid)
        stopped = [server, *server.children(recursive=True)]
        for process in stopped:
            process.suspend()
        time.sleep(seconds)
        for process in stopped:
            process.resume()
        return Hurt(rig.history.now, f"{seconds:.1f} s")

    return inject


def zombie(rig: Rig, _: random.Random) -> Hurt:
    """A driver stands still, a second takes over with a copy of its state, and the first comes back."""
    first, since = rig.driver, rig.history.now
    first.signal(signal.SIGSTOP)
    rig.start_driver(state_of=first)
    about = "nobody took over"
    if rig.until(lambda: rig.recovered(since), _LONGEST):
        first.signal(signal.SIGCONT)
        rig.until(lambda: not first.alive, _LONGEST)
        about = "fenced" if "[fenced]" in first.words() else f"not fenced: {first.words(400)}"
        rig.history.note("zombie", about, "ok" if about == "fenced" else "failed")
    first.kill()
    shutil.rmtree(first.home / "state")  # the copy stands by itself, as one on another machine does
    return Hurt(since, about)


# -- instants


def dies_at(instant: str) -> Inject:
    """The JVM halts at an instant of a batch."""

    def inject(rig: Rig, _: random.Random) -> Hurt:
        driver = rig.driver
        driver.arm(f"{instant}@0")
        reached = rig.until(lambda: not driver.alive, _LONGEST)
        since = rig.history.now
        rig.restart_driver()
        return Hurt(since, "reached" if reached else "not reached")

    return inject


def fails_at(instant: str) -> Inject:
    """The query fails at an instant of a batch, and its driver goes on."""

    def inject(rig: Rig, _: random.Random) -> Hurt:
        driver = rig.driver
        driver.arm(f"{instant}@0@throw")
        reached = rig.until(lambda: not driver.armed, _LONGEST)
        return Hurt(rig.history.now, "reached" if reached else "not reached")

    return inject


# -- the network


def cut(rig: Rig, _: random.Random) -> Hurt:
    count = rig.proxy.cut()
    return Hurt(rig.history.now, f"{count} connections")


def lose_answer(rig: Rig, _: random.Random) -> Hurt:
    """The broker commits, and nobody hears of it."""
    lost: list[float] = []
    rig.proxy.lose_commit(lambda: lost.append(rig.history.now))
    rig.until(lambda: lost, _LONGEST)
    return Hurt(lost[0] if lost else rig.history.now, "lost" if lost else "no commit came")


def lose_answer_and_die(rig: Rig, _: random.Random) -> Hurt:
    """The same, and who asked is dead before it can ask again: only the token knows."""
    driver, lost = rig.driver, list[float]()

    def die() -> None:
        lost.append(rig.history.now)
        driver.signal(signal.SIGKILL)

    rig.proxy.lose_commit(die)
    rig.until(lambda: lost, _LONGEST)
    rig.restart_driver()
    return Hurt(lost[0] if lost else rig.history.now, "lost" if lost else "no commit came")


# -- the disk


def full_disk(rig: Rig, chance: random.Random) -> Hurt:
    """The driver's disk is full for some seconds."""
    if not rig.disk:
        return Hurt(rig.history.now, "SKIPPED: only root can make a small disk")
    ballast, seconds = rig.home / "drivers" / "ballast", chance.uniform(2, 5)
    try:
        with ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        time.sleep(seconds)
    ballast.unlink()
    return Hurt(rig.history.now, f"{seconds:.1f} s")


def damaged(how: str) -> Inject:
    """A file of the checkpoint is torn or flipped while no driver runs. The next driver must say so, and then it is put
    back, or its results must be the same."""

    def inject(rig: Rig, chance: random.Random) -> Hurt:
        rig.driver.kill()
        files = sorted(file for file in rig.state.rglob("spark/**/*") if file.is_file() and file.stat().st_size)
        # The newest are read at a start; which of them, chance says.
        victim = chance.choice(sorted(files, key=lambda file: file.stat().st_mtime_ns)[-12:])
        sound = victim.read_bytes()
        place = chance.randrange(len(sound))
        flipped = bytes([sound[place] ^ 1 << chance.randrange(8)])
        victim.write_bytes(sound[:place] if how == "torn" else sound[:place] + flipped + sound[place + 1 :])
        since, before = rig.history.now, log(rig.driver.home).stat().st_size
        rig.start_driver()

        def loud() -> bool:
            with log(rig.driver.home).open("rb") as words:
                words.seek(before)
                return not rig.driver.alive or b"restarting: " in words.read()

        name = victim.relative_to(rig.state)
        flow = name.parts[2]  # app/version/flow: only this one reads the file
        rig.until(lambda: loud() or rig.recovered(since, flow), _LONGEST)
        about = f"{name} at {place}: "
        if not loud():
            return Hurt(since, f"{about}went on")
        rig.driver.kill()
        victim.write_bytes(sound)
        since = rig.history.now
        rig.start_driver()
        return Hurt(since, f"{about}said so")

    return inject


# -- the data


def poison(rig: Rig, chance: random.Random) -> Hurt:
    """Records that are no transfers: no JSON, a wrong type, nothing, too deep."""
    kinds = (b"", b"\xff\xfe", b"{", b"[]", b'{"transfer": "x"}', b"[" * 3000)
    rig.traffic.poison([chance.choice(kinds) for _ in range(chance.randrange(1, 20))])
    return Hurt(rig.history.now, "")


def future(rig: Rig, chance: random.Random) -> Hurt:
    rig.traffic.future(chance.randrange(1, 20))
    return Hurt(rig.history.now, "")


def hot_key(rig: Rig, chance: random.Random) -> Hurt:
    """Many transfers of one card."""
    count, card = chance.randrange(5_000, 20_000), f"card-{chance.randrange(CARDS)}"
    rig.traffic.burst(count, card=card)
    return Hurt(rig.history.now, f"{count:,} of {card}")


def backlog(rig: Rig, chance: random.Random) -> Hurt:
    """Many transfers at once."""
    count = chance.randrange(10_000, 40_000)
    rig.traffic.burst(count)
    return Hurt(rig.history.now, f"{count:,}")


FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(name="kill-jvm", inject=kill_jvm, weight=1),
        Fault(name="kill-driver", inject=kill_driver, weight=1),
        Fault(name="kill-worker", inject=kill_worker, alone=False),
        Fault(name="kill-broker", inject=kills("kafka"), target=10),
        Fault(name="kill-postgres", inject=kills("postgres"), target=6),
        Fault(name="kill-redis", inject=kills("redis"), target=2, alone=False),
        Fault(name="pause-driver", inject=pause_driver, target=10, alone=False),
        Fault(name="pause-broker", inject=pauses("kafka", 4), target=10, alone=False),
        Fault(name="pause-postgres", inject=pauses("postgres", 20), weight=2, target=10),
        Fault(name="pause-redis", inject=pauses("redis", 4), weight=2, target=10, alone=False),
        Fault(name="zombie", inject=zombie, weight=0.5),
        *(Fault(name=f"die-{name}", inject=dies_at(instant), weight=0.3) for name, instant in INSTANTS.items()),
        *(Fault(name=f"fail-{name}", inject=fails_at(instant), weight=1.5) for name, instant in INSTANTS.items()),
        Fault(name="cut", inject=cut, target=10, alone=False),
        Fault(name="lose-answer", inject=lose_answer, target=10),
        Fault(name="lose-answer-and-die", inject=lose_answer_and_die, weight=0.6),
        Fault(name="full-disk", inject=full_disk, weight=2),
        Fault(name="torn-file", inject=damaged("torn"), weight=0.3),
        Fault(name="flipped-file", inject=damaged("flipped"), weight=0.3),
        Fault(name="poison", inject=poison, target=10, alone=False),
        Fault(name="future", inject=future, target=10, alone=False),
        Fault(name="hot-key", inject=hot_key, target=10, alone=False),
        Fault(name="backlog", inject=backlog, target=10, alone=False),
    )
}
