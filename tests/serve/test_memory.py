"""What the service remembers, without a broker."""

from __future__ import annotations

import pytest

from headrace.base.errors import OtherContent
from headrace.serve.memory import Memory, seen_of

TELL = ("decision",)


def test_the_first_answer_stands_and_further_ones_are_compared() -> None:
    memory = Memory(60)
    first = {"decision": "allow", "seen_card": "p/0@1", "policy_seen": "q/0@9"}
    assert memory.answered("p1", first, TELL, 0) is None
    assert memory.answered("p1", first, TELL, 0) == "agreed"
    assert memory.answered("p1", first | {"decision": "decline", "seen_card": "p/0@2"}, TELL, 0) == "differed"
    assert memory.answered("p1", first | {"decision": "decline"}, TELL, 0) == "disagreed"
    assert memory.case("p1", 0).told == b'{"decision":"allow"}'


def test_what_a_decision_had_seen_is_every_column_that_says_so() -> None:
    assert seen_of({"seen_card": "a", "amount": 1, "policy_seen": "b", "unseen": "c"}) == "a | b"


def test_an_id_with_other_content_is_refused_also_where_only_the_log_knows_it() -> None:
    memory = Memory(60)
    memory.written("p1", b"one", 0)
    memory.written("p1", b"two", 0)  # of two on the log the first stands
    assert memory.asked("p1", b"one").recorded
    with pytest.raises(OtherContent):
        memory.asked("p1", b"two")


def test_an_event_that_was_never_sent_takes_no_id() -> None:
    memory = Memory(60)
    memory.asked("p1", b"one")  # refused then, or without room in the producer
    case = memory.asked("p1", b"two")
    assert len(memory) == 0
    memory.keep("p1", case, b"two", 0)
    with pytest.raises(OtherContent):
        memory.asked("p1", b"one")


def test_cases_are_forgotten_when_their_time_is_up() -> None:
    memory = Memory(60)
    memory.keep("old", memory.asked("old", b"one"), b"one", 0)
    memory.keep("young", memory.asked("young", b"one"), b"one", 50)
    memory.keep("new", memory.asked("new", b"one"), b"one", 100)
    assert len(memory) == 2
    assert not memory.case("old", 100).content
