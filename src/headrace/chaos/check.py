"""The checkers: each compares what the outputs hold with what they must, and names what is wrong.

They are functions of what was seen, nothing else: so tests can show each of them something wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headrace.chaos.books import Books, end_of
from headrace.chaos.history import Call, Commit
from headrace.chaos.outputs import Outputs
from headrace.chaos.stored import Stored

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a checker says: how much it compared, and what was wrong."""

    checker: str
    compared: int
    wrong: int
    examples: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.wrong


def found(checker: str, compared: int, wrong: Iterable[str]) -> Finding:
    named = list(wrong)
    return Finding(checker=checker, compared=compared, wrong=len(named), examples=tuple(named[:_SHOWN]))


def check_sends(books: Books, acknowledged: Sequence[range]) -> Finding:
    """What the broker has taken is on the log, and nothing is there twice."""
    lost = (f"transfer {n} was acknowledged and is not on the log"
            for numbers in acknowledged for n in numbers if n not in books.sent)  # fmt: skip
    twice = (f"transfer {n} is on the log {times} times" for n, times in books.sent.items() if times > 1)
    return found("sends", sum(map(len, acknowledged)), [*lost, *twice])


def check_ledger(books: Books, outputs: Outputs) -> Finding:
    """Every transfer that counts is in the ledger once, every record that cannot is a dead letter once."""
    wrong = [*_exactly("transfer", books.made, outputs.ledger), *_exactly("dead letter", books.dead, outputs.dead)]
    return found("ledger", len(books.made) + len(books.dead), wrong)


def check_windows(books: Books, outputs: Outputs, *, closed: datetime) -> Finding:
    """Every transfer is in the result of its window or among the late ones, once. Windows that end before `closed` have
    their result."""
    wrong = [f"transfer {n} is late twice" for n, times in Counter(n for n, _ in outputs.late).items() if times > 1]
    wanted = {window: list(counted) for window, counted in books.windows.items()}
    for number, watermark in outputs.late:
        if number not in books.window_of:
            wrong.append(f"transfer {number} is late, and was never made")
            continue
        window, cents = books.window_of[number]
        if watermark < end_of(window):
            wrong.append(f"transfer {number} is called late at {watermark}, when its window was open")
        wanted[window][0] -= 1
        wanted[window][1] -= cents
    told = Counter(window for window, _, _ in outputs.spend)
    wrong += [f"{_named(window)} is told {times} times" for window, times in told.items() if times > 1]
    values = {window: [times, cents] for window, times, cents in outputs.spend}
    for window, counted in wanted.items():
        if end_of(window) <= closed and values.get(window, [0, 0]) != counted:
            wrong.append(f"{_named(window)} is {values.get(window)}, and should be {counted}")
    wrong += [f"{_named(window)} is told, and has no transfers" for window in told if window not in wanted]
    return found("windows", len(wanted), wrong)


def check_bank(books: Books, outputs: Outputs, sums: Sequence[int]) -> Finding:
    """Money is neither made nor lost: the sum of all balances is zero in every read, and each balance is the sum of its
    moves in the end."""
    wrong = [f"read {n} found a sum of {total}" for n, total in enumerate(sums) if total]
    last = {account: (cents, moves) for account, cents, moves, _ in outputs.balances}
    wrong += _same("account", {a: (books.balances[a], books.moves[a]) for a in books.moves}, last)
    return found("bank", len(sums) + len(last), wrong)


def check_versions(outputs: Outputs) -> Finding:
    """Each result of a key follows the one before it: revisions count up by one, a change begins where the last ended
    and has a greater version."""
    wrong: list[str] = []
    revisions: dict[str, int] = {}
    for account, _, _, revision in outputs.balances:
        if revision != revisions.get(account, -1) + 1:
            wrong.append(f"{account} goes from revision {revisions.get(account)} to {revision}")
        revisions[account] = revision
    standing: dict[str, tuple[Any, datetime | None]] = {}
    for branch, before, after, version in outputs.changes:
        was, since = standing.get(branch, (None, None))
        if before != was:
            wrong.append(f"{branch} was {was}, and a change says that it was {before}")
        if since is not None and version <= since:
            wrong.append(f"{branch} goes from version {since} back to {version}")
        standing[branch] = after, version
    return found("versions", len(outputs.balances) + len(outputs.changes), wrong)


