"""A flow's query: its job compiled, its sink and trigger chosen, started from its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.base.clock import micros
from headrace.base.duration import millis, show
from headrace.base.errors import GuaranteeRefused, ModeRefused
from headrace.log.dead import ROOMY
from headrace.observe.snapshot import twin_name
from headrace.spark.chain import Chain
from headrace.spark.checkpoint_files import SparkFiles
from headrace.spark.clients import java_client
from headrace.spark.commits import ensure_commits
from headrace.spark.compile import Compiler
from headrace.spark.job import Job
from headrace.spark.log import commit_log, read_log, write_log
from headrace.spark.session import Spark
from headrace.spark.trouble import translated


def start(spark: Spark, job: Job, known: frozenset[str] | None = None) -> Any:
    """Starts the flow's query, inside `storing` if it writes stores and `deciding` if it decides; gives PySpark's
    StreamingQuery. `known`: the runs that it may take the flow from; None: from whoever has it."""
    client = java_client(job.broker)
    if job.mode == "realtime":
        _check_pace(spark, job)
    if job.commits:
        check_master(spark.session.sparkContext.master, job)
    with translated(spark.log):
        source = read_log(spark, job.source(), client)
        home, arrival = str(job.checkpoint.spark), job.mode == "realtime"
        records = Compiler(job.plan, job.flow, Chain(spark), home, arrival=arrival).records(source)
        if job.span.emit_from is not None:
            records = records.where((records["time"] >= micros(job.span.emit_from)) | records["time"].isNull())
        if job.only_stores:
            records = records.where(records["topic"].isNull())
        name = f"{job.plan.app}/{twin_name(job.flow.name, job.twin)}"
        writer = records.writeStream.outputMode("update").queryName(name)
        writer = writer.option("checkpointLocation", home)
        roomy = client | {"max.request.size": str(ROOMY)}
        if job.commits:
            files = SparkFiles(folder=job.checkpoint.spark)
            writer = commit_log(
                writer,
                roomy,
                id=job.id,
                commits=ensure_commits(job.broker, job.plan.app, job.checkpoint),
                weaker=job.weaker,
                stores=[store.target.label for store in job.flow.stores],
                staged=str(job.checkpoint.staged),
                plans=files.plans,
                planned=max(files.planned(), default=-1),
                known=known,
            )
        else:
            write_log(spark, writer, roomy, realtime=job.mode == "realtime")
        return _TRIGGERS[job.mode](writer, job).start()


_TRIGGERS: dict[str, Callable[[Any, Job], Any]] = {
    "live": lambda writer, job: writer.trigger(processingTime=f"{millis(job.pace)} milliseconds"),
    "history": lambda writer, _: writer.trigger(availableNow=True),
    "realtime": lambda writer, job: writer.trigger(realTime=f"{millis(job.pace)} milliseconds"),
}


def _check_pace(spark: Spark, job: Job) -> None:
    """Spark would refuse it too, each time it is started anew."""
    allowed = spark.session.conf.get("spark.sql.streaming.realTimeMode.minBatchDuration")  # "5000ms", or set: "5000"
    least = timedelta(milliseconds=int(allowed.removesuffix("ms")))
    if job.pace < least:
        raise ModeRefused(
            f"a real-time interval of {show(job.pace)} is too short",
            why=f"at its end rows wait until the state is safe; Spark allows no less than {show(least)}",
            fix=f'say "{show(least)}" or more; rows do not wait for the interval to end',
        )


def check_master(master: str, job: Job) -> None:
    """A batch is one transaction of one producer, and tasks on other machines could share neither it nor the folder of
    rows for stores."""
    if master != "local" and not master.startswith("local["):
        wanted = job.committed[0]
        weaker = "" if wanted.stored else 'say .to(..., guarantee="at-least-once"), or '
        raise GuaranteeRefused(
            f"{wanted.target.label} cannot be written {wanted.guarantee} on {master}",
            why="all tasks of a batch write in one commit, so they must run inside the driver",
            fix=f"{weaker}set spark.master to local[*]",
        )
