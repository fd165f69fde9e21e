"""Ids: stable across runs and machines, different for different causes (rule D2)."""

from __future__ import annotations

from headrace.base.ids import random_id, stable_id


def test_d2_the_same_cause_has_the_same_id_for_ever() -> None:
    assert stable_id("bank", "v1", "spend", "card-1", "payments/0/17") == "916a8857aae929d67adff273cc063bde"


def test_d2_parts_do_not_run_into_each_other() -> None:
    assert stable_id("ab", "c") != stable_id("a", "bc") != stable_id("abc")


def test_random_ids_differ() -> None:
    assert len({random_id() for _ in range(1000)}) == 1000
