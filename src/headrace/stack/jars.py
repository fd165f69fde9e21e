"""The jars of the embedded parts: locked by SHA-256, fetched once per user, verified at each start.

`python -m headrace.stack.jars` resolves `ROOTS` anew and rewrites `jars.lock` beside this file.
Each line of the lock is: group organisation:module:version sha256 size.
"""

from __future__ import annotations

import fcntl
import hashlib
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.base.errors import ChecksumMismatch, DiskFull, DownloadInterrupted, UsageError
from headrace.stack import ivy

LOCK = Path(__file__).with_name("jars.lock")
_LOG4J = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"  # Kafka speaks slf4j 1.7: not `-slf4j2-`
ROOTS: dict[str, tuple[str, ...]] = {
    "kafka": ("org.apache.kafka:kafka_2.13:4.3.0", _LOG4J),
    "connect": ("org.apache.kafka:connect-runtime:4.3.0", _LOG4J),
    "debezium": ("io.debezium:debezium-connector-postgres:3.6.3.Final",),
    "spark": ("org.apache.kafka:kafka-clients:4.3.0",),
}
_ALONE = {"spark"}  # what kafka-clients needs (compression, slf4j) is already among Spark's own jars

Tell = Callable[[str], None]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One line of the lock."""

    group: str
    coordinate: str
    sha256: str
    size: int

    @property
    def file(self) -> str:
        _, module, version = self.coordinate.split(":")
        return f"{module}-{version}.jar"

    def __str__(self) -> str:
        return f"{self.group} {self.coordinate} {self.sha256} {self.size}"


def locked(group: str, lock: Path = LOCK) -> list[Jar]:
    """The jars of a group, as the lock has them."""
    lines = (line.split() for line in lock.read_text().splitlines())
    jars = [Jar(group=g, coordinate=c, sha256=s, size=int(n)) for g, c, s, n in lines if g == group]
    if not jars:
        raise UsageError(f"there is no group of jars {group!r}", fix=f"one of: {', '.join(ROOTS)}")
    return jars


def silent(_text: str) -> None:
    """Says nothing: the default where a caller may listen."""


def fetch(
    group: str, cache: Path, *, tell: Tell = silent, progress: Progress | None = None, lock: Path = LOCK
) -> list[Path]:
    """All jars of a group, verified; those not yet in the cache are downloaded.

    `progress(bytes so far, bytes in all, "3 of 46 jars")` is called a few times a second while a download runs.
    With every jar in place nothing but the disk is touched.
    """
    jars = locked(group, lock)
    store = cache / "ivy" / "jars"
    store.mkdir(parents=True, exist_ok=True)
    if _missing(jars, store):
        with _alone(store) as hold:
            if missing := _missing(jars, store):  # another process may have fetched them while we waited
                size = sum(jar.size for jar in missing) / 1e6
                tell(f"fetching {len(missing)} jars of {group} ({size:.0f} MB) into {store}")
                _download(missing, store, hold, progress)
    return verify(jars, store)


def verify(jars: Iterable[Jar], store: Path) -> list[Path]:
    """The files of these jars, each one hashed: a changed byte is an error, not a surprise at run time."""
    return [_verified(jar, store) for jar in jars]  # 45 MB in 34 ms: threads would save 12 of them


def _verified(jar: Jar, store: Path) -> Path:
    file = store / jar.file
    found = _sha256(file)
    if found != jar.sha256:
        raise ChecksumMismatch(
            f"{file} is not the jar that Headrace was built with",
            why=f"SHA-256 expected {jar.sha256}, found {found}: damaged on disk or on the way, or tampered with",
            fix=f"delete {file} and run again; if it comes back, do not trust where it is downloaded from",
        )
    return file


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _missing(jars: Iterable[Jar], store: Path) -> list[Jar]:
    return [jar for jar in jars if not (store / jar.file).exists()]


@contextmanager
def _alone(store: Path) -> Iterator[int]:
    """One download at a time per cache, over all processes."""
    with (store / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _download(missing: list[Jar], store: Path, hold: int, progress: Progress | None) -> None:
    with ivy.downloading([jar.coordinate for jar in missing], store.parent, hold=hold) as child:
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(child.stdout or ()), daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(timeout=0.2)
            if progress is not None:
                progress(*_so_far(missing, store))
    left = _missing(missing, store)
    if not left:
        return
    text = "".join(said)
    if "No space left on device" in text:
        raise DiskFull(f"no space left in {store}", why="the jars did not fit", fix="free some space and run again")
    trouble = [line.strip() for line in said if "access error" in line or "not found" in line]
    raise DownloadInterrupted(
        f"{len(left)} of {len(missing)} jars did not arrive, the first of them {left[0].file}",
        why=trouble[0] if trouble else "the download ended early",
        fix=f"check the network and run again: what arrived is kept; with a mirror, name its root in {ivy.MIRROR}",
    )


def _so_far(missing: list[Jar], store: Path) -> tuple[int, int, str]:
    done = [jar for jar in missing if (store / jar.file).exists()]
    parts = sum(part.stat().st_size for part in store.glob("*.part") if part.exists())
    arrived = min(sum(jar.size for jar in done) + parts, sum(jar.size for jar in missing))
    return arrived, sum(jar.size for jar in missing), f"{len(done)} of {len(missing)} jars"


def resolve_all() -> list[Jar]:
    """What the lock should hold, resolved now."""
    jars = []
    with tempfile.TemporaryDirectory(prefix="headrace-resolve-") as cache:
        for group, roots in ROOTS.items():
            for coordinate, file in sorted(ivy.resolve(roots, Path(cache)).items()):
                if group not in _ALONE or coordinate in roots:
                    jars.append(Jar(group=group, coordinate=coordinate, sha256=_sha256(file), size=file.stat().st_size))
    return jars


if __name__ == "__main__":
    LOCK.write_text("".join(f"{jar}\n" for jar in resolve_all()))
    sys.stderr.write(f"wrote {LOCK}\n")
