"""Features in Redis: the contract of stores, and sets that hold a row once and as long as it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from headrace.base.clock import from_micros
from headrace.base.errors import StoreLost, StoreUnreachable, TableMismatch, TableMissing
from headrace.expr.types import TEXT, TIME, Column, Columns, Type, list_of
from headrace.model.output import Guarantee
from headrace.model.target import FeatureRows, Target
from headrace.model.target import redis as declare
from headrace.stores.redis import RedisStore
from headrace.stores.redis_reader import RedisReader
from headrace.stores.redis_sets import RedisSets
from headrace.stores.store import Store
from tests.stores.bench import SMALL, Bench, Row, by_key, from_wire
from tests.stores.contract import A, B, Contract

MINUTE = 60_000_000
AT = datetime(2026, 11, 3, 15, tzinfo=UTC)


class SetBench(Bench):
    atomic = False

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.url = url

    def target(self, key: str = "k", **more: Any) -> FeatureRows:
        days = {"reach": timedelta(days=30), "lateness": timedelta(hours=1), "ttl": timedelta(days=31)}
        given: dict[str, Any] = {"values": (("n", "n"),), "id": "", "rows": 0} | days | more
        return FeatureRows(name=f"{self.name}:{{{key}}}", key=(key,), **given)

    def recipe(self, target: Target, columns: Columns, guarantee: Guarantee) -> partial[Store]:
        assert isinstance(target, FeatureRows)
        values = tuple((column.name, column.name) for column in columns if column.name not in target.key)
        return partial(RedisSets, self.url, replace(target, values=values), columns, guarantee)

    def rows(self, columns: Columns = SMALL) -> list[Row]:
        found: list[Row] = []
        values = [column for column in columns if column.name != "k"]
        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            for key in client.scan_iter(match=f"{self.name}:*", count=1_000):
                for _, _, *row in map(json.loads, client.zrange(key, 0, -1)):  # type: ignore[arg-type]
                    told = [_back(value, c.type) for value, c in zip(row, values, strict=False)]
                    given = dict(zip([column.name for column in values], told, strict=False))
                    found.append({c.name: given.get(c.name) for c in columns} | {"k": key.split(":", 1)[1]})
        return found

    def times(self, key: str) -> list[int]:
        """Of the rows that a key remembers, in minutes."""
        with redis.Redis.from_url(self.url) as client:
            return [json.loads(member)[0] // MINUTE for member in client.zrange(f"{self.name}:{key}", 0, -1)]  # type: ignore[union-attr]


def _back(value: Any, type: Type) -> Any:
    if value is not None and type == TIME:
        return from_micros(value)
    if value is not None and type == list_of(TIME):
        return list(map(from_micros, value))
    return from_wire(value, type)


@pytest.fixture
def bench(tmp_path: Path, redis_url: str) -> Iterator[SetBench]:
    bench = SetBench(tmp_path, redis_url)
    yield bench
    bench.close()


class TestSets(Contract):
    def test_an_added_column_works(self, bench: Bench) -> None:
        """It does not: rows from before would lack it, and figures over them be wrong without saying so."""
        bench.store().commit(bench.batch(0, [A]))
        with pytest.raises(TableMismatch, match="they remember k, n there, and k, n, city here"):
            bench.store((*SMALL, Column("city", TEXT, nullable=True)))

    def test_a_column_that_is_gone_is_null_in_new_rows(self, bench: Bench) -> None:
        """Nor this: a row's values are known by their place."""
        bench.store().commit(bench.batch(0, [A]))
        with pytest.raises(TableMismatch, match="they remember k, n there, and k here"):
            bench.store(SMALL[:1])


def at(*minutes: int, n: int = 1) -> list[Row]:
    return [{"k": "a", "n": n, "_time": minute * MINUTE, "_id": f"p{minute}"} for minute in minutes]


def opened(bench: SetBench, **more: Any) -> RedisSets:
    store = RedisSets(bench.url, bench.target(**more), SMALL)
    store.open("bank/v1/card")
    return store


def test_a_row_is_a_member_of_its_keys_set(bench: SetBench) -> None:
    opened(bench).commit(bench.batch(0, at(10, n=7)))
    with redis.Redis.from_url(bench.url) as client:
        assert client.zrange(f"{bench.name}:a", 0, -1, withscores=True) == [(b'[600000000,"p10",7]', 600_000_000.0)]


def test_a_row_that_is_written_twice_is_there_once(bench: SetBench) -> None:
    store = opened(bench)
    store.commit(bench.batch(0, at(1, 2)))
    store.commit(bench.batch(1, at(2, 3)))
    assert bench.times("a") == [1, 2, 3]


def test_by_an_id_of_their_own_rows_are_known_again(bench: SetBench) -> None:
    columns = (*SMALL, Column("payment_id", TEXT))
    store = RedisSets(bench.url, bench.target(id="payment_id"), columns)
    store.open("bank/v1/card")
    rows = [{"k": "a", "n": 1, "payment_id": "p1", "_id": id, "_time": MINUTE} for id in ("x", "y")]
    store.commit(bench.batch(0, rows, columns=columns))
    assert bench.times("a") == [1]


