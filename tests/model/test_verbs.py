"""Verbs that are not there: what is said instead, at the user's line."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import NoSuchVerb
from tests.reference.ads import Click, User

ADS = hr.App("ads")
CLICKS: Any = ADS.stream(Click, disorder="0 s")
USERS: Any = ADS.table(User)


def pattern() -> Any:
    return ADS.pattern("twice", key="user_id").first("click", CLICKS).times(2).within("1 min")


CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "matches forgotten": (lambda: pattern().to(ADS.topic("out")), "a pattern has no .to", ".matches.to(...)"),
    "columns of a pattern": (lambda: pattern().select("x"), "a pattern has no .select", ".matches.select(...)"),
    "a word of Flink": (lambda: pattern().followed_by("b"), "a pattern has no .followed_by", ".then(...)"),
    "a window of a table": (lambda: USERS.window(), "a table has no .window", ".changes() is a stream"),
    "a table enriched": (lambda: USERS.enrich(USERS), "a table has no .enrich", ".join("),
    "a stream grouped": (lambda: CLICKS.group_by("ad_id"), "a stream has no .group_by", ".key_by("),
    "a slip of the finger": (lambda: CLICKS.wher("true"), "a stream has no .wher", "did you mean .where?"),
    "a group without agg": (lambda: USERS.group_by("city").to(1), "a table in groups has no .to", ".agg("),
    "a window without agg": (
        lambda: CLICKS.window(hr.tumbling("1 s"), lateness="0 s").to(1), "a stream in windows has no .to", ".agg("),
    "another branch": (lambda: CLICKS.split(mine="true").mime, "the split has no 'mime'", "did you mean .mine?"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_verb_that_is_not_there_says_who_has_it(case: str) -> None:
    declare, what, fix = CASES[case]

    with pytest.raises(NoSuchVerb) as refused:
        declare()

    assert refused.value.what == what
    assert fix in refused.value.fix
    assert refused.value.where is not None
    assert refused.value.where.file.endswith("test_verbs.py")


def test_python_may_ask_for_what_is_not_there() -> None:
    assert not hasattr(USERS, "window")
    assert getattr(CLICKS, "nothing", 3) == 3
    assert copy.copy(CLICKS.split(mine="true")).mine.columns == CLICKS.columns
    assert pickle.loads(pickle.dumps(CLICKS.node)) == CLICKS.node
