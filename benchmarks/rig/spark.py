"""Spark in a process of its own: ours, stock with its own Kafka connector, or raw; they take turns and share nothing.

Work is a plain function of the benchmark: it runs in the other process, where `session()` is that process's Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from headrace.base.settings import Settings
from headrace.spark.gateway import launch
from headrace.spark.kernels import kernels_jar
from headrace.spark.profile import EXCLUDED_RULES, jvm_options, spark_settings
from headrace.spark.session import Spark, _session, start
from headrace.stack import ivy

# The newest build of Spark's own connector; it works on 4.3.0, with the client that it was built for.
STOCK = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
# What a guide to Spark would have one set for a stream with state on this machine; all else of raw Spark is its own.
_RAW = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# What only our source and sink understand.
_OURS_ONLY = ("spark.sql.extensions", "spark.sql.streaming.noDataMicroBatches.enabled")

_here: list[Spark] = []  # the one of this process


@dataclass(frozen=True, slots=True)
class Spent:
    """What a piece of work took: seconds on the clock, seconds of CPU in its process, its JVM and what that
    started; and what it gave."""

    clock: float
    cpu: float
    gave: Any = None


def session() -> Spark:
    """The Spark of this process."""
    return _here[0]


@contextmanager
def as_shipped(spark: Spark) -> Iterator[None]:
    """Queries that begin in here have every rule of Spark's optimizer: ours go without most (jvm/Planning.scala)."""
    left_out = spark.session.conf.get(EXCLUDED_RULES)
    spark.session.conf.unset(EXCLUDED_RULES)
    try:
        yield
    finally:
        spark.session.conf.set(EXCLUDED_RULES, left_out)


@contextmanager
def ours(settings: Settings) -> Iterator[Worker]:
    with _worker(_start_ours, settings) as worker:
        yield worker


@contextmanager
def stock(settings: Settings) -> Iterator[Worker]:
    """Same machine, same heap, same checkpoint file system, same state store; its own connector and aggregation."""
    with _worker(_start_stock, settings) as worker:
        yield worker


@contextmanager
def raw(settings: Settings) -> Iterator[Worker]:
    """Spark as it comes, with its own file system; the same heap."""
    with _worker(_start_raw, settings) as worker:
        yield worker


class Worker:
    """Runs functions, one at a time, and measures them there."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def run(self, work: Callable[..., Any], *arguments: Any) -> Spent:
        return self._pool.submit(_measured, work, *arguments).result()


@contextmanager
def _worker(begin: Callable[[Settings], None], settings: Settings) -> Iterator[Worker]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=begin, initargs=(settings,)) as pool:
        yield Worker(pool)


def _measured(work: Callable[..., Any], *arguments: Any) -> Spent:
    cpu, clock = _cpu(), time.perf_counter()
    gave = work(*arguments)
    return Spent(time.perf_counter() - clock, _cpu() - cpu, gave)


def _cpu() -> float:
    here, jvm = psutil.Process().cpu_times(), psutil.Process(session().gateway.process.pid).cpu_times()
    # Hadoop's file system starts a process for many a file.
    return float(here.user + here.system + jvm.user + jvm.system + jvm.children_user + jvm.children_system)


def _start_ours(settings: Settings) -> None:
    _here.append(start(settings, app_name="ours"))


def _start_stock(settings: Settings) -> None:
    log = settings.home / "logs" / "spark-stock.log"
    classpath = [kernels_jar(settings.cache), *stock_jars(settings.cache)]  # of the kernels: only the file system
    gateway = launch(classpath=classpath, options=jvm_options(settings, "live"), log=log).connect()
    conf = {name: value for name, value in spark_settings(settings, "live").items() if name not in _OURS_ONLY}
    scratch = settings.home / "spark" / "scratch-stock"
    made = _session(gateway, conf | {"spark.app.name": "stock", "spark.local.dir": str(scratch)})
    _here.append(Spark(session=made, jvm=None, log=log, gateway=gateway))


def _start_raw(settings: Settings) -> None:
    log = settings.home / "logs" / "spark-raw.log"
    gateway = launch(classpath=[], options=[f"-Xmx{settings.text('spark.driver_memory')}"], log=log).connect()
    conf = _RAW | {"spark.app.name": "raw", "spark.local.dir": str(settings.home / "spark" / "scratch-raw")}
    _here.append(Spark(session=_session(gateway, conf), jvm=None, log=log, gateway=gateway))


def stock_jars(cache: Path) -> list[Path]:
    """Fetched by Ivy once, beside our own jars."""
    store = cache / "ivy"
    files = [store / "jars" / f"{module}-{version}.jar" for _, module, version in (c.split(":") for c in STOCK)]
    if not all(file.exists() for file in files):
        (store / "jars").mkdir(parents=True, exist_ok=True)
        with (store / "jars" / ".lock").open("w") as hold, ivy.downloading(STOCK, store, hold=hold.fileno()) as child:
            child.communicate()
    return files
