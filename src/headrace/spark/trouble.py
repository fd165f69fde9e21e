"""Spark's errors in Headrace's words: what happened, why, what to do; the trace goes to the log file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.base import errors
from headrace.base.errors import (
    CheckpointDamaged,
    FunctionFailed,
    HeadraceError,
    PortBusy,
    SparkFailed,
    SparkOutOfMemory,
    WorkerPythonMismatch,
)

# Our own Scala prefixes what it throws with the code of the Python error: [headrace:topic-missing] topic ...
_OURS = re.compile(r"\[headrace:([a-z-]+)\]\s*([^\n]*?)(?: SQLSTATE: \w+)*(?:\n|$)")
_BY_CODE: dict[str, type[HeadraceError]] = {
    found.code: found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, HeadraceError)
}
_FIXES = {
    "topic-missing": "create it, or correct the name: `headrace topics` lists what there is",
    "topic-recreated": "its old records are gone: replay into a new version, which starts from the new beginning",
    "records-lost": "raise the retention of the topic; to go on without them, replay into a new version",
    "fenced": "keep one of the two drivers; run the other under another version",
    "state-behind": "it is a copy or a backup: go on with the newest state, or run as a new version and replay into it",
    "disk-full": "free some space: the flow tries again, and goes on where it was",
    "transaction-expired": "the batch is tried again; if it stays so, it needs a faster machine",
    "function-failed": 'correct it, or say on_error="dead" to set such rows aside',
}
# Spark's words for a file of a checkpoint that is not what was written.
_DAMAGED = re.compile(
    r"CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED[^\n]*|(?:Failed to read|Incomplete|Malformed) log file[^\n]*"
    r"|CANNOT_LOAD_STATE_STORE[^\n]*"
)
_LAST_WORDS = 20_000
_MEMORY = re.compile(
    r"OutOfMemoryError|Could not reserve enough space|Cannot allocate memory|Invalid maximum heap size"
)
_PORT = re.compile(r"(?:java\.net\.BindException[^\n]*|Address already in use[^\n]*)")
_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH[^\n]*|Python in worker has different version[^\n]*")
_CAUSE = re.compile(r"^(?:Caused by: )?([\w.$]+(?:Exception|Error)): ([^\n]+)", re.MULTILINE)


def translate(error: BaseException, log: Path, *, alive: bool = True) -> HeadraceError:
    """The Headrace error that says what this one means. `alive` tells whether the JVM still runs."""
    if isinstance(error, HeadraceError):
        return error
    text = str(error)
    keep(text, log)
    if not alive:
        text += f"\n{last_words(log)}"
    if (ours := _OURS.search(text)) and (kind := _BY_CODE.get(ours.group(1))):
        # A worker tells the trace of the user's function after the words; Spark goes on with a code of its own.
        trace = text[ours.end() :].split("\n SQLSTATE", 1)[0].strip() if kind is FunctionFailed else ""
        return kind(ours.group(2).strip(), why=trace, fix=_FIXES.get(ours.group(1), ""))
    if found := _DAMAGED.search(text):
        return CheckpointDamaged(
            "a file of the checkpoint is damaged or missing",
            why=found.group(),
            fix="`headrace checkpoint verify` says which, and what to do",
        )
    see = f"the whole trace is in {log}"
    if found := _MEMORY.search(text):
        return SparkOutOfMemory(
            "Spark ran out of memory",
            why=found.group(),
            fix="give it another heap: set spark.driver_memory (for example 4g) in headrace.toml",
        )
    if found := _PORT.search(text):
        return PortBusy("Spark could not take its port", why=found.group(), fix="end the process that has it")
    if found := _PYTHON.search(text):
        return WorkerPythonMismatch(
            "Spark's workers run another Python than this one",
            why=found.group(),
            fix="install the same minor version on the workers; locally, unset PYSPARK_PYTHON",
        )
    causes = _CAUSE.findall(text)
    why = f"{causes[-1][0].rsplit('.', 1)[-1]}: {causes[-1][1]}" if causes else text.strip().split("\n")[0]
    return SparkFailed("Spark failed" if alive else "Spark's JVM has ended", why=why, fix=see)


@contextmanager
def translated(log: Path) -> Iterator[None]:
    """Whatever PySpark raises inside comes out as a Headrace error."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, ConnectionError) as error:
        raise translate(error, log, alive=not isinstance(error, ConnectionError)) from error


def keep(text: str, log: Path) -> None:
    """Appends a trace to the log file. On a full disk it is lost: the flow that has the trouble must go on."""
    with suppress(OSError), log.open("a") as file:
        file.write(f"{text.rstrip()}\n")


def last_words(log: Path) -> str:
    """The end of the log: what a JVM said before it ended."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LAST_WORDS))
        return file.read().decode(errors="replace")
