"""The stores of a flow: your own where settings name them, else the embedded ones; the lake in its directory."""

from __future__ import annotations

from headrace.base.settings import Settings
from headrace.model.target import FeatureRows, LakeTable, ParquetFiles, PostgresTable, RedisKeys
from headrace.ops import endpoints
from headrace.plan.plan import Exit, Flow
from headrace.stores.store import Store


def stores_of(flow: Flow, settings: Settings) -> tuple[Store, ...]:
    """In the order the flow commits them. No connection is made here."""
    return tuple(store_of(leaving, settings) for leaving in flow.stores)


def store_of(leaving: Exit, settings: Settings) -> Store:
    columns, guarantee = leaving.columns, leaving.guarantee
    match leaving.target:
        case PostgresTable() as table:
            from headrace.stores.postgres import PostgresStore

            return PostgresStore(endpoints.postgres(settings), table, columns, guarantee)
        case FeatureRows() as rows:
            from headrace.stores.redis_sets import RedisSets

            return RedisSets(endpoints.redis(settings), rows, columns, guarantee)
        case RedisKeys() as keys:
            from headrace.stores.redis import RedisStore

            return RedisStore(endpoints.redis(settings), keys, columns, guarantee)
        case LakeTable() as table:
            from headrace.stores.lake import LakeStore

            return LakeStore(settings.lake, table, columns, guarantee)
        case ParquetFiles() as files:
            from headrace.stores.files import FilesStore

            return FilesStore(settings.files, files, columns, guarantee)
    raise AssertionError(f"{leaving.target} is no store")
