"""The JVM that belongs to this Python process: started with our jars and log file, ended when Python ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from headrace.base.patience import patience, yield_by
from headrace.stack.ivy import pyspark_jars
from headrace.stack.java import find_java

_LOG4J = Path(__file__).with_name("log4j2.xml")
_LARGEST_LOG = 20_000_000
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
# What Spark's own launcher passes, less `--add-modules=jdk.incubator.vector`: the Java in the wheel has no such module.
SPARK_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


class JvmEnded(Exception):
    """The JVM ended before it could be spoken to; its last words are in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A running JVM and the py4j connection to it."""

    process: subprocess.Popen[bytes]
    py4j: Any
    log: Path

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def closed(self) -> bool:
        return self.process.stdin is None or self.process.stdin.closed

    def close(self, patience: float = 10) -> None:
        """Ends the JVM: closing its stdin asks it to, as the end of this process would."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with suppress(Exception):  # nobody answers any more; what is left are this side's sockets and threads
            self.py4j.shutdown()


def class_path(ours: list[Path]) -> list[Path]:
    """Our jars, then Spark's, in an order of their own: what Java has learned holds for that order alone. Without its
    machine learning: every session would register functions of that, by reflection, for longer than all else takes."""
    return [*ours, *(jar for jar in sorted(pyspark_jars().glob("*.jar")) if not jar.name.startswith("spark-mllib_"))]


def with_class_path(environment: Mapping[str, str], jars: list[Path]) -> dict[str, str]:
    """An environment for Java: as an argument, hundreds of jars would bury all others in `ps`."""
    return {**environment, "CLASSPATH": os.pathsep.join(map(str, jars))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A JVM on its way up: it takes a second or two until it can be spoken to, in which we may do other things."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: Path

    def connect(self) -> Gateway:
        """Waits for it; raises JvmEnded if it does not come up."""
        told = _told(self.folder)
        try:
            while not told.exists():
                if self.process.poll() is not None:
                    raise JvmEnded
                time.sleep(0.02)
            with told.open("rb") as info:
                gateway = Gateway(process=self.process, py4j=_connect(info), log=self.log)
        except BaseException:
            self.give_up()
            raise
        shutil.rmtree(self.folder)
        return gateway

    def give_up(self) -> None:
        """Ends it at once; nothing was said to it yet."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def launch(*, classpath: list[Path], options: list[str], log: Path) -> Launched:
    """Starts the JVM."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LARGEST_LOG:
        log.replace(log.with_name(log.name + ".1"))
    logging = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", f"-Dheadrace.log={log}"]
    command = [str(find_java()), *SPARK_OPTIONS, *logging, *options]
    command += ["org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    folder = Path(tempfile.mkdtemp(prefix="headrace-gateway-"))
    environment = with_class_path(os.environ, class_path(classpath)) | {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(_told(folder)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(pyspark_jars().parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONNECT_MODE": "0",
    }
    with log.open("ab") as output:
        # The JVM reads stdin until it ends, then exits: so it ends with us, even by kill -9. A session of its own
        # keeps Ctrl-C, meant for us, from stopping it under our feet.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    yield_by(process.pid, patience())  # as we do
    return Launched(process=process, folder=folder, log=log)


def _told(folder: Path) -> Path:
    """Where the JVM says how to reach it."""
    return folder / "connection"


def _connect(info: IO[bytes]) -> Any:
    """PySpark's own connection to a JVM that already runs; it takes port and secret from the environment only."""
    from pyspark.java_gateway import launch_gateway
    from pyspark.serializers import UTF8Deserializer, read_int

    named = {"PYSPARK_GATEWAY_PORT": str(read_int(info)), "PYSPARK_GATEWAY_SECRET": UTF8Deserializer().loads(info)}
    os.environ.update(named)
    try:
        return launch_gateway()
    finally:
        for name in named:
            del os.environ[name]
