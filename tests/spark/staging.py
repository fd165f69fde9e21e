"""A stream of chain rows fed by hand, for tests of stages without a log."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark.sql.functions as sf
from pyspark.sql import DataFrame

from headrace.spark.session import Spark

NONE = -(2**63)
END = 253_402_300_799_999
CHAIN = "step int, port int, key binary, time long, before long, src int, part int, off long, id binary, payload binary"
WORDS = {
    "bigint": "int",
    "double": "float",
    "string": "text",
    "boolean": "bool",
    "binary": "bytes",
    "timestamp": "time",
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Feed:
    """A stream fed by hand: one file a batch. Spark meets the watermark of a batch in the next one."""

    def __init__(self, spark: Spark, folder: Path) -> None:
        self.spark = spark
        self.folder = folder / "feed"
        self.checkpoint = folder / "checkpoint"
        self.counts: dict[int, Any] = {}
        self.out: list[tuple[int, Any]] = []
        self.folder.mkdir()
        self.files = 0

    def put(self, rows: list[dict[str, Any]], watermark: int | None) -> None:
        """A batch's rows, and the watermark that the next batch moves to."""
        mark = [] if watermark is None else [{"step": -1, "frontier": _rfc(watermark)}]
        file = self.folder / f".{self.files}"
        file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *mark]) or "\n")
        os.utime(file, (self.files, self.files))  # Spark takes files in order of their age
        file.rename(self.folder / f"{self.files:03}.json")
        self.files += 1

    def frame(self) -> DataFrame:
        """The chain. Heartbeats pass the watermark and go no further; the odd predicate keeps the filter above it."""
        schema = CHAIN.replace("binary", "string") + ", frontier timestamp"
        read = self.spark.session.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(self.folder))
        marked = read.withWatermark("frontier", "0 seconds").where("step >= 0 or frontier < timestamp'0001-01-02'")
        return marked.select(
            "step", sf.coalesce("port", sf.lit(0)).alias("port"), sf.encode("key", "utf-8").alias("key"), "time",
            "before", "src", "part", "off", sf.unhex("id").alias("id"), sf.unbase64("payload").alias("payload"),
        )  # fmt: skip

    def stage(
        self, frame: DataFrame, steps: list[dict[str, Any]], conditions: dict[int, list[Any]], **more: Any
    ) -> DataFrame:
        spec = {"app": "a", "version": "1", "topics": ["orders", "payments"], "by_clock": False, "steps": steps} | more
        told = {ordinal: [one._jc for one in some] for ordinal, some in conditions.items()}
        return DataFrame(self.spark.jvm.Stage.apply(frame._jdf, json.dumps(spec), told), self.spark.session)

    def run(self, frame: DataFrame) -> None:
        """Takes what is there, then stops; a second run goes on from the checkpoint."""

        def keep(batch: DataFrame, number: int) -> None:
            self.out += [(number, row) for row in batch.collect()]

        query = (
            frame.writeStream.foreachBatch(keep).outputMode("update").option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        told = json.loads(self.spark.jvm.Counters.take(str(query.runId)))
        self.counts |= {int(batch): steps for batch, steps in told.items()}


def field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": _word(kind), "nullable": True}


def _word(kind: str) -> str:
    return f"list of {_word(kind[6:-1])}" if kind.startswith("array<") else WORDS.get(kind, kind)


def check_counts(terms: dict[str, int], python: list[dict[str, Any]], batch: int) -> None:
    """Rule D3 in every batch, and each term as Python counts it; keys are counted beside them."""
    terms = {term: count for term, count in terms.items() if term not in ("keys", "bytes")}
    said = python[batch]
    held = said["held"] - (python[batch - 1]["held"] if batch else 0)
    verdicts = Counter(said["verdicts"])
    expected = {
        "in": len(said["verdicts"]),
        "used": verdicts["used"] + said["used"],
        "filtered": verdicts["filtered"],
        "late": verdicts["late"],
        "dead": verdicts["nan"] + verdicts["overflow"],
        "duplicates": verdicts["duplicate"],
        "held": held,
    }
    assert terms == {term: count for term, count in expected.items() if count}
    assert expected["in"] == sum(count for term, count in expected.items() if term != "in")


def column(spark: Spark, name: str, argument: Any, *more: Any) -> Any:
    from pyspark.sql.classic.column import Column

    return Column(getattr(spark.jvm.Chain, name)(argument._jc, *more))


def base64(data: bytes) -> str:
    return b64encode(bytes(data)).decode()


def _rfc(ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sorting(told: Any) -> str:
    """What a stage told has no order between keys."""
    return json.dumps(told[:6])
