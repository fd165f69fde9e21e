"""A table of the lake as a Spark DataFrame, from the files it is made of now: no Delta jar works on this Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.base.errors import StoreRefused
from headrace.spark.session import Spark
from headrace.stores import lake_tables
from headrace.stores.lake_tables import Snapshot

_FILE = "_file"


def read_lake(spark: Spark, folder: Path) -> Any:
    """The rows at one version; what is written later is not in them."""
    from pyspark.sql.types import StructType

    found = lake_tables.snapshot(folder)
    schema = StructType.fromJson(json.loads(found.schema))
    if not found.files:
        return spark.session.createDataFrame([], schema)
    own = StructType([field for field in schema if field.name not in found.partition])
    rows = spark.session.read.schema(own).option("recursiveFileLookup", True).parquet(*found.files)
    return _with_partitions(spark, rows, found, schema) if found.partition else rows


def _with_partitions(spark: Spark, rows: Any, found: Snapshot, schema: Any) -> Any:
    """Values come from Delta's log: Spark would guess types from the directories, and misread what is not ASCII."""
    import pyspark.sql.functions as sf
    from pyspark.sql.types import StringType, StructField, StructType

    of = StructType([StructField(_FILE, StringType()), *(schema[name] for name in found.partition)])
    values = [(Path(file).name, *parts) for file, parts in found.files.items()]
    if len({name for name, *_ in values}) < len(values):
        raise StoreRefused(
            "two files of the table have one name, in two directories",
            why="rows are matched with their partition by the name of their file; Delta's writers never give one twice",
            fix="rewrite it by Delta's own compaction (DeltaTable(...).optimize.compact()), or ask by `headrace query`",
        )
    files = spark.session.createDataFrame(values, of)
    joined = rows.withColumn(_FILE, sf.col("_metadata.file_name")).join(sf.broadcast(files), _FILE)
    return joined.select(*schema.names)
