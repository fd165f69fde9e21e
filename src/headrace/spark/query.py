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
from headrace.spark.log import commit_log, read_log, write_log, write_nowhere
from headrace.spark.session import Spark
from headrace.spark.trouble import translated


def prepare(spark: Spark, job: Job) -> None:
    """Compiles the flow ahead: what `start` then need not do."""
    if job.mode == "realtime":
        _check_pace(spark, job)
    with translated(spark.log):
        spark.ahead[_compiled_of(job)] = _records(spark, job)


def forget(spark: Spark, job: Job) -> None:
    """What was compiled ahead of a flow that somebody else runs."""
    spark.ahead.pop(_compiled_of(job), None)


def start(spark: Spark, job: Job, known: frozenset[str] | None = None) -> Any:
    """Starts the flow's query, inside `storing` if it writes stores and `deciding` if it decides; gives PySpark's
    StreamingQuery. `known`: the runs that it may take the flow from; None: from whoever has it."""
    client = java_client(job.broker)
    if job.mode == "realtime":
        _check_pace(spark, job)
    if job.commits:
        check_master(spark.session.sparkContext.master, job)
    with translated(spark.log):
        records = spark.ahead.pop(_compiled_of(job), None) or _records(spark, job)
        home = str(job.checkpoint.spark)
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
        elif job.dry:
            writer = write_nowhere(spark, writer, realtime=job.mode == "realtime")
        else:
            write_log(spark, writer, roomy, realtime=job.mode == "realtime")
        return _TRIGGERS[job.mode](writer, job).start()


def _compiled_of(job: Job) -> str:
    """All that its compiled form depends on, beside the plan of the app, of which a driver has one. A broker may have
    moved meanwhile, or have another certificate."""
    client = hash(frozenset(java_client(job.broker).items()))
    return f"{job.flow.name} {job.checkpoint.spark} {job.mode} {job.span} {job.only_stores} {job.source()} {client}"


def _records(spark: Spark, job: Job) -> Any:
    """The flow compiled: the frame of the records that it writes."""
    source = read_log(spark, job.source(), java_client(job.broker))
    home, arrival = str(job.checkpoint.spark), job.mode == "realtime"
    records = Compiler(job.plan, job.flow, Chain(spark), home, arrival=arrival).records(source)
    if job.span.emit_from is not None:
        records = records.where((records["time"] >= micros(job.span.emit_from)) | records["time"].isNull())
    return records.where(records["topic"].isNull()) if job.only_stores else records


_TRIGGERS: dict[str, Callable[[Any, Job], Any]] = {
    "live": lambda writer, job: writer.trigger(processingTime=f"{millis(job.pace)} milliseconds"),
    "history": lambda writer, _: writer.trigger(availableNow=True),
    # The source ends an interval sooner, by the clock; while no twin answers it puts that off (jvm/Ending.scala).
    "realtime": lambda writer, job: writer.trigger(realTime=f"{2 * millis(job.pace)} milliseconds"),
}


def _check_pace(spark: Spark, job: Job) -> None:
    """Spark's own least is ours, too; it would refuse a shorter one each time it is started anew."""
    allowed = spark.session.conf.get("spark.sql.streaming.realTimeMode.minBatchDuration")  # "5000ms", or set: "5000"
    least = timedelta(milliseconds=int(allowed.removesuffix("ms")))
    if job.pace < least:
        raise ModeRefused(
            f"a real-time interval of {show(job.pace)} is too short",
            why=f"at its end rows wait until the state is safe; {show(least)} is the least",
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
