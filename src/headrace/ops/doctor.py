"""The doctor: looks at everything Headrace stands on and says what is wrong, why, and how to fix it."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.base.duration import show
from headrace.base.errors import HeadraceError
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.topics import TopicInfo
from headrace.model.app import App
from headrace.observe.finding import Finding, Severity, fine, of_error
from headrace.observe.growth import grown
from headrace.ops import apps, endpoints, stack
from headrace.ops.fetch import CONNECT, NEEDED
from headrace.ops.run import growth_limits
from headrace.spark import archive
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.kernels import our_jars, sources
from headrace.spark.sizes import read_sizes
from headrace.stack import jars
from headrace.stack.java import find_java, version

OLDEST_PYTHON = (3, 11)
DISK_WARNING, DISK_ERROR = 2_000, 200
"""Megabytes: below the first a busy topic fills the disk in minutes, below the second parts do not start."""


def examine(settings: Settings, *, spark: bool = True) -> Iterator[Finding]:
    """Every check in turn, as findings; one that breaks is itself a finding, and the next goes on."""
    checks: list[tuple[str, Callable[[Settings], Iterator[Finding]]]] = [
        ("python", _python),
        ("java", _java),
        ("jars", _jars),
        ("disk", _disk),
        ("apps", _apps),
        ("stack", _stack),
        ("topics", _topics),
        ("state", _state),
    ]
    if spark:
        checks.append(("spark", _spark))
    for name, check in checks:
        try:
            yield from check(settings)
        except HeadraceError as broken:
            yield of_error(name, broken)


def _python(_: Settings) -> Iterator[Finding]:
    text = f"Python {platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield Finding(check="python", severity="error", what=f"{text} is too old", fix="use Python 3.11 or newer")
    else:
        yield fine("python", text)


def _java(_: Settings) -> Iterator[Finding]:
    java = find_java()
    yield fine("java", f"Java {version(java)} at {java}")


def _jars(settings: Settings) -> Iterator[Finding]:
    store = settings.cache / "ivy" / "jars"
    for group in (*NEEDED, *CONNECT):
        locked = jars.locked(group)
        missing = [jar for jar in locked if not (store / jar.file).exists()]
        optional = group in CONNECT
        if missing:
            yield Finding(
                check="jars",
                severity="note" if optional else "warning",
                what=f"{len(missing)} of {_many(len(locked), 'jar')} of {group} not fetched yet",
                why="they are needed for Kafka Connect only" if optional else "nothing was started here before",
                fix=f"`headrace fetch{' --connect' if optional else ''}`, or let the first start do it",
            )
            continue
        try:
            jars.verify(locked, store)
        except HeadraceError as broken:
            yield of_error("jars", broken)
        else:
            yield fine("jars", f"{_many(len(locked), 'jar')} of {group} as locked")
    if not sources():
        yield Finding(check="jars", severity="error", what="the Scala kernels are missing", fix="reinstall headrace")


def _disk(settings: Settings) -> Iterator[Finding]:
    for name, folder in (("data", settings.home), ("cache", settings.cache)):
        free = shutil.disk_usage(_existing(folder)).free // 1_000_000
        severity: Severity = "error" if free < DISK_ERROR else "warning" if free < DISK_WARNING else "fine"
        yield Finding(
            check="disk",
            severity=severity,
            what=f"{free:,} MB free for {name} in {folder}",
            why="" if severity == "fine" else "Kafka keeps every record for ever unless told otherwise (rule F3)",
            fix="" if severity == "fine" else "free some space, or move it: settings `home` and `cache`",
        )


def _existing(folder: Path) -> Path:
    return folder if folder.exists() else _existing(folder.parent)


def _apps(settings: Settings) -> Iterator[Finding]:
    for name in settings.apps:
        try:
            app = apps.find(name, settings)
        except HeadraceError as broken:
            yield of_error("apps", broken)
        else:
            yield fine(
                "apps", f"{name} declares {_many(len(app.topics), 'topic')}, {_many(len(app.outputs), 'output')}"
            )


def _stack(settings: Settings) -> Iterator[Finding]:
    for part in stack.status(settings):
        kind = "your own " if part.kind == "own" else ""
        log = f"its log: {part.log}" if part.log else "it left no log"
        if part.state == "running":
            memory = f", {part.memory_mb} MB" if part.memory_mb else ""
            yield fine("stack", f"{kind}{part.name} answers at {part.address}{memory}")
        elif part.state == "stopped":
            yield Finding(check="stack", severity="note", what=f"{part.name} is not running", fix="`headrace up`")
        elif part.state == "dead":
            yield Finding(
                check="stack",
                severity="error",
                what=f"{part.name} ended without being asked to",
                why=f"its pid is stale; {log}",
                fix="`headrace up` heals it and starts it again",
            )
        else:
            yield Finding(
                check="stack",
                severity="error",
                what=f"{kind}{part.name} {stack.SAYS[part.state]} at {part.address}",
                why=part.trouble,
                fix=stack.own_fix(part) if kind else f"`headrace down && headrace up`; {log}",
            )


def _topics(settings: Settings) -> Iterator[Finding]:
    """Rule F3 on topics that others made: kept for ever unless declared, and any record time accepted."""
    parts = [part for part in stack.status(settings) if part.name.startswith("kafka")]
    if not any(part.state == "running" for part in parts):
        return
    declared = {topic.name: topic for app in _loadable(settings) for topic in app.topics}
    found = topics.listing(endpoints.broker(settings))
    for info in found:
        chosen = declared[info.name].retention if info.name in declared else None
        yield from _topic(info, declared_retention=chosen is not None)
    yield fine("topics", f"{_many(len(found), 'topic')} looked at")


def _topic(info: TopicInfo, *, declared_retention: bool) -> Iterator[Finding]:
    if not info.any_time:
        yield Finding(
            check="topics",
            severity="warning",
            what=f"topic {info.name} refuses records dated in the future",
            why="its message.timestamp.after.max.ms is limited: such a record fails at its producer instead of "
            "reaching dead letters (rule F3)",
            fix=f"set message.timestamp.after.max.ms={topics.ANY_TIME} on it",
        )
    if info.retention is not None and not declared_retention:
        yield Finding(
            check="topics",
            severity="warning",
            what=f"topic {info.name} forgets records after {show(info.retention)}",
            why="a replay reaches back no further, and a reader that is slower loses records",
            fix="set retention.ms=-1 on it, or declare retention= in the app if that is meant",
        )


def _state(settings: Settings) -> Iterator[Finding]:
    limits = growth_limits(settings)
    for folder in sorted((settings.home / "state").glob("*/*/*")):
        flow, sizes = "/".join(folder.parts[-3:]), read_sizes(Checkpoint(folder=folder).sizes_file)
        if words := grown(sizes, limits):
            yield Finding(
                check="state",
                severity="warning",
                what=f"{flow}: {words}",
                where=str(folder),
                why="state that grows without end fills memory and disk, and makes every batch slower",
                fix="`headrace explain` says what bounds each step; `state.growth_*` set what is worth a word",
            )
        elif sizes:
            yield fine("state", f"{flow} keeps {sizes[-1].keys:,} keys and {sizes[-1].rows:,} rows")


def _loadable(settings: Settings) -> Iterator[App]:
    for name in settings.apps:
        try:
            yield apps.find(name, settings)
        except HeadraceError:  # `_apps` has said so
            continue


def _spark(settings: Settings) -> Iterator[Finding]:
    from headrace.spark.session import probe, start

    with start(settings, profile="test", app_name="doctor") as session:
        took = probe(session)
        yield fine("spark", f"Spark answered a query through a Python worker in {took.total_seconds():.1f} s")
    yield _rehearsal(settings.cache, our_jars(settings.cache))


def _rehearsal(cache: Path, classpath: list[Path]) -> Finding:
    if archive.options(cache, classpath):
        return fine("rehearsal", "Java knows what will be busy")
    java, fix = version(find_java()) or 0, "`headrace fetch`, two minutes"
    why, refused = archive.refusal(cache, classpath)
    if why:
        fix = f"remove {refused}, then {fix}"
    elif java < archive.LEARNS:
        why, fix = f"Java {java} learns nothing; {archive.LEARNS} and newer do", f"unset HEADRACE_JAVA, then {fix}"
    what = "there was no rehearsal: drivers start slowly, and are slow for a minute"
    return Finding(check="rehearsal", severity="note", what=what, why=why, fix=fix)


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
