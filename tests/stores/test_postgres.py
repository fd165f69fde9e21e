"""PostgreSQL as a store: the contract, with a key and without, and what only a database can do wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from headrace.base.errors import StoreRefused, StoreUnreachable, TableMismatch
from headrace.base.settings import Settings
from headrace.expr.types import Columns, ListType
from headrace.model.output import Guarantee
from headrace.model.target import PostgresTable, Target, postgres
from headrace.stores import away, postgres_line
from headrace.stores.postgres import PostgresStore, _passes
from headrace.stores.store import Store
from tests.stores.bench import SMALL, Bench, Row, by_key, from_wire
from tests.stores.conftest import frozen, killed
from tests.stores.contract import A, Appended, B, C, Keyed

CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'headrace %'"
"""Ends all sessions of stores."""


class PostgresBench(Bench):
    def __init__(self, folder: Path, url: str, *, keyed: bool) -> None:
        super().__init__(folder)
        self.url = url
        self.keyed = keyed

    def target(self, key: str = "k") -> PostgresTable:
        return postgres(self.name, key=key if self.keyed else None)

    def recipe(self, target: Target, columns: Columns, guarantee: Guarantee) -> partial[Store]:
        return partial(PostgresStore, self.url, target, columns, guarantee)

    def rows(self, columns: Columns = SMALL) -> list[Row]:
        names = ", ".join(f'"{column.name}"' for column in columns)
        with psycopg.connect(self.url) as connection:
            connection.execute("SET timezone = 'UTC'")
            if connection.execute("SELECT to_regclass(%s)", (self.name,)).fetchone() == (None,):
                return []
            found = connection.execute(f"SELECT {names} FROM {self.name}").fetchall()
        return [
            {
                column.name: from_wire(value, column.type) if isinstance(column.type, ListType) else value
                for column, value in zip(columns, row, strict=True)
            }
            for row in found
        ]


@pytest.fixture
def bench(tmp_path: Path, postgres_url: str) -> Iterator[PostgresBench]:
    bench = PostgresBench(tmp_path, postgres_url, keyed=True)
    yield bench
    bench.close()


class TestKeyed(Keyed):
    pass


class TestAppended(Appended):
    @pytest.fixture
    def bench(self, tmp_path: Path, postgres_url: str) -> Iterator[PostgresBench]:
        bench = PostgresBench(tmp_path, postgres_url, keyed=False)
        yield bench
        bench.close()


def run(bench: PostgresBench, text: str) -> None:
    with psycopg.connect(bench.url, autocommit=True) as connection:
        connection.execute(text)


def test_a_server_that_does_not_answer_is_told_at_once(bench: PostgresBench) -> None:
    bench.url = "postgresql://headrace:secret@127.0.0.1:1/headrace"
    with pytest.raises(StoreUnreachable, match=r"PostgreSQL at 127\.0\.0\.1:1 does not answer") as told:
        bench.store()
    assert "headrace up" in told.value.fix
    assert "secret" not in str(told.value)


def test_a_wrong_password_is_no_absence(bench: PostgresBench) -> None:
    bench.url = re.sub(r":[^:@]+@", ":wrong@", bench.url)
    with pytest.raises(StoreRefused, match="password authentication failed"):
        bench.store()


def test_a_url_that_cannot_be_read_is_not_repeated(bench: PostgresBench) -> None:
    bench.url = "postgresql://headrace:sec ret@:nowhere:/"
    with pytest.raises(StoreRefused, match="cannot be read") as told:
        bench.store()
    assert "sec ret" not in str(told.value)


def test_a_table_of_somebody_else_is_used_if_it_fits_and_never_dropped(bench: PostgresBench) -> None:
    made = f"CREATE TABLE {bench.name} (n bigint, k text, note text DEFAULT 'theirs', UNIQUE (k))"
    run(bench, made)
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    with pytest.raises(StoreRefused, match="was not made by Headrace"):
        store.drop()
    assert bench.rows() == [A]


@pytest.mark.parametrize(
    ("made", "difference"),
    [
        ("(k text PRIMARY KEY, n integer)", "n is integer there, and bigint here"),
        ("(k text, n bigint)", "its key is none there, and k here"),
        ("(k text PRIMARY KEY, n bigint, note text NOT NULL)", "note must not be null there, and is missing here"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_the_difference(
    bench: PostgresBench, made: str, difference: str
) -> None:
    run(bench, f"CREATE TABLE {bench.name} {made}")
    with pytest.raises(TableMismatch, match=difference):
        bench.store()


def test_appended_rows_are_not_put_into_a_table_with_a_key_of_theirs(bench: PostgresBench) -> None:
    bench.store()
    bench.keyed = False
    with pytest.raises(TableMismatch, match="its key is k there, and here rows are appended"):
        bench.store()


def test_appended_rows_have_their_id(bench: PostgresBench) -> None:
    bench.keyed = False
    bench.store().commit(bench.batch(0, [{**A, "_id": "id-of-a"}]))
    with psycopg.connect(bench.url) as connection:
        assert connection.execute(f"SELECT k, hr_id FROM {bench.name}").fetchall() == [("a", "id-of-a")]


def test_what_postgresql_refuses_stops_the_batch_and_nothing_of_it_stays(bench: PostgresBench) -> None:
    store = bench.store()
    run(bench, f"ALTER TABLE {bench.name} ADD CONSTRAINT small CHECK (n < 10)")
    batch = bench.batch(0, [A, {"k": "b", "n": 10}])
    with pytest.raises(StoreRefused, match="small"):
        store.commit(batch)
    assert bench.rows() == []
    run(bench, f"ALTER TABLE {bench.name} DROP CONSTRAINT small")
    store.commit(batch)
    assert len(bench.rows()) == 2


def test_text_with_nul_is_refused_not_changed(bench: PostgresBench) -> None:
    with pytest.raises(StoreRefused, match="0x00"):
        bench.store().commit(bench.batch(0, [{"k": "a\0b", "n": 1}]))


def test_a_connection_that_was_cut_is_made_again(bench: PostgresBench) -> None:
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    run(bench, CUT)
    store.commit(bench.batch(1, [B]))
    run(bench, CUT)
    store.commit(bench.batch(1, [C]))
    assert by_key(bench.rows()) == [A, B]


def test_a_session_that_is_ended_in_the_middle_of_a_batch_is_made_again(bench: PostgresBench) -> None:
    with bench.driver(bench.batch(0, [A]), failpoint="before-rows@0@stop") as slow:
        slow.await_stop()
        run(bench, CUT)
        assert slow.go_on() == "ok"
    assert bench.rows() == [A]


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (psycopg.errors.AdminShutdown, True),
        (psycopg.errors.DeadlockDetected, True),
        (psycopg.errors.IdleInTransactionSessionTimeout, True),
        (psycopg.errors.DiskFull, False),
        (psycopg.errors.CheckViolation, False),
        (psycopg.errors.InsufficientPrivilege, False),
    ],
)
def test_only_what_passes_by_itself_is_tried_again(error: type[psycopg.Error], passes: bool) -> None:
    assert _passes(error()) == passes


def test_a_lock_of_somebody_else_is_waited_for_and_then_told(
    bench: PostgresBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.stores.away.PATIENCE", 0.0)
    store = bench.store()
    with psycopg.connect(bench.url) as connection:
        connection.execute(f"LOCK TABLE {bench.name}")
        with pytest.raises(StoreUnreachable, match="waits for a lock"):
            store.commit(bench.batch(0, [A]))
    store.commit(bench.batch(0, [A]))
    assert bench.rows() == [A]


def test_two_names_in_one_flow_do_not_fence_each_other(bench: PostgresBench, tmp_path: Path) -> None:
    other = PostgresBench(tmp_path, bench.url, keyed=True)
    one, two = bench.store(), other.store()
    one.commit(bench.batch(0, [A]))
    two.commit(other.batch(0, [B]))
    assert (bench.rows(), other.rows()) == ([A], [B])
    other.close()


def test_a_server_that_is_killed_is_waited_for_and_has_all_it_took(bench: PostgresBench, settings: Settings) -> None:
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    with killed(settings, "postgres"):
        store.commit(bench.batch(1, [B]))
    store.commit(bench.batch(1, [C]))
    assert by_key(bench.rows()) == [A, B]


def test_a_server_that_stands_still_is_away_and_has_the_batch_once_it_moves(
    bench: PostgresBench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_line, "SILENCE", 0.2)
    monkeypatch.setattr(away, "PATIENCE", 1)
    store = bench.store()
    store.commit(bench.batch(0, [A]))
    with frozen(settings, "postgres"), pytest.raises(StoreUnreachable, match="does not answer"):
        store.commit(bench.batch(1, [B]))
    store.open("bank/v1/spend")
    store.commit(bench.batch(1, [B]))
    assert by_key(bench.rows()) == [A, B]


def test_a_server_that_is_only_slow_is_waited_for(bench: PostgresBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_line, "SILENCE", 0.1)
    store = bench.store()
    body = "BEGIN PERFORM pg_sleep(1); RETURN NEW; END"
    run(bench, f"CREATE FUNCTION {bench.name}_slow() RETURNS trigger LANGUAGE plpgsql AS '{body}'")
    run(bench, f"CREATE TRIGGER slow BEFORE INSERT ON {bench.name} FOR EACH ROW EXECUTE FUNCTION {bench.name}_slow()")
    store.commit(bench.batch(0, [A]))
    assert bench.rows() == [A]
