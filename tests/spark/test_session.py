"""The session: holds its settings, ends with its Python process, fails in our words."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.base.errors import SparkFailed, UsageError
from headrace.base.settings import Settings
from headrace.spark.gateway import launch
from headrace.spark.kernels import our_jars
from headrace.spark.profile import EXCLUDED_RULES, spark_settings
from headrace.spark.session import Spark, probe, scratch, start
from headrace.spark.trouble import translated

CHILD = """
import signal, sys, time
from headrace.base.settings import load
from headrace.spark.session import start
spark = start(load({"home": sys.argv[1], "spark.driver_memory": "512m"}), profile="test")
print(spark.gateway.process.pid, flush=True)
sys.stdin.readline()
signal.signal(signal.SIGALRM, lambda *_: sys.exit("interrupted"))
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    spark.session._jvm.java.lang.Thread.sleep(100_000)
except SystemExit:
    pass
began = time.monotonic()
spark.stop()
spark.stop()
print(time.monotonic() - began < 30, end=" ")
print(spark.healthy())
"""


def child(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, home],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_plan_is_not_optimized_for_what_it_never_holds(spark: Spark) -> None:
    excluded = {rule.rpartition(".")[2] for rule in spark.session.conf.get(EXCLUDED_RULES).split(",")}
    assert {"ReorderJoin", "DecimalAggregates", "RemoveRedundantAliases"} <= excluded
    assert not {"ColumnPruning", "PushDownPredicates", "ConstantFolding", "ExtractPythonUDFs"} & excluded
    few = spark.session.range(9).selectExpr("id", "id * 2 as twice").where("twice > 4").select("id")
    assert [row.id for row in few.collect()] == list(range(3, 9))


def test_counters_have_no_name(spark: Spark) -> None:
    """Spark writes those that have one as text after every task, and all that they hold in it."""
    counters = spark.jvm.Counters.open(spark.session._jsc.sc())
    assert counters.name().isEmpty()


def running(pid: int) -> bool:
    """A zombie has ended, whether or not somebody fetched its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_it_is_healthy_and_answers(spark: Spark) -> None:
    assert spark.healthy()
    assert timedelta(0) < probe(spark) < timedelta(seconds=60)


def test_times_are_utc_state_is_rocksdb_files_are_nio(spark: Spark, settings: Settings) -> None:
    conf = spark.session.conf
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RocksDB" in conf.get("spark.sql.streaming.stateStore.providerClass")
    assert conf.get("spark.sql.shuffle.partitions") == settings.text("spark.shuffle_partitions")
    hadoop = spark.session.sparkContext._jsc.hadoopConfiguration()
    files = spark.session._jvm.org.apache.hadoop.fs.FileSystem.get(hadoop)
    assert files.getClass().getName() == "headrace.NioLocalFileSystem"


def test_workers_run_this_python(spark: Spark) -> None:
    found = spark.session.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert found == [sys.executable]


def test_a_second_one_in_this_process_is_refused(spark: Spark, settings: Settings) -> None:
    with pytest.raises(UsageError, match="already running"):
        start(settings)


def test_an_unknown_profile_is_refused(settings: Settings) -> None:
    with pytest.raises(UsageError, match="no Spark profile 'fast'"):
        spark_settings(settings, "fast")  # type: ignore[arg-type]


def test_stop_ends_the_jvm_even_after_a_call_was_broken_off(tmp_path: Path) -> None:
    with child(tmp_path) as process:
        jvm = int(process.stdout.readline())  # type: ignore[union-attr]
        assert process.communicate("\n")[0].strip() == "True False"
    assert not running(jvm)


def test_one_that_is_given_up_leaves_nothing(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    launched = launch(classpath=our_jars(settings.cache), options=[], log=tmp_path / "jvm.log")
    assert running(launched.process.pid)
    assert list(tmp_path.glob("headrace-gateway-*"))
    launched.give_up()
    assert not running(launched.process.pid)
    assert not list(tmp_path.glob("headrace-gateway-*"))


def test_kill_9_of_python_ends_its_jvm_within_two_seconds(tmp_path: Path) -> None:
    with child(tmp_path) as process:
        jvm = int(process.stdout.readline())  # type: ignore[union-attr]
        assert running(jvm)
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 2
    while running(jvm) and time.monotonic() < until:
        time.sleep(0.02)
    assert not running(jvm)


def test_a_heap_that_cannot_be_had_is_out_of_memory_with_the_setting_to_change(tmp_path: Path) -> None:
    code = (
        "import sys; from headrace.base.settings import load; from headrace.spark.session import start\n"
        "start(load({'home': sys.argv[1], 'spark.driver_memory': '99999999g'}))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert "SparkOutOfMemory" in done.stderr
    assert "spark.driver_memory" in done.stderr


def test_an_error_of_a_query_is_translated_and_its_trace_kept(spark: Spark) -> None:
    with pytest.raises(SparkFailed) as caught, translated(spark.log):
        spark.session.sql("select raise_error('the mill stands still')").collect()
    assert "the mill stands still" in caught.value.why
    assert "the mill stands still" in spark.log.read_text()


def test_what_killed_sessions_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / str(gone.pid)).mkdir()
    (tmp_path / "1").mkdir()
    assert scratch(tmp_path) == tmp_path / str(os.getpid())
    assert not (tmp_path / str(gone.pid)).exists()
    assert (tmp_path / "1").exists()
