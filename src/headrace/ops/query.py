"""Questions to the lake: which tables it has, and SQL over them while flows write."""

from __future__ import annotations

from headrace.base.settings import Settings
from headrace.stores import lake_sql, lake_tables
from headrace.stores.lake_sql import Answer
from headrace.stores.lake_tables import TableInfo


def query(settings: Settings, sql: str) -> Answer:
    """The answer of DuckDB, which sees the tables as lake.<name>, and nothing else."""
    return lake_sql.ask(settings.lake, sql)


def tables(settings: Settings) -> list[TableInfo]:
    return [lake_tables.info(settings.lake / name) for name in lake_tables.names(settings.lake)]
