"""What is kept of decisions, without a JVM: the first of both twins, of each payment of each card."""

from __future__ import annotations

import msgspec

import headrace as hr
from bank.decide import decide
from bank.decided import Decided
from bank.record import record
from tests.bank.deciding import pay


def test_of_two_answers_the_first_is_kept_and_of_two_cards_both() -> None:
    with hr.testing.run(decide, realtime=True) as t:
        t.send(pay(1, t.time("10:00")), pay(1, t.time("10:20"), amount="30.00", card_id="card-b"))
        one, other = (Decided(**row.as_dict()) for row in t.read("decisions.raw"))
    again = msgspec.structs.replace(one, decision="decline")
    with hr.testing.run(record) as t:
        t.send(one, again, other, other)
        assert [(row.card_id, row.decision) for row in t.read("decision-log")] == [
            ("card-a", one.decision),
            ("card-b", other.decision),
        ]
        assert len(t.read("decisions")) == 2
