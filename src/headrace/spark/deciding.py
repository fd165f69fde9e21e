"""The policies of a running query: followed in the log, checked and compiled here, asked in the JVM."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

import pyspark.sql.functions as sf

from headrace.base.errors import HeadraceError, ModeRefused
from headrace.expr.types import Columns
from headrace.log.broker import Broker
from headrace.log.policy import PolicyFollower, Published
from headrace.model import declared
from headrace.model.policy import Bound, Policy
from headrace.model.trees import Model
from headrace.observe.snapshot import PolicyState
from headrace.plan.plan import Flow
from headrace.spark.chain import ddl
from headrace.spark.columns import column, fault
from headrace.spark.session import Spark
from headrace.steps.policy import thresholds

LOGGER = logging.getLogger("headrace.policy")
LOOK = timedelta(milliseconds=200)
"""How long a follower waits for the next policy before it looks whether it is to end."""


def place_of(home: str, ordinal: int) -> str:
    """Where a step's policies stand in the JVM; `home` is the query's own folder."""
    return f"{home}#{ordinal}"


@dataclass(slots=True)
class Following:
    """One step's policies: what stands, what was refused."""

    spark: Spark
    broker: Broker
    node: declared.Decided
    place: str
    state: PolicyState = field(init=False)
    _follower: PolicyFollower = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.state = PolicyState(policy=self.node.policy)
        self._follower = PolicyFollower(self.broker, self.node.policy)
        self.spark.jvm.Policies.join(self.place)
        try:
            self._begin(self._follower.refresh())
        except BaseException:
            self._follower.close()
            self._leave()
            raise
        self._thread = threading.Thread(target=self._follow, name=f"policy {self.node.policy}", daemon=True)
        self._thread.start()

    def _begin(self, published: list[Published]) -> None:
        """The last that can stand, and so for the shadow."""
        for shadow in (False, True):
            any(self._take(one) for one in reversed(published) if one.shadow is shadow)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._leave()

    def _leave(self) -> None:
        with suppress(Exception):  # py4j raises many kinds when the JVM has gone
            self.spark.jvm.Policies.leave(self.place)

    def _follow(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    for published in self._follower.wait(LOOK):
                        self._take(published)
                except Exception as trouble:  # whatever it is: who ended here would let old rules stand, unnoticed
                    LOGGER.warning("%s: %r", self.node.policy, trouble)
                    self._stop.wait(LOOK.total_seconds())
        finally:
            self._follower.close()

    def _take(self, published: Published) -> bool:
        """Lets it stand, and says whether it can; one that cannot is kept out, and what stood goes on."""
        try:
            self._install(published)
        except Exception as refused:  # ours says why; Spark has many kinds
            words = f"{published.seen}: {refused if isinstance(refused, HeadraceError) else repr(refused)}"
            LOGGER.error("refused %s", words)
            self.state = replace(self.state, refused=self.state.refused + 1, error=words)
            return False
        return True

    def _install(self, published: Published) -> None:
        columns = self.node.of.columns
        policy = None if published.text is None else Policy.of_text(published.text)
        text, asked = ("", []) if policy is None else compiled(policy.bound(columns), columns, published.seen)
        row = ddl(columns)
        self.spark.jvm.Policies.publish(self.place, published.shadow, text, row, [one._jc for one in asked])
        seen = "" if policy is None else published.seen
        if published.shadow:
            self.state = replace(self.state, shadow=seen)
        else:
            versions = ("", "") if policy is None else (policy.rules_version, policy.model_version)
            self.state = replace(self.state, seen=seen, rules_version=versions[0], model_version=versions[1])


@contextmanager
def deciding(spark: Spark, broker: Broker, flow: Flow, home: str) -> Iterator[tuple[Following, ...]]:
    """Follows the policies of a flow's steps while its query runs; `home` as in `place_of`."""
    if any(isinstance(step.node, declared.Decided) for step in flow.steps):
        check_master(spark.session.sparkContext.master)
    with ExitStack() as opened:
        found = []
        for step in flow.steps:
            if isinstance(step.node, declared.Decided):
                found.append(Following(spark, broker, step.node, place_of(home, step.ordinal)))
                opened.callback(found[-1].stop)
        yield tuple(found)


def check_master(master: str) -> None:
    """Refuses one whose tasks run elsewhere."""
    if not master.startswith("local"):
        raise ModeRefused(
            f"a flow that decides cannot run on {master}",
            why="policies stand inside the driver, and its rows are decided there",
            fix="set spark.master to local[*]",
        )


def compiled(bound: Bound, columns: Columns, seen: str) -> tuple[str, list[Any]]:
    """A policy as jvm/Policy.scala reads it, and the columns it asks of a row: of each rule its condition and, if that
    may not fit, the words for it; then what the model is asked with."""
    policy, asked = bound.policy, list[Any]()
    values = {c.name: sf.col(f"`{c.name}`") for c in columns}
    rules: list[dict[str, Any]] = []
    for rule, when in zip(policy.rules, bound.conditions, strict=True):
        words = fault(when, values)
        told = {"action": rule.action, "said": rule.said, "final": rule.final, "holds": len(asked), "fault": -1}
        asked.append(column(when, values))
        if words is not None:
            told["fault"] = len(asked)
            asked.append(sf.concat(sf.lit(f"{rule.name}: "), words))
        rules.append(told)
    asked += [column(one, values) for one in bound.asked]
    text = json.dumps(
        {
            "rules": rules,
            "thresholds": [{"action": a, "least": least, "words": words} for a, least, words in thresholds(policy)],
            "features": () if policy.model is None else policy.model.features,
            "model": None if policy.model is None else trees_json(policy.model),
            "rules_version": policy.rules_version,
            "model_version": policy.model_version,
            "seen": seen,
        }
    )
    return text, asked


def trees_json(model: Model) -> dict[str, Any]:
    """As jvm/Trees.scala reads it."""
    return {"trees": [asdict(tree) for tree in model.trees], "sigmoid": model.sigmoid, "average": model.average}