def check_view(books: Books, outputs: Outputs) -> Finding:
    """The view over accounts is what a query over the table would give."""
    last = {branch: after for branch, _, after, _ in outputs.changes}
    standing = {branch: (row["accounts"], row["cents"]) for branch, row in last.items() if row is not None}
    return found("view", len(books.accounts), _same("branch", books.branches, standing))


def check_stores(books: Books, outputs: Outputs, stored: Stored) -> Finding:
    """Every store says what the topics say."""
    told = {window: (times, cents) for window, times, cents in outputs.spend}
    moved = {account: (books.balances[account], books.moves[account]) for account in books.moves}
    wrong = [
        *_exactly("lake: transfer", books.made, stored.ledger),
        *_same("postgres: window", told, stored.spend),
        *_same("postgres: account", moved, stored.balances),
        *_same("postgres: branch", books.branches, stored.branches),
        *_same("redis: account", moved, stored.cached),
    ]
    return found("stores", len(books.made) + len(told) + 2 * len(moved) + len(stored.branches), wrong)


def check_tokens(
    commits: Sequence[Commit], states: Mapping[str, int], notes: Sequence[tuple[str, str, int]] = ()
) -> Finding:
    """Tokens of a checkpoint count up, none comes twice, none is ahead of Spark's batches, and no store is ahead of the
    tokens. `states`: the last batch in each checkpoint, by app/version/flow; `notes`: of each store and
    flow, by app/version/flow/checkpoint."""
    wrong: list[str] = []
    last: dict[str, int] = {}
    for commit in commits:
        if commit.batch <= last.get(commit.flow, -1):
            wrong.append(f"{commit.flow} committed batch {commit.batch} after batch {last[commit.flow]}")
        last[commit.flow] = commit.batch
    for flow, batch in last.items():
        noted = states.get(flow.rpartition("/")[0], -1)
        if batch > noted:
            wrong.append(f"{flow} committed batch {batch}, and its checkpoint knows of {noted}")
    for store, flow, batch in notes:
        if batch > last.get(flow, -1):
            wrong.append(f"{store} has batch {batch} of {flow}, whose last token is {last.get(flow)}")
    wrong += [f"{flow} has no token" for flow in states if not any(known.startswith(f"{flow}/") for known in last)]
    return found("tokens", len(commits), wrong)


def check_fences(calls: Sequence[Call]) -> Finding:
    """A driver that came back after another took over was told so, and ended."""
    zombies = [call for call in calls if call.call == "zombie"]
    return found("fences", len(zombies), (call.about for call in zombies if call.outcome != "ok"))


def check_liveness(waits: Sequence[tuple[str, float | None]]) -> Finding:
    """After every fault there was a new commit. `waits`: the fault, and the seconds until then; None if none came."""
    return found("liveness", len(waits), (f"no commit came after {fault}" for fault, wait in waits if wait is None))


def _exactly(what: str, wanted: Iterable[Any], there: Iterable[Any]) -> Iterable[str]:
    times = Counter(there)
    expected = set(wanted)
    yield from (f"{what} {one} is missing" for one in expected if one not in times)
    yield from (f"{what} {one} is there {count} times" for one, count in times.items() if count > 1)
    yield from (f"{what} {one} should not be there" for one in times if one not in expected)


def _same(what: str, wanted: Mapping[Any, Any], there: Mapping[Any, Any]) -> Iterable[str]:
    for one in sorted(wanted.keys() | there.keys()):
        if wanted.get(one) != there.get(one):
            yield f"{what} {one} is {there.get(one)}, and should be {wanted.get(one)}"


def _named(window: tuple[str, datetime]) -> str:
    return f"the window of {window[0]} from {window[1]:%H:%M:%S}"
