"""The checkers catch stores that are really weakened: without a ledger an older batch replaces a newer one, without a
fence a driver that was succeeded writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.base.errors import Fenced
from headrace.chaos.books import Books
from headrace.chaos.check import Finding, check_stores
from headrace.chaos.outputs import Outputs
from headrace.chaos.stored import Stored
from headrace.model.output import Guarantee
from headrace.stores.postgres import PostgresStore
from headrace.stores.redis import RedisStore
from tests.stores.bench import Bench
from tests.stores.conftest import postgres_url, redis_url  # noqa: F401
from tests.stores.test_postgres import PostgresBench
from tests.stores.test_redis import RedisBench

OLD, NEW, STRANGE = ([{"k": "a1", "n": cents}] for cents in (100, 200, 999))


@pytest.fixture(params=["postgres", "redis"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == "postgres":
        made: Bench = PostgresBench(tmp_path, request.getfixturevalue("postgres_url"), keyed=True)
    else:
        made = RedisBench(tmp_path, request.getfixturevalue("redis_url"))
    yield made
    made.close()


def verdict(bench: Bench) -> Finding:
    """On balances of one account, which should be those of NEW."""
    should, found = {"a1": (200, 1)}, {row["k"]: (row["n"], 1) for row in bench.rows()}
    own = "balances" if isinstance(bench, PostgresBench) else "cached"
    stored = Stored(**({"balances": should, "cached": should} | {own: found}))
    return check_stores(Books(balances=Counter(a1=200), moves=Counter(a1=1)), Outputs(), stored)


@pytest.mark.parametrize(("guarantee", "sound"), [("exactly-once", True), ("at-least-once", False)])
def test_without_its_ledger_an_older_batch_replaces_a_newer_one(
    bench: Bench, guarantee: Guarantee, sound: bool
) -> None:
    store = bench.store(guarantee=guarantee)
    for number, rows in ((0, OLD), (1, NEW), (0, OLD)):
        store.commit(bench.batch(number, rows))
    assert verdict(bench).sound == sound


def test_a_driver_that_was_succeeded_writes_nothing(bench: Bench) -> None:
    zombie, newer = bench.store(), bench.store()
    newer.commit(bench.batch(0, OLD))
    with pytest.raises(Fenced):
        zombie.commit(bench.batch(1, STRANGE))
    newer.commit(bench.batch(1, NEW))
    assert verdict(bench).sound


def test_without_a_fence_it_writes_in_place_of_the_newer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = "if number ~= ours or holder ~= name then return 'fenced' end"
    assert fence in RedisStore.WRITE
    monkeypatch.setattr(RedisStore, "WRITE", RedisStore.WRITE.replace(fence, ""))
    monkeypatch.setattr(PostgresStore, "_check_fence", lambda *_: None)
    zombie, newer = bench.store(), bench.store()
    newer.commit(bench.batch(0, OLD))
    if isinstance(bench, PostgresBench):
        zombie.close()  # the newer driver has ended its session
    zombie.commit(bench.batch(1, STRANGE))
    newer.commit(bench.batch(1, NEW))  # its ledger has that batch
    assert not verdict(bench).sound
