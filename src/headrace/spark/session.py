"""The Spark session of this process: one JVM, our kernels on its class path, errors in our words."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

from headrace.base.errors import UsageError
from headrace.base.settings import Settings
from headrace.spark import archive
from headrace.spark.gateway import Gateway, JvmEnded, Launched, launch
from headrace.spark.kernels import our_jars
from headrace.spark.profile import Profile, jvm_options, spark_settings
from headrace.spark.trouble import translate, translated
from headrace.stack import jars

_PATIENCE = 10.0  # seconds for a session to end by itself, and for its JVM


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """A running Spark: `session` is PySpark's, `jvm` the package of our Scala, `log` where the JVM writes, `ahead`
    flows that were compiled before their turn (query.py)."""

    session: Any = field(repr=False)
    jvm: Any = field(repr=False)
    log: Path
    gateway: Gateway = field(repr=False)
    ahead: dict[str, Any] = field(default_factory=dict, repr=False)

    def healthy(self) -> bool:
        """Whether the JVM runs and its context is open."""
        if not self.gateway.alive:
            return False
        try:
            return not self.session.sparkContext._jsc.sc().isStopped()
        except Exception:  # py4j raises many kinds when the other end has gone
            return False

    def answer(self) -> None:
        """Lets the JVM call objects of this process; the threads that answer end with the gateway."""
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(self.gateway.py4j)

    def renamed(self, name: str) -> Spark:
        """The same, with the log of that name; what another left there is kept beside it."""
        log = self.log.with_name(f"spark-{name}.log")
        if log == self.log:
            return self
        with suppress(FileNotFoundError):
            log.replace(log.with_name(log.name + ".1"))
        with suppress(FileNotFoundError):  # somebody may have tidied up while it waited
            self.log.replace(log)  # the JVM goes on writing: the file is the same
        return replace(self, log=log)

    def stop(self, patience: float = _PATIENCE) -> None:
        """Ends the session and its JVM; a second call does nothing."""
        if self.gateway.closed:
            return
        from pyspark import SparkContext

        # py4j has one connection per thread, and a call that Ctrl-C broke off still holds this thread's.
        ending = threading.Thread(target=self._end_session, daemon=True)
        ending.start()
        ending.join(_PATIENCE)
        self.gateway.close(patience)
        # PySpark keeps all this in class attributes: without this no second session could start.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None

    def _end_session(self) -> None:
        if self.healthy():
            self.session.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A Spark on its way. Its JVM starts while this process does what comes before it."""

    conf: dict[str, str]
    launched: Launched

    def ready(self) -> Spark:
        """Waits for it. Raises in our words if it does not come."""
        from pyspark import SparkContext

        if SparkContext._active_spark_context is not None:
            self.give_up()
            raise UsageError("Spark is already running in this process", fix="use that one, or stop it first")
        log = self.launched.log
        try:
            gateway = self.launched.connect()
        except JvmEnded as ended:
            raise translate(ended, log, alive=False) from None
        try:
            with translated(log):
                session = _session(gateway, self.conf)
                session._jvm.headrace.Lifeline.hold()
                session._jvm.org.apache.spark.sql.headrace.Planning.shorten(session._jsparkSession)
        except BaseException:
            gateway.close()
            raise
        return Spark(session=session, jvm=session._jvm.headrace, log=log, gateway=gateway)

    def give_up(self) -> None:
        self.launched.give_up()


def begin(
    settings: Settings,
    *,
    profile: Profile = "live",
    app_name: str = "headrace",
    learned: Path | None = None,
    tell: Callable[[str], None] = jars.silent,
) -> Coming:
    """Lets Spark come up in a JVM of its own; one per process.

    Profiles: "live" for micro-batches and history, "realtime" for real-time mode, "test" starts fastest. `learned`: a
    file for what Java learns of this run; without it, it uses what it has learned before.
    """
    classpath = our_jars(settings.cache, tell=tell)
    conf = spark_settings(settings, profile)
    conf |= {"spark.app.name": app_name, "spark.local.dir": str(scratch(settings.home / "spark" / "scratch"))}
    if not conf["spark.master"].startswith("local"):
        conf["spark.jars"] = ",".join(map(str, classpath))  # executors on other machines have their own class path
    known = archive.options(settings.cache, classpath) if learned is None else archive.learning(learned)
    told = [*jvm_options(settings, profile), *known]
    tell(f"starting Spark ({conf['spark.master']})")
    log = settings.home / "logs" / f"spark-{app_name}.log"
    return Coming(conf=conf, launched=launch(classpath=classpath, options=told, log=log))


def start(
    settings: Settings,
    *,
    profile: Profile = "live",
    app_name: str = "headrace",
    tell: Callable[[str], None] = jars.silent,
) -> Spark:
    """Starts Spark, as `begin` has it, and waits for it."""
    return begin(settings, profile=profile, app_name=app_name, tell=tell).ready()


def scratch(folder: Path) -> Path:
    """A scratch directory of this process; what processes that were killed left behind is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.iterdir():
        if not _alive(int(left.name)):
            shutil.rmtree(left, ignore_errors=True)
    own = folder / str(os.getpid())
    own.mkdir(exist_ok=True)
    return own


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _session(gateway: Gateway, conf: dict[str, str]) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run this very Python
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    chosen = SparkConf(loadDefaults=False, _jvm=gateway.py4j.jvm).setAll(list(conf.items()))
    session = SparkSession(SparkContext(conf=chosen, gateway=gateway.py4j))
    if main:
        signal.signal(signal.SIGINT, handler)  # PySpark takes Ctrl-C for itself; it belongs to the application
    return session


def probe(spark: Spark) -> timedelta:
    """Runs a tiny query and a Python worker; how long they took."""
    began = monotonic()
    with translated(spark.log):
        spark.session.range(3).selectExpr("sum(id)").collect()
        spark.session.sparkContext.parallelize([1, 2], 1).map(abs).sum()
    return timedelta(seconds=monotonic() - began)
