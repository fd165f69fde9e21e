"""Spark's settings for the three ways to run it: live, real-time, and quick to start (tests, labs, doctor)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from headrace.base.errors import UsageError
from headrace.base.settings import Settings

Profile = Literal["live", "realtime", "test"]

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
"""Besides those that jvm/Planning.scala leaves out."""
_COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.adaptive.enabled": "false",  # stateful streams never use it, real-time mode refuses it
    "spark.hadoop.fs.file.impl": "headrace.NioLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "headrace.NioAbstractFileSystem",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.checkpointFileManagerClass": "headrace.CheckedFiles",
    # Spark would look every key up before it writes it, only to count them; the kernels count (jvm/Counters.scala).
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # One cache for all state of the process, as large as Spark's default bound, instead of 8 MB for each store.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    # The log source tells Spark the watermark (jvm/FrontierWatermark.scala) and asks itself for batches without rows.
    "spark.sql.extensions": "org.apache.spark.sql.headrace.HeadraceExtensions",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Every batch's plan is written as text for a page that is not served; this is the shortest way to write it.
    "spark.sql.ui.explainMode": "simple",
    # Small and large letters by Java's own tables, nearer to Python's than ICU's, which take seconds to load.
    "spark.sql.icu.caseMappings.enabled": "false",
    # Real-time mode's list of known operators has none of ours; what a plan may hold is checked before it is compiled.
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
}
# The shuffle of real-time mode: inside one process from hand to hand, between several by Spark's own, which would keep
# rows for up to 50 ms.
_NEAR = {"spark.shuffle.manager.incremental": "org.apache.spark.shuffle.headrace.HandOver"}
_FAR = {"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1"}
# A Python function on the real-time path needs every one of these, the list above off, and `useArrow=False`.
REALTIME = {
    "spark.python.udf.pipelined.enabled": "true",
    "spark.sql.execution.python.udf.maxRecordsPerBatch": "1",
    "spark.sql.execution.python.udf.buffer.size": "4",
    "spark.python.unix.domain.socket.enabled": "true",
    # A plan is optimized anew for every interval, while rows wait. Projections that are merged into one repeat what
    # several columns use: for a flow of thirty figures a minute instead of seconds. One row more costs little.
    EXCLUDED_RULES: "org.apache.spark.sql.catalyst.optimizer.CollapseProject",
}
# What Spark generates from long expressions has methods that the JVM would never compile, only interpret.
_LONG_METHODS = "-XX:-DontCompileHugeMethods"
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=240m")
"""Half the CPU at start, at the price of throughput. The first compiler alone would get 48 MB for its code, which a
long session fills: then it throws methods away and compiles them again, over and over."""
# Who plans the next interval (jvm/LogStream.scala) and who compiles yield to those that rows wait for. The numbers are
# Linux's, up to 19 for the most patient.
_YIELDING_JVM = ("-XX:ThreadPriorityPolicy=1", "-XX:JavaPriority1_To_OSPriority=10", "-XX:CompilerThreadPriority=5")
_PLANNING_JVM = (
    "-XX:+UnlockDiagnosticVMOptions",
    f"-XX:CompilerDirectivesFile={Path(__file__).with_name('planning.directives')}",
)
# A real-time query holds one slot per task of all its stages for as long as it runs: threads, not cores.
_REALTIME_MASTER = "local[64]"


def spark_settings(settings: Settings, profile: Profile) -> dict[str, str]:
    """What the session is configured with."""
    if profile not in get_args(Profile):
        raise UsageError(f"there is no Spark profile {profile!r}", fix=f"one of: {', '.join(get_args(Profile))}")
    master = settings.text("spark.master")
    if master == "local[*]" and profile != "live":
        master = _REALTIME_MASTER
    found = _COMMON | {
        "spark.master": master,
        "spark.sql.shuffle.partitions": settings.text("spark.shuffle_partitions"),
        "spark.sql.warehouse.dir": str(settings.home / "spark" / "warehouse"),
    }
    if master.startswith("local"):
        found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} | _NEAR
    else:
        found |= _FAR
    return found | (REALTIME if profile == "realtime" else {})


def jvm_options(settings: Settings, profile: Profile) -> list[str]:
    """What the JVM itself is started with."""
    own = {"test": QUICK_JVM, "realtime": (*_YIELDING_JVM, *_PLANNING_JVM)}.get(profile, ())
    return [f"-Xmx{settings.text('spark.driver_memory')}", _LONG_METHODS, *own]
