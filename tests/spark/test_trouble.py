"""Each trouble Spark can report comes out as the Headrace error that says what to do."""

from pathlib import Path

import pytest

from headrace.base.errors import (
    CheckpointDamaged,
    DiskFull,
    HeadraceError,
    PortBusy,
    RecordsLost,
    SparkFailed,
    SparkOutOfMemory,
    TopicMissing,
    TopicRecreated,
    WorkerPythonMismatch,
)
from headrace.spark.session import Spark
from headrace.spark.trouble import translate


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("java.net.BindException: Address already in use: Service 'sparkDriver' failed", PortBusy, "sparkDriver"),
        ("java.lang.OutOfMemoryError: Java heap space", SparkOutOfMemory, "OutOfMemoryError"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: 3.11",
            WorkerPythonMismatch,
            "3.10",
        ),
        ("x\nCaused by: java.lang.IllegalStateException: the wheel broke\n\tat y", SparkFailed, "the wheel broke"),
        ("[headrace:topic-missing] topic 'payments' does not exist\n\tat z", TopicMissing, "payments"),
        ("[headrace:topic-recreated] topic 'payments' partition 0 ends at 3", TopicRecreated, "ends at 3"),
        ("[headrace:disk-full] state cannot be written: the disk is full", DiskFull, "tries again"),
        ("[headrace:records-lost] topic 'payments' partition 0: wanted 17", RecordsLost, "wanted 17"),
    ],
)
def test_a_trouble_is_named(tmp_path: Path, text: str, kind: type[HeadraceError], says: str) -> None:
    log = tmp_path / "spark.log"
    found = translate(RuntimeError(text), log)
    assert type(found) is kind
    assert says in str(found)
    assert found.fix
    assert text.strip() in log.read_text()


def test_the_last_words_of_a_dead_jvm_are_heard(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("Error: Could not reserve enough space for 99 object heap\n")
    assert isinstance(translate(ConnectionRefusedError("gone"), log, alive=False), SparkOutOfMemory)


def test_a_full_disk_is_no_damaged_checkpoint(spark: Spark, tmp_path: Path) -> None:
    """Both come as state that cannot be loaded; the one is tried again, the other ends the flow."""
    java = spark.session._jvm.java  # type: ignore[union-attr]
    words = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
    full, gone = (
        spark.jvm.Watch.told(java.lang.RuntimeException(words, java.io.IOException(cause))).getMessage()
        for cause in ("No space left on device", "state/1/0/11.zip does not exist")
    )
    assert isinstance(translate(RuntimeError(full), tmp_path / "spark.log"), DiskFull)
    assert isinstance(translate(RuntimeError(gone), tmp_path / "spark.log"), CheckpointDamaged)