def test_rows_are_kept_while_somebody_not_too_late_can_ask_for_them(bench: SetBench) -> None:
    store = opened(bench, reach=timedelta(minutes=10), lateness=timedelta(minutes=5))
    store.commit(bench.batch(0, at(0, 1, 2, 15)))
    assert bench.times("a") == [1, 2, 15]  # one of 10 may still come: its window begins after 0
    store.commit(bench.batch(1, at(12, 17)))
    assert bench.times("a") == [12, 15, 17]


def test_the_rows_before_are_kept_however_old(bench: SetBench) -> None:
    store = opened(bench, reach=timedelta(0), lateness=timedelta(minutes=5), rows=2)
    store.commit(bench.batch(0, at(0, 1, 2, 3)))
    assert bench.times("a") == [0, 1, 2, 3]
    store.commit(bench.batch(1, at(100)))
    assert bench.times("a") == [2, 3, 100]


def test_a_quiet_key_is_forgotten_after_its_ttl(bench: SetBench) -> None:
    opened(bench, ttl=timedelta(hours=2)).commit(bench.batch(0, at(1)))
    with redis.Redis.from_url(bench.url) as client:
        assert 7_190 < client.ttl(f"{bench.name}:a") <= 7_200  # type: ignore[operator]


def test_times_are_exact_as_scores(bench: SetBench) -> None:
    last = datetime(2255, 1, 1, tzinfo=UTC)
    micros = [int(moment.timestamp()) * 1_000_000 + extra for moment in (AT, last) for extra in (0, 1)]
    rows = [{"k": "a", "n": 1, "_time": time} for time in reversed(micros)]
    opened(bench, reach=timedelta(days=100_000)).commit(bench.batch(0, rows))
    with redis.Redis.from_url(bench.url) as client:
        found: Any = client.zrange(f"{bench.name}:a", 0, -1, withscores=True)
    assert [int(score) for _, score in found] == [json.loads(member)[0] for member, _ in found] == micros


# -- reading


def test_sets_are_read_in_one_go_and_a_key_that_is_not_there_is_empty(bench: SetBench) -> None:
    opened(bench).commit(bench.batch(0, [*at(2, 1), {"k": "b", "n": 5, "_time": 0, "_id": "q"}]))
    reader = RedisReader(bench.url, [(bench.target(), SMALL)])
    assert reader.read([("b",), ("c",)]) == [([[0, "q", 5]],), ([],)]
    assert reader.read([("a",)]) == [([[MINUTE, "p1", 1], [2 * MINUTE, "p2", 1]],)]
    reader.close()


def test_stores_that_share_their_keys_are_read_together(bench: SetBench) -> None:
    opened(bench).commit(bench.batch(0, at(1)))
    beside = replace(bench.target(), name=f"labels.{bench.target().name}")
    other = RedisSets(bench.url, beside, SMALL)
    other.open("bank/v1/labels")
    other.commit(bench.batch(0, at(2)))
    reader = RedisReader(bench.url, [(bench.target(), SMALL), (beside, SMALL)])
    assert reader.read([("b",), ("a",)]) == [([], []), ([[MINUTE, "p1", 1]], [[2 * MINUTE, "p2", 1]])]
    other.drop()


def test_what_nobody_wrote_or_others_wrote_is_not_read(bench: SetBench) -> None:
    reader = RedisReader(bench.url, [(bench.target(), SMALL)])
    with pytest.raises(TableMissing, match="no features yet"):
        reader.read([("a",)])
    store = opened(bench)
    other = replace(bench.target(), values=(("n", "n * 2"),))
    with pytest.raises(TableMismatch, match=r"remember k, n there, and k, n \* 2 here"):
        RedisReader(bench.url, [(other, SMALL)]).read([("a",)])
    store.commit(bench.batch(0, [A]))
    with redis.Redis.from_url(bench.url) as client:
        client.delete(f"headrace_ledger:{bench.target().name}")
    with pytest.raises(StoreLost):
        store.commit(bench.batch(1, [B]))
    with pytest.raises(StoreLost, match="lost rows"):
        reader.read([("a",)])
    store.drop()
    opened(bench).commit(bench.batch(0, [A]))
    assert reader.read([("a",)]) == [([[0, "id-0", 1]],)]
    assert by_key(bench.rows()) == [A]

    store.drop()  # a reader that has read before is told, too
    bench.store((*SMALL, Column("city", TEXT)))
    with pytest.raises(TableMismatch, match="they remember k, n, city there"):
        reader.read([("a",)])


def test_a_store_that_is_to_reach_back_further_is_refused(bench: SetBench) -> None:
    opened(bench, rows=2)
    opened(bench, reach=timedelta(days=1), rows=1)  # less is fine; from now on rows go sooner
    for more in ({"reach": timedelta(days=2)}, {"reach": timedelta(days=1), "rows": 2}):
        with pytest.raises(TableMismatch, match="reach back further"):
            opened(bench, **more)


def test_keys_that_hold_rows_cannot_hold_features(bench: SetBench) -> None:
    plain = RedisStore(bench.url, declare(bench.target().name), SMALL)
    plain.open("bank/v1/spend")
    with pytest.raises(TableMismatch, match="they hold rows there, and features here"):
        opened(bench)
    plain.close()


def test_a_redis_that_does_not_answer_is_told(bench: SetBench) -> None:
    reader = RedisReader("redis://127.0.0.1:1/0", [(bench.target(), SMALL)])
    with pytest.raises(StoreUnreachable, match=r"Redis at 127\.0\.0\.1:1 does not answer") as told:
        reader.read([("a",)])
    assert "headrace up" in told.value.fix
