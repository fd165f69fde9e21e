"""A policy as programs and the command line handle it: published, looked at, taken back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.base.errors import HeadraceError, UsageError
from headrace.base.settings import Settings
from headrace.log import policy as log
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.app import App
from headrace.model.decided import Decided, policy_topic
from headrace.model.policy import Policy
from headrace.model.rule import Rule, read_rules
from headrace.model.trees import Model
from headrace.ops import endpoints
from headrace.plan.plan import build
from headrace.steps.policy import Judge, Standing

LOGGER = logging.getLogger("headrace.policy")
LOOK = timedelta(milliseconds=200)
"""How long a thread waits for the next policy before it looks whether it is to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One that was published. `refused`: why it cannot stand, "" if it can; `policy` None: it took away what stood."""

    offset: int
    at: datetime
    shadow: bool
    policy: Policy | None
    note: str = ""
    refused: str = ""


class Policies:
    """The policy of one name, for the steps of an app that decide by it: `c.policy("fraud")`."""

    def __init__(self, app: App, name: str, broker: Broker) -> None:
        self.name = name
        self._broker = broker
        self._steps = _steps(app, name)
        self._follower: log.PolicyFollower | None = None
        self._turn = threading.Lock()  # a follower has one reader at a time
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._standing = Standing(default=self._steps[0].default)

    def publish(
        self,
        policy: Policy | None = None,
        *,
        rules: Iterable[Rule] | str | Path | None = None,
        model: Model | str | Path | None = None,
        thresholds: Mapping[str, float] | None = None,
        shadow: bool = False,
        note: str = "",
    ) -> int:
        """Lets a policy decide, from the next rows on; its offset. Without `policy` it is the one that stands, with
        other rules, another model or other thresholds; rules and a model may be named by their files. It is checked
        against the rows first. `shadow`: it is asked too, and only told. `note`: why, for the history."""
        if isinstance(rules, str | Path):
            rules, own = read_rules(rules)
            thresholds = own if thresholds is None else thresholds
        if isinstance(model, str | Path):
            model = Model.read(model)
        if policy is None:
            stands = self.current().active
            policy = (Policy() if stands is None else stands.policy).revised(rules, model, thresholds)
        elif not (rules is None and model is None and thresholds is None):
            raise UsageError("a whole policy and parts of one", fix="publish(policy), or publish(rules=..., ...)")
        self._check(policy)
        return log.publish(self._broker, self.name, policy.as_text(note), shadow=shadow)

    def withdraw(self, *, shadow: bool = False) -> int:
        """Takes away what stands; then the step's default is said again."""
        return log.publish(self._broker, self.name, None, shadow=shadow)

    def rollback(self, *, to: int, note: str = "") -> int:
        """Publishes once more what was published at an offset; so a shadow becomes the policy that decides, too."""
        policy = self.at(to).policy
        self._check(policy)
        return log.publish(self._broker, self.name, policy.as_text(note or f"as at {to}"), shadow=False)

    def current(self) -> Standing:
        """What stands now: `.decide(row)` says what a flow would say. Asks the broker."""
        with self._turn:
            self._follower = self._follower or log.PolicyFollower(self._broker, self.name)
            self._take(self._follower.refresh())
        return self._standing

    def follow(self) -> Callable[[], Standing]:
        """What stands, for who asks at every row: gives a function that never waits. A thread follows the topic; while
        the broker is silent, what it has heard last stands."""
        self.current()
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name=f"policy {self.name}", daemon=True)
            self._thread.start()
        return lambda: self._standing

    def _follow(self) -> None:
        assert self._follower is not None
        while not self._closed.is_set():
            try:
                with self._turn:
                    self._take(self._follower.wait(LOOK))
            except Exception as trouble:  # whatever it is: who ended here would let old rules stand, unnoticed
                LOGGER.warning("%s: %r", self.name, trouble)
                self._closed.wait(LOOK.total_seconds())
            self._closed.wait(0.001)  # whoever waits for their turn has it now

    def _take(self, published: list[log.Published]) -> None:
        for one in published:
            try:
                judge = None if one.text is None else self.judge(Policy.of_text(one.text), one.seen)
            except HeadraceError:
                continue  # a flow keeps it out, too
            self._standing = self._standing.put(judge, shadow=one.shadow)

    def at(self, offset: int) -> Judge:
        """What was published at an offset: what a decision with this `policy_seen` went by."""
        for one in log.history(self._broker, self.name):
            if one.offset == offset and one.text is not None:
                return self.judge(Policy.of_text(one.text), one.seen)
        raise UsageError(f"nothing was published at the offset {offset} of {self.name}",
                         fix="`headrace policy history` lists what was")  # fmt: skip

    def judge(self, policy: Policy, seen: str = "") -> Judge:
        """A policy ready to be asked, published or not."""
        return Judge(policy, self._steps[0].of.columns, seen)

    def history(self) -> list[Version]:
        """All that were published, the oldest first."""
        return [self._version(one) for one in log.history(self._broker, self.name)]

    def _version(self, one: log.Published) -> Version:
        policy, note, refused = None, "", ""
        if one.text is not None:
            try:
                policy = Policy.of_text(one.text)
                note = Policy.note_of(one.text)
                self._check(policy)
            except HeadraceError as broken:
                refused = broken.what
        return Version(offset=one.offset, at=one.at, shadow=one.shadow, policy=policy, note=note, refused=refused)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        if self._follower is not None:
            self._follower.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, policy: Policy) -> None:
        for step in self._steps:
            policy.bound(step.of.columns)


def opened(app: App, name: str, settings: Settings) -> Policies:
    """The policy of that name, its topic made if it is not there."""
    broker = endpoints.broker(settings)
    found = Policies(app, name, broker)
    topics.ensure(broker, policy_topic(name))
    return found


def described(judge: Judge | None) -> dict[str, Any]:
    """A policy as people look at it."""
    if judge is None:
        return {"policy": "none"}
    policy = judge.policy
    return {
        "seen": judge.seen,
        "rules_version": policy.rules_version,
        "model_version": policy.model_version,
        "rules": [rule.as_json() for rule in policy.rules],
        "thresholds": dict(policy.thresholds),
        "features": [] if policy.model is None else list(policy.model.features),
    }


def listed(version: Version) -> dict[str, Any]:
    """A line of the history."""
    policy = version.policy
    return {
        "offset": version.offset,
        "at": version.at,
        "kind": "shadow" if version.shadow else "active",
        "rules": None if policy is None else len(policy.rules),
        "rules_version": None if policy is None else policy.rules_version,
        "model_version": None if policy is None else policy.model_version,
        "note": _noted(version),
    }


def _noted(version: Version) -> str:
    if version.refused:
        return f"refused: {version.refused}"
    return "taken away" if version.policy is None else version.note


def _steps(app: App, name: str) -> list[Decided]:
    known = [s.node for flow in build(app).flows for s in flow.steps if isinstance(s.node, Decided)]
    found = [node for node in known if node.policy == name]
    if not found:
        names = ", ".join(dict.fromkeys(node.policy for node in known))
        raise UsageError(f"{app.name} decides nothing by the policy {name!r}",
                         why=f"it decides by {names}" if names else "none of its streams is decided",
                         fix=f'stream.decide("{name}")')  # fmt: skip
    return found
