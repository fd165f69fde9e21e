"""The checkers see every kind of wrong: a sound world passes all of them, and each mutation of it is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from headrace.chaos import check
from headrace.chaos.books import Books
from headrace.chaos.check import Finding
from headrace.chaos.history import Call, Commit, Outcome
from headrace.chaos.outputs import Outputs
from headrace.chaos.stored import Stored
from headrace.chaos.traffic import START
from headrace.chaos.workload import Transfer

CLOSED = START + timedelta(minutes=5)
FLOW = "chaos/v1/transfers/q"


@dataclass
class World:
    """What a run without trouble leaves behind: sixty transfers in two batches, one of them late, one record dead."""

    books: Books = field(default_factory=Books)
    outputs: Outputs = field(default_factory=Outputs)
    stored: Stored = field(default_factory=Stored)
    acknowledged: list[range] = field(default_factory=lambda: [range(60)])
    sums: list[int] = field(default_factory=lambda: [0, 0, 0])
    commits: list[Commit] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=lambda: {"chaos/v1/transfers": 2})
    calls: list[Call] = field(default_factory=lambda: [zombie("ok")])
    waits: list[tuple[str, float | None]] = field(default_factory=lambda: [("kill-jvm", 9.0)])

    def findings(self) -> dict[str, Finding]:
        found = (
            check.check_sends(self.books, self.acknowledged),
            check.check_ledger(self.books, self.outputs),
            check.check_windows(self.books, self.outputs, closed=CLOSED),
            check.check_bank(self.books, self.outputs, self.sums),
            check.check_versions(self.outputs),
            check.check_view(self.books, self.outputs),
            check.check_stores(self.books, self.outputs, self.stored),
            check.check_tokens(self.commits, self.states, self.stored.notes),
            check.check_fences(self.calls),
            check.check_liveness(self.waits),
        )
        return {finding.checker: finding for finding in found}


def zombie(outcome: Outcome) -> Call:
    return Call(at=1.0, call="zombie", about="it came back", outcome=outcome)


def sound() -> World:
    world = World()
    books, outputs = world.books, world.outputs
    transfers = [
        Transfer(n, f"card-{n % 3}", f"a{n % 4}", f"a{(n + 1) % 4}", 100 + n, START + timedelta(seconds=n))
        for n in range(60)
    ]
    for transfer in transfers:
        books.sent[transfer.transfer] += 1
        books.book(transfer)
    books.dead.add((0, 61))
    books.accounts = {"a0": ("b0", 5), "a1": ("b0", 6), "a2": ("b1", 7)}

    outputs.ledger = [transfer.transfer for transfer in transfers]
    outputs.dead = [(0, 61)]
    late, (window, cents) = 7, books.window_of[7]
    outputs.late = [(late, START + timedelta(minutes=2))]
    outputs.spend = [
        (w, times - (w == window), total - cents * (w == window)) for w, (times, total) in books.windows.items()
    ]
    outputs.balances = [
        *((account, 0, 1, 0) for account in books.moves),
        *((account, books.balances[account], books.moves[account], 1) for account in books.moves),
    ]
    row = lambda accounts, cents: {"accounts": accounts, "cents": cents}  # noqa: E731
    second = START + timedelta(seconds=1)
    outputs.changes = [
        ("b0", None, row(1, 5), START),
        ("b0", row(1, 5), row(2, 11), second),
        ("b1", None, row(1, 7), second),
        ("b2", None, row(1, 7), START),
        ("b2", row(1, 7), None, second),
    ]
    moved = {account: (books.balances[account], books.moves[account]) for account in books.moves}
    world.stored = Stored(
        spend={window: (times, cents) for window, times, cents in outputs.spend},
        balances=dict(moved),
        branches=dict(books.branches),
        cached=dict(moved),
        ledger=list(outputs.ledger),
        notes=[("postgres:chaos_spend", FLOW, 2)],
    )
    world.commits = [Commit(at=float(batch), flow=FLOW, batch=batch) for batch in (0, 2)]
    return world


def test_a_sound_world_passes_all_checkers() -> None:
    for finding in sound().findings().values():
        assert finding.sound, finding
        assert finding.compared, finding


def again(rows: list[Any], number: int = -1) -> None:
    rows.append(rows[number])


MUTATIONS: dict[str, tuple[str, Callable[[World], Any]]] = {
    "the broker forgets what it took": ("sends", lambda w: w.books.sent.pop(3)),
    "a producer repeats itself": ("sends", lambda w: w.books.sent.update([3])),
    "a batch is written twice, for its token was dropped": ("ledger", lambda w: w.outputs.ledger.extend(range(30, 60))),
    "a batch is lost": ("ledger", lambda w: w.outputs.ledger.__delitem__(slice(30, 60))),
    "a row comes from nowhere": ("ledger", lambda w: w.outputs.ledger.append(4711)),
    "a dead letter is lost": ("ledger", lambda w: w.outputs.dead.clear()),
    "a dead letter comes twice": ("ledger", lambda w: again(w.outputs.dead)),
    "a late row is lost": ("windows", lambda w: w.outputs.late.clear()),
    "a late row comes twice": ("windows", lambda w: again(w.outputs.late)),
    "a row is called late too early": ("windows", lambda w: w.outputs.late.__setitem__(0, (7, START))),
    "a window is told twice": ("windows", lambda w: again(w.outputs.spend)),
    "a window is never told": ("windows", lambda w: w.outputs.spend.pop()),
    "a window counts a row twice": (
        "windows",
        lambda w: w.outputs.spend.__setitem__(0, (w.outputs.spend[0][0], w.outputs.spend[0][1] + 1, 0)),
    ),
    "a read sees half a batch": ("bank", lambda w: w.sums.append(100)),
    "a balance is wrong in the end": ("bank", lambda w: w.outputs.balances.append(("a0", 1, 2, 2))),
    "a balance is missing": ("bank", lambda w: w.books.moves.update(["a9"])),
    "a revision comes twice, for the ledger was skipped": ("versions", lambda w: again(w.outputs.balances)),
    "a revision is left out": ("versions", lambda w: w.outputs.balances.pop(0)),
    "an older version overwrites a newer one": (
        "versions",
        lambda w: w.outputs.changes.append(("b1", w.outputs.changes[2][2], None, START)),
    ),
    "a change does not begin where the last ended": ("versions", lambda w: w.outputs.changes.pop(0)),
    "the view misses a change": ("view", lambda w: w.books.accounts.update(a3=("b1", 1))),
    "the view keeps what has gone": ("view", lambda w: w.outputs.changes.pop()),
    "the lake has a batch twice": ("stores", lambda w: w.stored.ledger.extend(range(30, 60))),
    "the lake lost a batch": ("stores", lambda w: w.stored.ledger.__delitem__(slice(30, 60))),
    "a table keeps an older row, for the version guard is gone": (
        "stores",
        lambda w: w.stored.balances.update(a0=(0, 1)),
    ),
    "a table lost a window": ("stores", lambda w: w.stored.spend.popitem()),
    "a table keeps a row that has gone": ("stores", lambda w: w.stored.branches.update(b2=(1, 7))),
    "a cache keeps an older row": ("stores", lambda w: w.stored.cached.update(a0=(0, 1))),
    "a store is ahead of its token": ("tokens", lambda w: w.stored.notes.append(("postgres:chaos_spend", FLOW, 3))),
    "a batch is committed twice": ("tokens", lambda w: again(w.commits)),
    "a zombie commits an older batch": ("tokens", lambda w: again(w.commits, 0)),
    "a token is ahead of its checkpoint": ("tokens", lambda w: w.states.update({"chaos/v1/transfers": 1})),
    "a flow has no token": ("tokens", lambda w: w.states.update({"chaos/v1/accounts": 1})),
    "a zombie is not told": ("fences", lambda w: w.calls.append(zombie("failed"))),
    "nothing moves after a fault": ("liveness", lambda w: w.waits.append(("kill-broker", None))),
}


@pytest.mark.parametrize(("checker", "mutate"), MUTATIONS.values(), ids=MUTATIONS)
def test_every_mutation_is_caught(checker: str, mutate: Callable[[World], Any]) -> None:
    world = sound()
    mutate(world)
    finding = world.findings()[checker]
    assert not finding.sound
    assert finding.examples
