"""A dry run: a flow over rows of its log, into nothing.

A driver that waits for its turn has then done once what a flow does, writing aside: classes are loaded, plans made, and
what rows take is compiled.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from headrace.base.duration import millis
from headrace.base.errors import HeadraceError
from headrace.model.declared import ReadTable
from headrace.plan import modes
from headrace.plan.modes import Mode
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.deciding import deciding
from headrace.spark.job import Job, Span
from headrace.spark.query import start
from headrace.spark.session import Spark
from headrace.spark.trouble import translate

LAST = timedelta(days=2)
"""So much of its streams at most: what comes first is as good as what comes last. Tables are loaded whole before."""
LONGEST = timedelta(minutes=3)
PACE = timedelta(seconds=15)
ENOUGH, MOST = 2, 4
"""Intervals of real time, whose ends are planned and made safe as well: if there were rows, and if there were none."""
_LOOK = timedelta(milliseconds=100)


def dry_run(spark: Spark, job: Job, folder: Path, over: Callable[[], bool]) -> HeadraceError | None:
    """Runs it until it has seen enough, or `over` says so; what went wrong, if anything did. The folder keeps its state
    meanwhile."""
    mode: Mode = "realtime" if job.mode == "realtime" else "history"
    if modes.why_not(job.flow, mode):  # it follows processing time, which history has none of
        return None
    span = Span(start=datetime.now(UTC) - LAST, time_ends=False)
    dry = replace(job, mode=mode, checkpoint=Checkpoint(folder=folder), dry=True, stores=(), span=span, pace=PACE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with deciding(spark, dry.broker, dry.flow, str(dry.checkpoint.spark)):
            tables = any(isinstance(source.node, ReadTable) for source in dry.flow.sources)
            _until(spark, start(spark, dry), over, tables)
    except HeadraceError as trouble:
        return trouble
    except Exception as broken:  # whatever ended the query: Spark's many kinds
        return translate(broken, spark.log, alive=spark.healthy())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def _until(spark: Spark, query: Any, over: Callable[[], bool], tables: bool) -> None:
    deadline, rows = monotonic() + LONGEST.total_seconds(), list[int]()
    try:
        while not over() and monotonic() < deadline and len(rows) < (ENOUGH if any(rows) else MOST):
            if (ended := spark.jvm.Watch.look(query._jsq, -1, millis(_LOOK))) is None:
                return
            rows = [one["numInputRows"] for one in json.loads(ended) if not _loads(one, tables)]
    finally:
        with suppress(Exception):  # the JVM may be gone
            query.stop()
            spark.jvm.Counters.take(str(query.runId))  # or they would be kept for whoever asks


def _loads(progress: dict[str, Any], tables: bool) -> bool:
    """Whether a batch read tables that streams wait for (rule J4): nothing has gone through the steps then."""
    start = progress["sources"][0]["startOffset"]
    if start is None:
        return tables
    return any("load" in part for topic in start["parts"].values() for part in topic.values())
