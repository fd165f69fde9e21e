"""The hourly job against the decision on every payment, over the same traffic, with numbers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

import headrace as hr
from bank.batch import Batch, Flag, Hourly, Recorded, Row, compare, stopped_by_the_hour
from bank.decide import decide
from bank.decided import Decided
from bank.record import record
from headrace.base.settings import Settings
from headrace.model.event import event_type
from tests.bank.deciding import START, lived
from tests.bank.saying import Said
from tests.spark.flowing import until

MINUTE = timedelta(minutes=1)


def row(number: int, minutes: int, decision: str = "allow", card: str = "a", amount: str = "10.00") -> dict[str, Any]:
    at = START + minutes * MINUTE
    return {"payment_id": f"p{number}", "card_id": card, "amount": Decimal(amount), "at": at, "decision": decision,
            "pin_ok": True}  # fmt: skip


def test_it_blocks_a_card_when_the_hour_is_over() -> None:
    rows = [row(1, 3, "decline"), row(2, 30, "decline"), row(3, 59), row(4, 60), row(5, 61, card="b"), row(6, 200)]
    job = Batch()
    assert [flag.payment_id for flag in job.take(rows)] == ["p4", "p6"]
    assert job.blocked == {"a": START + 60 * MINUTE}
    assert [flag.payment_id for flag in job.take([row(7, 201, "decline")])] == ["p7"]  # the next run knows it still


def test_both_are_told_in_money() -> None:
    rows = [row(1, 3, "decline"), row(2, 30, amount="5.00"), row(3, 61, "review"), row(4, 62, card="b")]
    told = compare(rows, {"p1", "p2", "p3"})
    assert (told.asked, told.let_through, told.let_through_by_batch) == (Decimal(25), Decimal(5), Decimal(15))
    assert (told.frauds, told.stopped_wrongly, told.stopped_wrongly_by_batch) == (3, 0, 0)


def test_the_decision_while_the_terminal_waits_lets_less_through() -> None:
    told = compare(lived().rows, lived().frauds)
    assert told.frauds > 30
    assert told.let_through < told.asked / 3
    assert told.let_through_by_batch > 2 * told.let_through
    assert f"{told.asked:,}" in str(told)


def recorded(number: int, minutes: int, decision: str = "allow", **more: Any) -> Recorded:
    return msgspec.convert(row(number, minutes, decision) | more, Recorded)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the job does not wait long for more: tests let it run until it has what it is to have."""
    monkeypatch.setattr("bank.batch.SETTLED", MINUTE / 120)


def takes(job: Hourly, payments: int) -> None:
    """So many, in one run or several, and then none."""
    taken: list[int] = []
    until(lambda: taken.append(job.run()) or sum(taken) >= payments)
    assert (sum(taken), job.run()) == (payments, 0)


def begun(client: Any, every: timedelta) -> Hourly:
    """The job, where it follows the log: what was on it before is not its."""
    client.send(recorded(9, 3, "decline"))
    job = Hourly(client, every)

    def first() -> int:
        client.send(recorded(0, 0, card_id="b"))
        return job.run()

    until(lambda: first() > 0)
    until(lambda: job.run() == 0)
    assert job.job.blocked == {} == job.job._found
    return job


@pytest.mark.usefixtures("impatient")
def test_the_job_takes_each_decision_once_however_late_it_is_recorded(
    desk: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bank.batch.AT_ONCE", 2)
    with hr.connect(record, desk), hr.connect(decide, desk) as client:
        job = begun(client, 60 * MINUTE)
        # given an hour, with a card that is declined
        client.send(recorded(1, 3, "decline"), recorded(2, 30), recorded(4, 62, pin_ok=False))
        takes(job, 2)
        # when decisions of that time are recorded hours later, some beside those of a later hour
        client.send(recorded(5, 64), recorded(6, 59), recorded(7, 300))
        takes(job, 3)
        # then each was taken once, and so it is when the job begins anew
        assert [flag.event.payment_id for flag in client.read(Flag)] == ["p5", "p7"]
    with hr.connect(decide, desk) as client:
        client.send(recorded(8, 301))
        takes(Hourly(client, 60 * MINUTE), 1)


def test_of_the_days_before_it_stopped_what_it_could_in_their_hours(desk: Settings) -> None:
    with hr.connect(record, desk), hr.connect(decide, desk) as client:
        client.send(recorded(1, 3, "decline"), recorded(2, 59), recorded(3, 61, pin_ok=False), recorded(4, 62))
        stopped_by_the_hour(client)
        assert [flag.event.payment_id for flag in client.read(Flag)] == ["p4"]


def test_the_job_reads_what_record_writes() -> None:
    read, written = event_type(Recorded), event_type(Decided)
    assert set(read.columns) < set(written.columns)
    keys = {output.target.label: tuple(name for name, _ in output.key) for output in record.outputs}
    assert keys[read.topic] == read.key


class Failing(Batch):
    """The job, when its flags do not get to the broker."""

    def take(self, rows: Iterable[Row]) -> list[Flag]:
        found = super().take(rows)
        if rows:
            raise hr.HeadraceError("no broker")
        return found


@pytest.mark.usefixtures("impatient")
def test_an_hour_that_fails_is_taken_with_the_next(desk: Settings) -> None:
    with hr.connect(record, desk), hr.connect(decide, desk) as client:
        job = begun(client, 60 * MINUTE)
        sound, job.job = job.job, Failing(job.job.every, job.job.blocked, job.job._found)
        client.send(recorded(1, 3, "decline"), recorded(2, 61))
        with pytest.raises(hr.HeadraceError, match="no broker"):
            until(lambda: job.run() > 0)
        job.job = sound
        client.send(recorded(3, 62))
        takes(job, 3)
        assert [flag.event.payment_id for flag in client.read(Flag)] == ["p2", "p3"]


def test_the_command_compares(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "compare", "--days", "4", "--cards", "100")
    assert (said.code, said.err.splitlines()) == (0, [f"lived through {day} of 4 days" for day in (1, 2, 3, 4)])
    told = Said(capsys, "compare", "--days", "4", "--cards", "100", "--json").json
    assert said.out.startswith(f"{told['frauds']} frauds asked for {Decimal(told['asked']):,}\n")
    assert Decimal(told["saved"]) == Decimal(told["asked"]) - Decimal(told["let_through"])
    assert Decimal(told["saved"]) > Decimal(told["saved_by_batch"])
