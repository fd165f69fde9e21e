"""Each trouble Spark can report comes out as the Headrace error that says what to do."""

from pathlib import Path

import pytest

from headrace.base.errors import (
    HeadraceError,
    PortBusy,
    RecordsLost,
    SparkFailed,
    SparkOutOfMemory,
    TopicMissing,
    TopicRecreated,
    WorkerPythonMismatch,
)
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
