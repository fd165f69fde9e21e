"""The contract of stores as tests: a subclass gives a `bench`, and says with its base what kind of store it has."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import ClassVar

import pytest

from headrace.base.errors import Fenced, TableMismatch
from headrace.expr.types import BOOL, BYTES, FLOAT, INT, MONEY, TEXT, TIME, Column, Columns, decimal, list_of
from tests.stores.bench import FLOW, SMALL, Bench, Row, by_key

A, B, C, D = ({"k": k, "n": n} for k, n in (("a", 1), ("b", 2), ("c", 3), ("d", 4)))
MANY = [{"k": f"m{n}", "n": n} for n in range(1_500)]
"""More than a store writes at a time, if it writes in pieces."""

WIDE = (
    Column("k", TEXT),
    Column("int", INT, nullable=True),
    Column("float", FLOAT, nullable=True),
    Column("bool", BOOL, nullable=True),
    Column("text", TEXT, nullable=True),
    Column("money", MONEY, nullable=True),
    Column("fine", decimal(38, 10), nullable=True),
    Column("at", TIME, nullable=True),
    Column("bytes", BYTES, nullable=True),
    Column("texts", list_of(TEXT), nullable=True),
    Column("amounts", list_of(MONEY), nullable=True),
    Column("times", list_of(TIME), nullable=True),
)
_AT = datetime(2026, 11, 3, 15, 0, 0, 123456, UTC)
VALUES: dict[str, Row] = {
    "usual": {
        "int": 7,
        "float": 0.1,
        "bool": True,
        "text": "seven",
        "money": Decimal("12.50"),
        "fine": Decimal("1.0000000001"),
        "at": _AT,
        "bytes": b"\x00\xff",
        "texts": ["a", "b"],
        "amounts": [Decimal("1.50"), Decimal("-0.01")],
        "times": [_AT, _AT.replace(microsecond=0)],
    },
    "null": {},
    "empty": {"text": "", "bytes": b"", "texts": [], "amounts": [], "times": []},
    "edge": {
        "int": -(2**63),
        "float": -1e308,
        "bool": False,
        "text": 'Zoë "quoted", \\. and\n\\.\nnext\tline ☃ 🏦 \\N null {}',
        "money": Decimal("-9999999999999999.99"),
        "fine": Decimal("-0.0000000001"),
        "at": datetime(1, 1, 1, tzinfo=UTC),
        "texts": ["", 'a "b"', "c,d", "\n"],
        "times": [datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
    },
    "zero": {"int": 0, "float": 0.0, "money": Decimal("0.00"), "fine": Decimal("0E-10"), "text": " "},
}


class Contract:
    """Of every store."""

    REFUSED: ClassVar[tuple[Columns, ...]] = ((Column("k", TEXT), Column("n", TEXT, nullable=True)),)
    """Columns that a store of SMALL rows cannot hold."""

    def test_a_batch_is_there_after_its_commit(self, bench: Bench) -> None:
        bench.store().commit(bench.batch(0, [A, B], [C]))
        assert by_key(bench.rows()) == [A, B, C]

    def test_a_batch_that_comes_again_changes_nothing(self, bench: Bench) -> None:
        store = bench.store()
        store.commit(bench.batch(3, [A]))
        store.commit(bench.batch(3, [B]))  # other rows than before, so that it shows if they are written
        assert by_key(bench.rows()) == [A]
        store.commit(bench.batch(2, [B]))
        assert by_key(bench.rows()) == [A]

    def test_nor_does_it_after_a_crash(self, bench: Bench) -> None:
        bench.store().commit(bench.batch(3, [A]))
        again = bench.store()
        again.commit(bench.batch(3, [B]))
        again.commit(bench.batch(7, [C]))  # batches without rows for a store pass it by
        assert by_key(bench.rows()) == [A, C]

    def test_a_store_can_be_closed_and_opened_again(self, bench: Bench) -> None:
        store = bench.store()
        store.commit(bench.batch(0, [A]))
        store.close()
        store.close()
        store.open("bank/v1/spend")
        store.commit(bench.batch(0, [B]))
        store.commit(bench.batch(1, [C]))
        assert by_key(bench.rows()) == [A, C]

    def test_two_flows_share_a_store_and_count_their_own_batches(self, bench: Bench) -> None:
        one, other = bench.store(owner="bank/v1/one"), bench.store(owner="bank/v1/other")
        one.commit(bench.batch(5, [A], flow="bank/v1/one/q"))
        other.commit(bench.batch(5, [B], flow="bank/v1/other/q"))
        one.commit(bench.batch(6, [C], flow="bank/v1/one/q"))
        other.commit(bench.batch(5, [D], flow="bank/v1/other/q"))
        assert by_key(bench.rows()) == [A, B, C]

    def test_a_new_checkpoint_counts_from_the_beginning(self, bench: Bench) -> None:
        bench.store().commit(bench.batch(5, [A]))
        bench.store().commit(bench.batch(0, [B], flow=FLOW + "-new"))
        assert by_key(bench.rows()) == [A, B]

    def test_an_older_driver_is_fenced(self, bench: Bench) -> None:
        old = bench.store()
        old.commit(bench.batch(0, [A]))
        new = bench.store()
        with pytest.raises(Fenced):
            old.commit(bench.batch(1, [B]))
        assert by_key(bench.rows()) == [A]
        new.commit(bench.batch(1, [C]))
        with pytest.raises(Fenced):
            old.commit(bench.batch(2, [B]))
        assert by_key(bench.rows()) == [A, C]

    def test_values_come_back_as_they_were(self, bench: Bench) -> None:
        rows = [{"k": k, **values} for k, values in VALUES.items()]
        bench.store(WIDE).commit(bench.batch(0, rows, columns=WIDE))
        found = {row["k"]: row for row in bench.rows(WIDE)}
        for row in rows:
            assert found[row["k"]] == {column.name: row.get(column.name) for column in WIDE}

    @pytest.mark.parametrize("instant", ["before-rows", "after-rows", "after-commit"])
    def test_a_driver_that_is_killed_leaves_all_or_nothing_and_the_next_completes_it(
        self, bench: Bench, instant: str
    ) -> None:
        batches = [bench.batch(0, [A]), bench.batch(1, MANY)]
        with bench.driver(*batches, failpoint=f"{instant}@1") as driver:
            driver.await_death()
        if instant == "after-commit":
            assert by_key(bench.rows()) == by_key([A, *MANY])
        elif bench.atomic:
            assert by_key(bench.rows()) == [A]
        bench.store().commit(batches[1])
        assert by_key(bench.rows()) == by_key([A, *MANY])

    @pytest.mark.parametrize("instant", ["before-rows", "after-rows"])
    def test_a_driver_that_comes_back_after_another_took_over_writes_nothing(self, bench: Bench, instant: str) -> None:
        batches = [bench.batch(0, [A]), bench.batch(1, MANY)]
        with bench.driver(*batches, failpoint=f"{instant}@1@stop") as zombie:
            zombie.await_stop()
            new = bench.store()
            new.commit(batches[1])
            later = {"k": "m7", "n": 7_000}
            new.commit(bench.batch(2, [later, B]))
            before = by_key(bench.rows())
            assert zombie.go_on() == "fenced"
        assert later in before
        assert by_key(bench.rows()) == before
        new.commit(bench.batch(3, [C]))
        assert C in by_key(bench.rows())

    def test_an_added_column_works(self, bench: Bench) -> None:
        bench.store().commit(bench.batch(0, [A]))
        more = (*SMALL, Column("city", TEXT, nullable=True))
        bench.store(more).commit(bench.batch(1, [{**B, "city": "Ulm"}], columns=more))
        found = sorted(bench.rows(more), key=lambda row: row["k"])
        assert found == [{**A, "city": None}, {**B, "city": "Ulm"}]

    def test_a_column_that_is_gone_is_null_in_new_rows(self, bench: Bench) -> None:
        bench.store().commit(bench.batch(0, [A]))
        less = SMALL[:1]
        bench.store(less).commit(bench.batch(1, [{"k": "b"}], columns=less))
        assert sorted(bench.rows(), key=lambda row: row["k"]) == [A, {"k": "b", "n": None}]

    def test_other_columns_are_refused_with_the_difference(self, bench: Bench) -> None:
        bench.store().commit(bench.batch(0, [A]))
        for columns in self.REFUSED:
            with pytest.raises(TableMismatch, match=r"n is .* there, and .* here"):
                bench.store(columns)
        assert by_key(bench.rows()) == [A]

    def test_a_store_that_is_dropped_can_be_filled_again(self, bench: Bench) -> None:
        store = bench.store()
        store.commit(bench.batch(4, [A, B]))
        bench.recipe(bench.target(), SMALL, "exactly-once")().drop()
        assert bench.rows() == []
        with pytest.raises(Fenced):
            store.commit(bench.batch(5, [C]))
        assert bench.rows() == []
        new = bench.store()
        new.commit(bench.batch(0, [A]))
        assert by_key(bench.rows()) == [A]
        new.drop()
        new.drop()
        assert bench.rows() == []

    def test_after_a_drop_the_columns_may_be_others(self, bench: Bench) -> None:
        bench.store().drop()
        (columns, *_) = self.REFUSED
        bench.store(columns).commit(bench.batch(0, [{"k": "a", "n": "one"}], columns=columns))
        assert bench.rows(columns) == [{"k": "a", "n": "one"}]

    def test_at_most_once_a_batch_is_not_tried_again(self, bench: Bench) -> None:
        batches = [bench.batch(0, [A]), bench.batch(1, [B])]
        with bench.driver(*batches, failpoint="before-rows@1", guarantee="at-most-once") as driver:
            driver.await_death()
        next_one = bench.store(guarantee="at-most-once")
        next_one.commit(batches[1])
        assert by_key(bench.rows()) == [A]
        next_one.commit(bench.batch(2, [C]))
        assert by_key(bench.rows()) == [A, C]


class Keyed(Contract):
    """Of stores whose rows replace each other by key."""

    def test_a_later_batch_replaces_rows_by_key(self, bench: Bench) -> None:
        store = bench.store()
        store.commit(bench.batch(0, [A, B]))
        store.commit(bench.batch(1, [{"k": "a", "n": 10}, {"k": "b", "n": None}]))
        assert sorted(bench.rows(), key=lambda row: row["k"]) == [{"k": "a", "n": 10}, {"k": "b", "n": None}]

    def test_the_last_row_of_a_key_in_a_batch_wins(self, bench: Bench) -> None:
        one = [{"k": "a", "n": n, "_time": time} for n, time in ((1, 30), (2, 10), (3, 20))]
        other = [{"k": "a", "n": 4, "_time": 15}]
        bench.store().commit(bench.batch(0, one, other))
        assert bench.rows() == [{"k": "a", "n": 3}]

    def test_a_row_that_is_gone_is_removed(self, bench: Bench) -> None:
        store = bench.store()
        store.commit(bench.batch(0, [A, B]))
        store.commit(bench.batch(1, [{"k": "a", "_gone": True}, {"k": "never", "_gone": True}]))
        assert bench.rows() == [B]
        store.commit(bench.batch(2, [A]))
        assert by_key(bench.rows()) == [A, B]

    def test_a_row_can_go_and_come_within_a_batch(self, bench: Bench) -> None:
        store = bench.store()
        store.commit(bench.batch(0, [A]))
        store.commit(bench.batch(1, [{"k": "a", "_gone": True}, A, B, {"k": "b", "_gone": True}]))
        assert bench.rows() == [A]

    def test_at_least_once_a_batch_that_comes_again_is_written_again(self, bench: Bench) -> None:
        store = bench.store(guarantee="at-least-once")
        store.commit(bench.batch(0, [A]))
        store.commit(bench.batch(0, [{"k": "a", "n": 10}, B]))
        assert by_key(bench.rows()) == [{"k": "a", "n": 10}, B]

    def test_a_key_of_two_columns(self, bench: Bench) -> None:
        columns = (Column("k", TEXT), Column("j", INT), Column("n", INT, nullable=True))
        store = bench.store(columns, key="k, j")
        rows = [{"k": k, "j": j, "n": n} for k, j, n in (("a", 1, 1), ("a", 2, 2), ("a", 1, 3))]
        store.commit(bench.batch(0, rows, columns=columns))
        store.commit(bench.batch(1, [{"k": "a", "j": 2, "_gone": True}], columns=columns))
        assert bench.rows(columns) == [rows[2]]

    def test_another_key_is_refused(self, bench: Bench) -> None:
        columns = (Column("k", TEXT), Column("j", INT), Column("n", INT, nullable=True))
        bench.store(columns)
        with pytest.raises(TableMismatch, match="key is k there, and k, j here"):
            bench.store(columns, key="k, j")


class Appended(Contract):
    """Of stores that keep every row."""

    def test_equal_rows_are_all_kept(self, bench: Bench) -> None:
        store = bench.store()
        store.commit(bench.batch(0, [A, A]))
        store.commit(bench.batch(1, [A]))
        assert by_key(bench.rows()) == [A, A, A]

    def test_at_least_once_a_batch_that_comes_again_is_there_twice(self, bench: Bench) -> None:
        store = bench.store(guarantee="at-least-once")
        batch = bench.batch(0, [A])
        store.commit(batch)
        store.commit(bench.batch(0, [A]))
        assert by_key(bench.rows()) == [A, A]
