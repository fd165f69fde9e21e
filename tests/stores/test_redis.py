"""Redis as a store: the contract, keys that never meet, and what becomes of it when Redis forgets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import redis

from headrace.base.errors import Fenced, StoreLost, StoreRefused, StoreUnreachable, TableMismatch
from headrace.base.settings import Settings
from headrace.expr.types import INT, TEXT, Column, Columns
from headrace.model.output import Guarantee
from headrace.model.target import GONE, RedisKeys, Target
from headrace.model.target import redis as declare
from headrace.stores import away
from headrace.stores import redis as module
from headrace.stores.redis import RedisStore
from headrace.stores.redis_reader import RedisReader
from headrace.stores.redis_rows import key_texts
from headrace.stores.store import Store
from tests.stores.bench import SMALL, Bench, Row, by_key, from_wire
from tests.stores.conftest import frozen, killed
from tests.stores.contract import A, B, C, Keyed


class RedisBench(Bench):
    atomic = False

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.url = url

    def target(self, key: str = "k") -> RedisKeys:
        return declare(f"{self.name}:" + ":".join(f"{{{name.strip()}}}" for name in key.split(",")))

    def recipe(self, target: Target, columns: Columns, guarantee: Guarantee) -> partial[Store]:
        return partial(RedisStore, self.url, target, columns, guarantee)

    def rows(self, columns: Columns = SMALL) -> list[Row]:
        with redis.Redis.from_url(self.url) as client:
            keys = list(client.scan_iter(match=f"{self.name}:*", count=1_000))
            values = client.mget(keys) if keys else []
        return [
            {column.name: from_wire(row.get(column.name), column.type) for column in columns}
            for row in map(json.loads, values)
        ]


@pytest.fixture
def bench(tmp_path: Path, redis_url: str) -> Iterator[RedisBench]:
    bench = RedisBench(tmp_path, redis_url)
    yield bench
    bench.close()


class TestKeyed(Keyed):
    pass


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


def test_a_reader_gets_the_row_as_json(bench: RedisBench, client: redis.Redis) -> None:
    bench.store().commit(bench.batch(0, [A]))
    assert client.get(f"{bench.name}:a") == '{"k":"a","n":1}'


def test_values_live_for_their_ttl_from_their_last_write(bench: RedisBench, client: redis.Redis) -> None:
    store = RedisStore(bench.url, declare(f"{bench.name}:{{k}}", ttl="1 h"), SMALL)
    store.open("bank/v1/spend")
    store.commit(bench.batch(0, [A]))
    assert 3_590 < client.ttl(f"{bench.name}:a") <= 3_600
    client.expire(f"{bench.name}:a", 10)
    store.commit(bench.batch(1, [A]))
    assert client.ttl(f"{bench.name}:a") > 3_590
    store.close()


def test_two_rows_never_share_a_key() -> None:
    values = ["a", "a:", ":a", "a:b", "%3A", "%", "a%3Ab", "", ":", "%:"]
    pairs = list(product(values, values))
    keys = key_texts("x:{one}:{other}", [[one for one, _ in pairs], [other for _, other in pairs]])
    assert len(set(keys)) == len(pairs)


@pytest.mark.parametrize(
    ("pattern", "key"),
    [("{}/{{k}}", "key"), ("{}:{{n}}", "its key is k there, and n here"), ("{}:x:{{k}}", "begin with the same words")],
)
def test_keys_of_one_store_cannot_be_those_of_another(bench: RedisBench, pattern: str, key: str) -> None:
    bench.store()
    target = declare(pattern.format(bench.name))
    other = RedisStore(bench.url, target, (Column("k", TEXT), Column("n", INT)))
    if key == "key":
        other.open("bank/v1/other")  # t/... and t:... begin differently
    else:
        with pytest.raises(TableMismatch, match=key):
            other.open("bank/v1/other")
    other.close()


def test_a_drop_removes_only_its_own_keys(bench: RedisBench, client: redis.Redis) -> None:
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    client.set(f"{bench.name}-other", "theirs")
    store.drop()
    assert client.get(f"{bench.name}-other") == "theirs"
    assert list(client.scan_iter(match=f"headrace_ledger:{bench.name}*")) == []


def test_a_server_that_does_not_answer_is_told_at_once(bench: RedisBench) -> None:
    bench.url = "redis://:secret@127.0.0.1:1/0"
    with pytest.raises(StoreUnreachable, match=r"Redis at 127\.0\.0\.1:1 does not answer") as told:
        bench.store()
    assert "secret" not in str(told.value)


def test_a_wrong_password_is_no_absence(bench: RedisBench) -> None:
    bench.url = re.sub(r":[^:@]+@", ":wrong@", bench.url)
    with pytest.raises(StoreRefused, match="password"):
        bench.store()


def test_a_url_that_cannot_be_read_is_not_repeated(bench: RedisBench) -> None:
    bench.url = "redis:secret"
    with pytest.raises(StoreRefused, match="cannot be read") as told:
        bench.store()
    assert "secret" not in str(told.value)


def test_a_connection_that_was_cut_is_made_again(bench: RedisBench, client: redis.Redis) -> None:
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    client.client_kill_filter(_type="normal", skipme=True)
    client.script_flush()
    store.commit(bench.batch(1, [B]))
    client.client_kill_filter(_type="normal", skipme=True)
    store.commit(bench.batch(1, [C]))
    assert by_key(bench.rows()) == [A, B]


def test_an_older_driver_that_connects_again_is_fenced(bench: RedisBench, client: redis.Redis) -> None:
    old, new = bench.store(), bench.store()
    client.client_kill_filter(_type="normal", skipme=True)
    with pytest.raises(Fenced):
        old.commit(bench.batch(0, [A]))
    new.commit(bench.batch(0, [B]))
    assert bench.rows() == [B]


def test_a_call_of_a_lost_connection_comes_too_late(bench: RedisBench, client: redis.Redis) -> None:
    """What the old connection still had under way carries the old number."""
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    before = client.hget(f"headrace_epochs:{bench.target().name}", "bank/v1/spend")
    store.close()  # as after an error
    store.commit(bench.batch(1, [B]))
    after = client.hget(f"headrace_epochs:{bench.target().name}", "bank/v1/spend")
    assert int(after.split(":")[0]) == int(before.split(":")[0]) + 1
    assert after.split(":")[1] == before.split(":")[1]


def forget(bench: RedisBench, client: redis.Redis) -> None:
    """What a restart without a disk does, to this store alone."""
    pattern = bench.target().name
    keys = [f"headrace_ledger:{pattern}", *client.scan_iter(match=f"{bench.name}:*")]
    client.delete(*keys)


def test_a_redis_that_forgot_rows_stops_the_flow_until_it_is_rebuilt(bench: RedisBench, client: redis.Redis) -> None:
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    forget(bench, client)
    with pytest.raises(StoreLost, match="headrace rebuild"):
        store.commit(bench.batch(1, [B]))
    with pytest.raises(StoreLost):
        bench.store()
    store.drop()
    bench.store().commit(bench.batch(0, [A, B]))
    assert by_key(bench.rows()) == [A, B]


def test_it_is_noticed_too_by_a_flow_that_was_started_again_meanwhile(bench: RedisBench, client: redis.Redis) -> None:
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    client.delete(f"headrace_epochs:{bench.target().name}")
    client.hdel("headrace_stores", bench.target().prefix)
    forget(bench, client)
    with pytest.raises(StoreLost):
        store.open("bank/v1/spend")


def test_one_that_is_only_a_cache_goes_on(bench: RedisBench, client: redis.Redis) -> None:
    store = bench.store(guarantee="at-most-once")
    store.commit(bench.batch(0, [A]))
    client.delete(f"headrace_epochs:{bench.target().name}")
    forget(bench, client)
    store.commit(bench.batch(1, [B]))  # meets the empty Redis
    store.commit(bench.batch(2, [C]))
    assert by_key(bench.rows()) == [C]


@pytest.mark.parametrize(("policy", "ttl"), [("allkeys-lru", None), ("volatile-lru", "1 h")])
def test_a_redis_that_evicts_keys_is_refused(
    bench: RedisBench, client: redis.Redis, policy: str, ttl: str | None
) -> None:
    client.config_set("maxmemory", "1gb")
    client.config_set("maxmemory-policy", policy)
    target = declare(f"{bench.name}:{{k}}", ttl=ttl)
    try:
        with pytest.raises(StoreRefused, match="evicts keys"):
            RedisStore(bench.url, target, SMALL).open("bank/v1/spend")
        cache = RedisStore(bench.url, target, SMALL, "at-most-once")
        cache.open("bank/v1/spend")
        cache.close()
        if ttl:  # it takes only keys that expire
            bench.store()
    finally:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "0")


def test_a_server_that_is_killed_is_waited_for_and_has_all_it_took(bench: RedisBench, settings: Settings) -> None:
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    with killed(settings, "redis"):
        store.commit(bench.batch(1, [B]))
    store.commit(bench.batch(1, [C]))
    assert by_key(bench.rows()) == [A, B]


def test_a_server_that_stands_still_is_away_and_has_the_batch_once_it_moves(
    bench: RedisBench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.5)
    monkeypatch.setattr(away, "PATIENCE", 0.6)
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    with frozen(settings, "redis"), pytest.raises(StoreUnreachable, match="does not answer"):
        store.commit(bench.batch(1, [B]))
    store.commit(bench.batch(1, [B]))
    assert by_key(bench.rows()) == [A, B]


def test_rows_are_read_by_key_and_none_where_nobody_wrote_one(bench: RedisBench) -> None:
    reader = RedisReader(bench.url, [(bench.target(), SMALL)])
    assert reader.read([("a",)]) == [(None,)]  # a table that is empty
    store = bench.store()
    store.commit(bench.batch(0, [A, B]))
    assert reader.read([("a",), ("c",)]) == [(b'{"k":"a","n":1}',), (None,)]
    store.commit(bench.batch(1, [A | {GONE: True}]))
    assert reader.read([("a",)]) == [(None,)]
    with pytest.raises(TableMismatch, match="n is int there, and text here"):
        RedisReader(bench.url, [(bench.target(), (SMALL[0], Column("n", TEXT)))]).read([("b",)])
    reader.close()
