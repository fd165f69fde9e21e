"""A test run: send events, move time, read what came out. Rules R3 and T2-T4 decide the watermark, as on Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from typing import Any

from headrace.base.clock import HandClock, from_micros, micros, utc
from headrace.base.duration import duration, show
from headrace.base.errors import BadTime, UsageError
from headrace.base.ids import stable_id
from headrace.base.keys import key_text
from headrace.features import declared
from headrace.model.app import App
from headrace.model.decided import Decided
from headrace.model.declaring import declaring
from headrace.model.event import EventType, event_type
from headrace.model.features import Features
from headrace.model.policy import Policy
from headrace.model.rule import Rule
from headrace.model.trees import Model
from headrace.plan.modes import check
from headrace.plan.plan import Exit, build
from headrace.reference.batch import Arrival, Batch, Record, Tombstone, Travelling
from headrace.reference.counts import Counts
from headrace.reference.engine import Engine
from headrace.reference.frontier import Watermark
from headrace.steps.row import END
from headrace.testing.features import Asked
from headrace.testing.rows import Row, Rows

Arrived = tuple[int, int, int, tuple[Any, ...] | Tombstone]
"""Time, partition, offset, values."""

CHANGE = ("op", "key", "before", "after", "version")
"""The columns of a topic of changes (rule F2)."""
DAY = date(2026, 11, 3)
"""The day of `t.time("10:00")`."""


@declaring("hr.testing.run(app)")
def run(
    app: App, *, partitions: int | Mapping[str, int] = 1, now: datetime | None = None, realtime: bool = False
) -> AbstractContextManager[Run]:
    """Runs an app in the test. `partitions`: of every topic, or by topic. `now`: where the clock starts; by default the
    end of the test's day, so that no event of the day is dated in the future (rule T2). `realtime`: as `headrace run
    --realtime` would, where patterns take rows as they come (rule P1); an app that cannot run so is refused."""
    if not isinstance(app, App):
        raise UsageError(f"{app!r} is no app", fix='hr.testing.run(app), with app = hr.App("...")')
    return nullcontext(Run(app, partitions=partitions, now=now, realtime=realtime))


class Run:
    """An app under test."""

    def __init__(
        self,
        app: App,
        *,
        partitions: int | Mapping[str, int] = 1,
        now: datetime | None = None,
        realtime: bool = False,
    ) -> None:
        plan = build(app)
        if realtime:
            for flow in plan.flows:
                check(flow, "realtime")
        self._app = app
        self._clock = HandClock(now or datetime.combine(DAY + timedelta(days=1), time(), UTC))
        self._engines = [Engine(plan, flow, keep_aside=True, arrival=realtime) for flow in plan.flows]
        topics = {topic for engine in self._engines for topic in engine.topics}
        given = dict.fromkeys(topics, partitions) if isinstance(partitions, int) else dict(partitions)
        for topic, count in given.items():
            if topic not in topics:
                raise _no_such(topic, "no stream or table reads the topic", dict.fromkeys(sorted(topics)))
            if count < 1:
                raise UsageError(f"{topic} with {count} partitions", why="a topic has at least one", fix="partitions=1")
        self._partitions = dict.fromkeys(topics, 1) | given
        self._watermarks = [Watermark(engine.flow, self._now, self._partitions) for engine in self._engines]
        self._offsets: dict[tuple[str, int], int] = {}
        self._exits = {exit.target.label: exit for flow in plan.flows for exit in flow.exits}
        decided = [s.node for flow in plan.flows for s in flow.steps if isinstance(s.node, Decided)]
        self._policies = {node.policy: Policy() for node in decided}
        self._ended = False

    # -- time

    @property
    def now(self) -> datetime:
        """The clock of this run. Only `advance` moves it."""
        return self._clock.now()

    @declaring('t.time("10:00")')
    def time(self, text: str) -> datetime:
        """A time of the test's day, in UTC: `t.time("10:00")`."""
        try:
            return datetime.combine(DAY, time.fromisoformat(text), UTC)
        except (ValueError, TypeError):
            raise BadTime(f"{text!r} is no time of day", fix='write it like "10:00" or "10:00:05.250"') from None

    @declaring('t.advance("10 s")')
    def advance(self, by: str | timedelta) -> None:
        """Lets the clock run, in silence: partitions become idle, and a quiet stream's windows close (rule T3)."""
        if duration(by) < timedelta(0):
            raise UsageError(f"time cannot advance by {show(duration(by))}", why="a clock does not go back")
        self._clock.advance(by)
        self._turn({})

    def end(self) -> None:
        """The end of input: everything closes."""
        self._turn({}, END)
        self._ended = True

    @declaring("t.watermark()")
    def watermark(self, topic: str | None = None) -> datetime | None:
        """How far event time has come, for the flow that reads `topic`; None before the first event."""
        index = next((n for n, engine in enumerate(self._engines) if topic in (None, *engine.topics)), None)
        if index is None:
            raise self._unread(topic or "")
        found = self._engines[index].watermark
        return None if found is None else from_micros(found * 1_000)

    # -- in

    @declaring("t.send(event, event)")
    def send(self, *events: Any, partition: int = 0, offset: int | None = None) -> None:
        """Each event in a batch of its own (rule R3). `offset`: of the first; else the next one."""
        for event in events:
            self.batch(event, partition=partition, offset=offset)
            offset = None

    @declaring("t.batch(event, event)")
    def batch(self, *events: Any, partition: int = 0, offset: int | None = None) -> None:
        """All events in one batch; the watermark moves after it."""
        if self._ended:
            raise UsageError("the input has ended", why="t.end() was called", fix="send before t.end()")
        arrived: dict[str, list[Arrived]] = {}
        for event in events:
            if isinstance(event, list | tuple):
                raise UsageError("a list is not an event", fix="t.send(*events), or t.batch(*events) for one batch")
            described = event_type(type(event))
            self._check_read(described, partition)
            at = self._now * 1_000 if not described.time else micros(getattr(event, described.time))
            place = self._next_offset(described.topic, partition, offset)
            values = tuple(getattr(event, column.name) for column in described.columns)
            arrived.setdefault(described.topic, []).append((at, partition, place, values))
            offset = None
        self._turn(arrived)

    @declaring('t.delete(User, "u1", at=t.time("10:00"))')
    def delete(self, event: type, *key: Any, at: datetime, partition: int = 0) -> None:
        """A tombstone: from `at` on a table holds no row of this key."""
        described = event_type(event)
        self._check_read(described, partition)
        if len(key) != len(described.key):
            raise UsageError(f"{described.name} has the key {', '.join(described.key)}",
                             fix=f"t.delete({described.name}, {', '.join(described.key)}, at=...)")  # fmt: skip
        arrived = (micros(utc(at)), partition, self._next_offset(described.topic, partition), Tombstone(key))
        self._turn({described.topic: [arrived]})

    @declaring('t.mark(Payment, t.time("10:00"))')
    def mark(self, event: type, at: datetime, *, partition: int = 0) -> None:
        """A producer's mark: nothing older than `at` follows in this partition (rule T7)."""
        described = event_type(event)
        self._check_read(described, partition)
        for engine, watermark in zip(self._engines, self._watermarks, strict=True):
            if described.topic in engine.topics:
                watermark.mark(described.topic, partition, micros(utc(at)), self._now)
        self._turn({})

    @declaring('t.policy("fraud", rules=[hr.Rule(...)])')
    def policy(
        self,
        name: str,
        policy: Policy | None = None,
        *,
        rules: Iterable[Rule] | None = None,
        model: Model | None = None,
        thresholds: Mapping[str, float] | None = None,
        shadow: bool = False,
        offset: int | None = None,
    ) -> int:
        """Publishes a policy: rows that are sent from now on are decided by it. Without `policy` it is the one that
        stands, with other rules, another model or other thresholds. `shadow`: it is asked too, and only told. Returns
        its offset."""
        if name not in self._policies:
            raise _no_such(name, "no stream is decided by the policy", self._policies)
        told = policy or self._policies[name].revised(rules, model, thresholds)
        offset = self._next_offset(f"{name}.policy", 0, offset)
        for engine in self._engines:
            engine.publish(name, told, f"{name}.policy/0@{offset}", shadow=shadow)
        if not shadow:
            self._policies[name] = told
        return offset

    # -- out

    @declaring('t.read("topic", "card, spent")')
    def read(self, topic: str, columns: str | None = None) -> Rows:
        """All rows that were sent to a topic by now, or to a store: `t.read("postgres:spend")`, or its name alone if
        nothing else has it. With `columns`, only those: `t.read("spend", "card, spent")`. A tombstone has its key, and
        null in all other columns."""
        exit = self._exit(topic)
        names = CHANGE if exit.form == "changes" else [column.name for column in exit.columns]
        rows = [_shown(exit, record) for record in self._records(exit)]
        found = Rows(names, rows, self._note())
        return found if columns is None else found.only(columns)

    @declaring('t.table("topic")')
    def table(self, topic: str, columns: str | None = None) -> Rows:
        """What a store with keys holds now, or a reader of a view's compacted topic: the last row of each key, by
        key."""
        exit = self._exit(topic)
        if exit.form != "upserts" and not (exit.stored and exit.key):
            raise UsageError(f"{topic} is no table", why="it gets neither a view nor rows by the key of a store",
                             fix=f"t.read({topic!r}) shows all rows")  # fmt: skip
        last = {record.key or "": record for record in self._records(exit)}
        rows = [last[key].values for key in sorted(last) if not isinstance(last[key].values, Tombstone)]
        found = Rows([column.name for column in exit.columns], rows, self._note())
        return found if columns is None else found.only(columns)

    @declaring("t.features(card)")
    def features(self, features: Features) -> Asked:
        """What a program would be told that asks for features now: `t.features(card).get(card_id="c1")`."""
        outputs = declared.kept(self._app.outputs, features.node)
        rows = [self._records(self._exits[output.target.label]) for output in outputs]
        return Asked(features.node, outputs, rows, self.now)

    @declaring('t.records("topic")')
    def records(self, topic: str) -> Rows:
        """The same as records: key, stable id and event time (rules D2, F1, F3)."""
        found = ((r.key, r.id, from_micros(r.time)) for r in self._records(self._exit(topic)))
        return Rows(("key", "id", "time"), found, self._note())

    def dead(self, origin: str | None = None) -> Rows:
        """Dead letters, of one topic or all: where each came from, which step refused it, why, and its values."""
        found = [d for engine in self._engines for d in engine.dead if origin in (None, d.origin)]
        rows = ((d.origin, d.cause, d.step, d.reason, d.error, list(d.values)) for d in found)
        return Rows(("origin", "cause", "step", "reason", "error", "values"), rows)

    @declaring('t.late("step")')
    def late(self, step: str) -> Rows:
        """Rows that came too late for a window, with the watermark they met; also if no stream reads them."""
        return self._aside(step, "late")

    @declaring('t.unmatched("step")')
    def unmatched(self, step: str) -> Rows:
        """Rows of a join that found no partner."""
        return self._aside(step, "unmatched")

    @declaring('t.match("pattern", key="u1")')
    def match(self, pattern: str, *, key: Any) -> Row:
        """The one match that a pattern has found for a key, as its `.matches` has it; `key` is a tuple where the
        pattern's key has several columns."""
        text = key_text(key if isinstance(key, tuple) else (key,))
        known = (self._app.name, self._app.version, pattern, text)
        rows = self._aside(pattern, "rows", lambda row: row.id == stable_id(*known, row.cause))
        if len(rows) != 1:
            raise UsageError(f"{pattern} has {len(rows)} matches for the key {text!r}",
                             why=self._note() if not rows else f"\n{rows}",
                             fix="read them where they are sent: t.read(topic)")  # fmt: skip
        return rows[0]

    @declaring('t.timeouts("pattern")')
    def timeouts(self, pattern: str) -> Rows:
        """Partial matches of a pattern whose time was up; also if no stream reads them."""
        return self._aside(pattern, "timeouts")

    @declaring('t.duplicates("step")')
    def duplicates(self, step: str) -> Rows:
        """Rows that a dedup left out, or features that tell a row once."""
        return self._aside(step, "duplicates")

    @declaring('t.counts("step")')
    def counts(self, step: str) -> Counts:
        """What became of a step's rows so far (rule D3)."""
        known = {name: counts for engine in self._engines for name, counts in engine.counts().items()}
        if step not in known:
            raise _no_such(step, "there is no step", known)
        return known[step]

    # -- inside

    def _exit(self, topic: str) -> Exit:
        if not isinstance(topic, str):
            raise UsageError(f"{topic!r} is no name of a topic", fix=f't.read("{getattr(topic, "name", "topic")}")')
        named = [exit for exit in self._exits.values() if exit.target.name == topic]
        if topic not in self._exits and len(named) != 1:
            raise _no_such(topic, "nothing is sent to the topic", self._exits)
        return self._exits.get(topic) or named[0]

    def _records(self, exit: Exit) -> list[Record]:
        place = exit.target.label
        return [record for engine in self._engines for record in engine.records if record.topic == place]

    @property
    def _now(self) -> int:
        return micros(self._clock.now()) // 1_000

    def _next_offset(self, topic: str, partition: int, offset: int | None = None) -> int:
        offset = self._offsets.get((topic, partition), 0) if offset is None else offset
        self._offsets[topic, partition] = offset + 1
        return offset

    def _turn(self, arrived: Mapping[str, list[Arrived]], watermark: int | None = None) -> None:
        """One batch in every flow."""
        clock = self._now
        for engine, moving in zip(self._engines, self._watermarks, strict=True):
            rows = []
            for source, topic in enumerate(engine.topics):
                for at, partition, offset, values in arrived.get(topic, ()):
                    rows.append(Arrival(at, source, partition, offset, values))
                    if not isinstance(values, Tombstone) or topic in engine.tables:  # else nobody can read its time
                        moving.row(topic, partition, at, clock)
            engine.batch(Batch(rows, watermark or moving.at(clock), clock))

    def _aside(self, step: str, port: str, wanted: Callable[[Travelling], bool] = lambda _: True) -> Rows:
        self.counts(step)  # says so if there is no such step
        for engine in self._engines:
            for found in engine.flow.steps:
                if found.name == step:
                    columns = dict(found.ports).get(port)
                    if columns is None:
                        raise UsageError(f"{step} has no .{port}")
                    names = [column.name for column in columns]
                    return Rows(names, (row.values for row in engine.aside.get((step, port), ()) if wanted(row)))
        raise AssertionError("counts knew the step")

    def _note(self) -> str:
        """What may explain that nothing came out."""
        totals = [counts for engine in self._engines for counts in engine.counts().values()]
        told = {
            "held": sum(c.held for c in totals),
            "filtered": sum(c.filtered for c in totals),
            "late": sum(c.late for c in totals),
            "dead": sum(len(engine.dead) for engine in self._engines),
            "duplicates": sum(c.duplicates for c in totals),
        }
        return ", ".join(f"{count} {what}" for what, count in told.items() if count)

    def _check_read(self, described: EventType, partition: int) -> None:
        if not any(described.topic in engine.topics for engine in self._engines):
            raise self._unread(described.topic)
        count = self._partitions[described.topic]
        if not 0 <= partition < count:
            raise UsageError(
                f"topic {described.topic!r} has no partition {partition}",
                why=f"in this run it has {count}, counted from 0",
                fix=f"hr.testing.run(app, partitions={partition + 1})" if partition > 0 else "",
            )

    def _unread(self, topic: str) -> UsageError:
        known = dict.fromkeys(topic for engine in self._engines for topic in engine.topics)
        return _no_such(topic, f"no stream of {self._app.name} that reaches an output reads the topic", known)


def _shown(exit: Exit, record: Record) -> tuple[Any, ...]:
    if not isinstance(record.values, Tombstone):
        return record.values
    key = dict(zip([name for name, _ in exit.key], record.values.key, strict=True))
    return tuple(key.get(column.name) for column in exit.columns)


def _no_such(name: str, what: str, known: Mapping[str, Any]) -> UsageError:
    near = get_close_matches(name, known, 1)
    return UsageError(
        f"{what} {name!r}",
        why=f"there is {', '.join(known) or 'none'}",
        fix=f"did you mean {near[0]!r}?" if near else "",
    )
