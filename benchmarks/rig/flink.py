"""Flink's SQL over a folder of CSV, in a JVM of its own: what `pip install --no-deps --target FOLDER
apache-flink-libraries` brings is all it needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from headrace.stack.java import find_java


@dataclass(frozen=True, slots=True)
class Flink:
    """`tables`: Flink's TableEnvironment."""

    tables: Any
    process: psutil.Process

    def table(self, name: str, columns: str, **options: str) -> None:
        told = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        self.tables.executeSql(f"create temporary table {name} ({columns}) with ({told})")

    def insert(self, into: str, query: str) -> tuple[float, float]:
        """Runs a query to its end. Seconds by the clock, and of processor time."""
        began, busy = monotonic(), self._busy()
        getattr(self.tables.executeSql(f"insert into {into} {query}"), "await")()
        return monotonic() - began, self._busy() - busy

    def _busy(self) -> float:
        return float(sum(self.process.cpu_times()[:2]))


@contextmanager
def flink(folder: Path, parallel: int = 2, memory: str = "3g") -> Iterator[Flink]:
    """`folder`: where apache-flink-libraries was installed."""
    jars = sorted((folder / "pyflink" / "lib").glob("*.jar"))
    assert jars, f"no jars in {folder}/pyflink/lib: pip install --no-deps --target {folder} apache-flink-libraries"
    (bridge,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, process = launch_gateway(
        jarpath=str(bridge), classpath=":".join(map(str, jars)), javaopts=[f"-Xmx{memory}"], java_path=str(find_java()),
        die_on_exit=True, return_proc=True,
    )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        api = gateway.jvm.org.apache.flink.table.api
        tables = api.TableEnvironment.create(api.EnvironmentSettings.newInstance().inStreamingMode().build())
        tables.getConfig().set("parallelism.default", str(parallel))
        yield Flink(tables, psutil.Process(process.pid))
    finally:
        gateway.close()
        process.stdin.close()  # at whose end it ends
        process.wait(30)
