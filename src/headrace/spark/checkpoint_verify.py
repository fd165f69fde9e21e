"""Whether a checkpoint can be trusted: files as they were written, logs without gaps, every piece of state there.

Damage in what the next start reads is an error. Spark keeps a hundred batches back; damage in those is a warning:
nobody will read them, but the disk that did it may do more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from headrace.observe.finding import Finding, fine
from headrace.plan import text
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import (
    Committed,
    Planned,
    SparkFiles,
    Torn,
    read_committed,
    read_json,
    read_planned,
)
from headrace.spark.checkpoint_state import Chain, chains
from headrace.spark.checksum import check

NO_WAY_BACK = (
    "`headrace checkpoint repair` says whether it can be mended; else give the app a new version and replay history "
    "into it, or let `headrace run --fresh` begin anew"
)
_TOPIC_ID = re.compile(r"[A-Za-z0-9+/_-]{22}")
_TERMS = ("used", "filtered", "late", "dead", "duplicates", "held")
_SILENT = "a start that believed it would give other results, and nobody would know"

Bad = dict[Path, str]
T = TypeVar("T", Planned, Committed)


def verify(
    checkpoint: Checkpoint, *, declared: tuple[str, ...] | None = None, commits: str | None = None
) -> list[Finding]:
    """All that is wrong, and a word for what is well. `declared`: the plan as the app has it now; `commits`: the id of
    the topic of commits now, "" if there is none. None: nobody could be asked."""
    found = [*_plan(checkpoint, declared), *_counts(checkpoint), *_topic(checkpoint, commits)]
    files = SparkFiles(folder=checkpoint.spark)
    found += _spark(files) if files.planned() else [_note("batches", "no batch was planned yet")]
    for file in leftovers(checkpoint):
        what, why = f"{_short(file)} was left behind", "a driver was killed while it wrote; nobody reads it"
        found.append(_note("left", what, where=file, why=why, fix="`headrace checkpoint repair` sets it aside"))
    return found


# -- Headrace's own files


def _plan(checkpoint: Checkpoint, declared: tuple[str, ...] | None) -> Iterator[Finding]:
    file = checkpoint.plan_file
    if not file.exists():
        if checkpoint.spark.is_dir():
            yield _error("plan", "plan.txt is missing", file, "which plan the state belongs to is not known")
        return
    before = tuple(file.read_text(errors="replace").splitlines())
    if declared is None or before == declared:
        yield fine("plan", f"{len(before)} lines{'' if declared is None else ', as the app declares them'}")
        return
    yield Finding(
        check="plan",
        severity="warning",
        what="plan.txt is not what the app declares",
        where=str(file),
        why="the app was changed, or the file was; a run is refused:\n" + text.difference(before, declared),
        fix="declare it as before, or give the app a new version, or `headrace run --fresh`",
    )


def _counts(checkpoint: Checkpoint) -> Iterator[Finding]:
    file = checkpoint.counts_file
    if not file.exists():
        return
    why = "it says where every row went so far; results do not depend on it"
    try:
        steps = read_json(file)
        off = [step for step, terms in steps.items() if terms.get("in", 0) != sum(terms.get(t, 0) for t in _TERMS)]
    except (Torn, AttributeError, TypeError) as torn:
        fix = "`headrace checkpoint repair` sets it aside, and counting begins anew"
        yield _error("counts", f"counts.json cannot be read: {torn}", file, why, fix)
        return
    if off:
        what = f"counts.json does not balance for step {', '.join(off)} (rule D3)"
        yield Finding(check="counts", severity="warning", what=what, where=str(file), why=why)
    else:
        yield fine("counts", f"{len(steps)} steps, every row accounted for")


def _topic(checkpoint: Checkpoint, now: str | None) -> Iterator[Finding]:
    file = checkpoint.commits_file
    if not file.exists():
        return
    why = "it names the topic that says which batch was written last; a run stops with commits-lost"
    known = file.read_text(errors="replace")
    if not _TOPIC_ID.fullmatch(known):
        yield _error("commits", "commits.txt holds no id of a topic", file, why)
    elif now is not None and now != known:
        gone = "was deleted" if now == "" else f"has the id {now}"
        yield _error("commits", f"commits.txt names the topic {known}, and the topic of commits {gone}", file, why)


def leftovers(checkpoint: Checkpoint) -> list[Path]:
    """What a killed driver was about to write, checksums whose files are gone, and staged rows. Nobody reads them."""
    found = []
    for file in [*checkpoint.folder.glob("*"), *checkpoint.spark.rglob("*")]:
        name = file.name
        unfinished = file.suffix == ".new" or (name.startswith(".") and name.endswith((".tmp", ".tmp.crc")))
        owner = name.removesuffix(".crc").removeprefix("." if name.endswith(".sst.crc") else "")
        if file.is_file() and (unfinished or (name != owner and not file.with_name(owner).exists())):
            found.append(file)
    staged = checkpoint.staged
    return sorted(found) + (sorted(staged.iterdir()) if staged.is_dir() else [])


# -- Spark's files


def _spark(files: SparkFiles) -> Iterator[Finding]:
    bad, unchecked = _sums(files.folder)
    plans = _read(files.planned(), read_planned, bad)
    commits = _read(files.committed(), read_committed, bad)
    last, ended = max(files.planned()), max(files.committed(), default=-1)
    states = chains(files, commits, ended) if ended in commits else []
    needed = set(_small(files))
    needed |= {file for n, file in files.planned().items() if n >= last - 1}
    needed |= {file for n, file in files.committed().items() if n == ended}
    needed |= {file.file for chain in states for file in chain.files}
    wrong = [*_missing(files, bad), *_gaps(files, last, ended), *_stretches(files, plans)]
    for chain in states:
        wrong += _holes(chain)
        for table in _tables(chain, bad):
            needed.add(table)
            if not table.exists():
                wrong.append(_error("state", f"{_short(table)} is missing", table, "a snapshot is made of it"))
    yield from wrong
    for file, why in sorted(bad.items()):
        yield _damaged(file, why, needed=file in needed)
    if unchecked:
        why = "an older Headrace wrote them, or a driver was killed just then: a flipped byte in them may stay unseen"
        yield _note("sums", f"{unchecked} files have no checksum", why=why)
    if not wrong and not bad:
        again = "" if ended == last else f"; {last} is not committed yet, and runs again"
        yield fine("batches", f"{len(plans)} planned up to {last}, {len(commits)} committed{again}")
        yield fine("state", f"{sum(len(chain.files) for chain in states)} files of {len(states)} partitions, all whole")


def _sums(folder: Path) -> tuple[Bad, int]:
    """Files whose checksum differs, and how many have none."""
    files = [f for f in sorted(folder.rglob("*")) if f.is_file() and f.suffix not in (".crc", ".tmp")]
    states = {file: check(file) for file in files}
    bad = {file: "its checksum differs" for file, state in states.items() if state == "bad"}
    return bad, sum(state == "unchecked" for state in states.values())


def _read(entries: Mapping[int, Path], read: Callable[[Path], T], bad: Bad) -> dict[int, T]:
    """The entries of a log that are good; the others join the bad ones."""
    found = {}
    for number, file in entries.items():
        try:
            entry = read(file)
        except Torn as torn:
            bad.setdefault(file, str(torn))
        else:
            if file not in bad:
                found[number] = entry
    return found


def _small(files: SparkFiles) -> list[Path]:
    """The small files beside the logs that every start reads."""
    source = files.folder / "sources" / "0"
    found = [files.folder / "metadata", source / "start.json", source / "settled.json"]
    for operator in files.operators().values():
        found += [*operator.glob("_metadata/v2/*"), *operator.glob("_stateSchema/*/*")]
    return [file for file in found if file.suffix != ".crc"]


def _missing(files: SparkFiles, bad: Bad) -> Iterator[Finding]:
    for file in _small(files):
        if not file.exists():
            if file.name != "settled.json":  # the first batch writes it, when it ends
                yield _error("batches", f"{_short(file)} is missing", file, "every start reads it")
        elif file.suffix == ".json" or file.name == "metadata":
            try:
                read_json(file)
            except Torn as torn:
                bad.setdefault(file, str(torn))


def _gaps(files: SparkFiles, last: int, ended: int) -> Iterator[Finding]:
    for entries in (files.planned(), files.committed()):
        for before, after in pairwise(entries):
            if after != before + 1:
                what = f"{_short(entries[after])} does not follow {_short(entries[before])}: a batch is missing between"
                if after >= last:
                    yield _error("batches", what, entries[after], "Spark would go on from the wrong state")
                else:
                    yield _old(what, entries[after])
    if not last - 1 <= ended <= last:
        what = f"batch {last} was planned last, and {ended if ended >= 0 else 'none'} committed last"
        why = "at most one batch is unfinished at any time: an entry of one of the logs is gone"
        yield _error("batches", what, files.folder, why)


def _stretches(files: SparkFiles, plans: Mapping[int, Planned]) -> Iterator[Finding]:
    """Each batch reads on from where the one before it stopped."""
    for number, plan in plans.items():
        before = plans.get(number - 1)
        if before is None:
            continue
        off = [place for place, (start, _) in plan.reads.items() if before.reads.get(place, (0, start))[1] != start]
        if off:
            places = ", ".join(f"{topic}/{partition}" for topic, partition in off)
            file = files.planned()[number]
            what = f"{_short(file)} does not go on where batch {number - 1} ended: {places}"
            yield _error("batches", what, file, _SILENT)


def _holes(chain: Chain) -> Iterator[Finding]:
    if chain.missing:
        versions = ", ".join(map(str, sorted(chain.missing)))
        what = f"{_short(chain.folder)} has no file of version {versions}"
        yield _error("state", what, chain.folder, f"version {chain.version}, where a start goes on, is made of it")


def _tables(chain: Chain, bad: Bad) -> list[Path]:
    """The tables of a chain's snapshot; those of another size than it says are bad."""
    found = []
    for file in chain.files:
        try:
            tables = file.tables() if file.snapshot else []
        except Torn as torn:
            bad.setdefault(file.file, str(torn))
            continue
        for table, size in tables:
            found.append(table)
            if table.exists() and table.stat().st_size != size:
                bad.setdefault(table, f"it has {table.stat().st_size} bytes, and should have {size}")
    return found


# -- findings


def _damaged(file: Path, why: str, *, needed: bool) -> Finding:
    what = f"{_short(file)} is damaged: {why}"
    if needed:
        return _error("state" if "SSTs" in file.parts or file.suffix else "batches", what, file, _SILENT)
    return _old(what, file)


def _old(what: str, file: Path) -> Finding:
    why = "no start reads it any more, but what did it may do more"
    return Finding(check="old", severity="warning", what=what, where=str(file), why=why, fix="look at the disk")


def _error(check: str, what: str, where: Path, why: str, fix: str = NO_WAY_BACK) -> Finding:
    return Finding(check=check, severity="error", what=what, where=str(where), why=why, fix=fix)


def _note(check: str, what: str, *, where: Path | str = "", why: str = "", fix: str = "") -> Finding:
    return Finding(check=check, severity="note", what=what, where=str(where), why=why, fix=fix)


def _short(file: Path) -> str:
    """From Spark's folder on: offsets/7, state/0/1/12_....changelog."""
    parts = file.parts
    return "/".join(parts[len(parts) - parts[::-1].index("spark") :]) if "spark" in parts else file.name
