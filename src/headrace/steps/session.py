"""Session windows: rows of a key less than `gap` apart, [first, last + gap) (rule W3).

A session is known by its bounds. A row that moves them (it extends a session, or bridges two) makes a new window: what
was sent for the old bounds is retracted, and the new ones start again at revision 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps import aggregate
from headrace.steps.emission import Passes, Policy, Sent, kind_due, retract, send
from headrace.steps.row import HELD, LATE, MILLI, Result, Row, up_to_ms
from headrace.steps.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times in micros."""

    gap: int
    lateness: int = 0
    emit: Policy = Policy()  # noqa: RUF009 - frozen
    having: bool = False
    aggregates: tuple[aggregate.Spec, ...]
    tally: Tally = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tally", Tally(self.aggregates))

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "session",
            "gap": self.gap,
            "lateness": self.lateness,
            "emit": self.emit.as_json(),
            "having": self.having,
            "aggregates": [a.as_json() for a in self.aggregates],
        }


@dataclass(slots=True, eq=False)
class Session:
    """Rows from `first` to `last`."""

    first: int
    last: int
    rows: int
    states: list[Any]
    sent: Sent


@dataclass(slots=True)
class State:
    """One key. `time`: up to where it has seen time pass, micros. Between batches `retracted` is empty and `changed`
    (a row came since the last `on_time`) is false."""

    sessions: list[Session] = field(default_factory=list)  # by first; they do not touch
    retracted: list[Result] = field(default_factory=list)
    time: int | None = None
    changed: bool = False

    @property
    def empty(self) -> bool:
        return not self.sessions

    @property
    def held(self) -> int:
        return sum(s.rows for s in self.sessions)


def step(spec: Spec, state: State, row: Row, before: int | None) -> str:
    """Puts the row into the session that it makes with those it touches. Judged late after that merge: a row that
    touches a session still held is never late."""
    if before is not None and (state.time is None or before * MILLI > state.time):
        state.time = before * MILLI
    touched = [s for s in state.sessions if row.time < s.last + spec.gap and s.first < row.time + spec.gap]
    if not touched and state.time is not None and row.time + spec.gap + spec.lateness <= state.time:
        return LATE
    first = min([row.time] + [s.first for s in touched])
    last = max([row.time] + [s.last for s in touched])
    if len(touched) == 1 and touched[0].first == first and touched[0].last == last:
        found = touched[0]
        reason = spec.tally.refuses(found.states, row)
        if reason:
            return reason
    else:
        states = spec.tally.empty()
        for part in touched:
            spec.tally.merge(states, part.states)
        reason = spec.tally.refuses(states, row)
        if reason:
            return reason
        for part in touched:
            retract(state.retracted, part.sent, _result(spec, part, "", ()))
        found = Session(first, last, sum(s.rows for s in touched), states, Sent())
        kept = [s for s in state.sessions if s not in touched]
        state.sessions = sorted([*kept, found], key=_first)
    found.rows += 1
    spec.tally.add(found.states, row)
    state.changed = True
    return HELD


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Result], int]:
    """Retractions first, in the order of the merges that caused them; then moves time to the watermark: results by
    session, and drops the sessions that are gone."""
    time = state.time if watermark is None else watermark * MILLI
    out = state.retracted
    state.retracted = []
    for session in state.sessions:
        closed = time is not None and session.last + spec.gap <= time
        kind = kind_due(spec.emit, session.sent, session.rows, closed, state.changed, clock)
        if kind:
            result = _result(spec, session, kind, spec.tally.values(session.states))
            send(out, session.sent, result, session.rows, clock, passes)
    state.changed = False
    state.time = time
    used = 0
    if time is not None:
        kept = [s for s in state.sessions if s.last + spec.gap + spec.lateness > time]
        used = state.held - sum(s.rows for s in kept)
        state.sessions = kept
    return out, used


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    found: int | None = None
    for session in state.sessions:
        end = session.last + spec.gap
        moment = end + spec.lateness if session.sent.final else end
        if found is None or moment < found:
            found = moment
    return None if found is None else up_to_ms(found)


def _result(spec: Spec, session: Session, kind: str, values: tuple[Any, ...]) -> Result:
    end = session.last + spec.gap
    revision = session.sent.revision
    return Result(session.first, end, kind, revision, values, end - 1, f"{session.first}/{end}/{revision}")


def _first(session: Session) -> int:
    return session.first
