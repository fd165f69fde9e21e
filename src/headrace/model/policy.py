"""A policy: rules, a model and thresholds that decide about rows; data, which can change while a flow runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from headrace.base.errors import BadPolicy, HeadraceError, UnknownColumn
from headrace.base.where import Where, here
from headrace.expr.types import BOOL, FLOAT, INT, Columns, DecimalType, Type
from headrace.model.naming import condition_of, refs
from headrace.model.rule import ACTIONS, Rule, read_rules, rules_of
from headrace.model.trees import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All that decides. `thresholds`: from which score on the model asks for an action.

    hr.Policy(rules=[...], model=hr.Model.read("fraud.txt"), thresholds={"review": 0.5, "decline": 0.9})
    """

    rules: tuple[Rule, ...] = ()
    model: Model | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    where: Where | None = field(default_factory=here, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", _listed(self.rules))
        if odd := [rule for rule in self.rules if not isinstance(rule, Rule)]:
            raise BadPolicy(f"{odd[0]!r} is no rule", fix='hr.Rule(name=..., when="...", action="review")',
                            where=self.where)  # fmt: skip
        if self.model is not None and not isinstance(self.model, Model):
            raise BadPolicy(f"{self.model!r} is no model", fix='hr.Model.read("fraud.txt")', where=self.where)
        names = [rule.name for rule in self.rules]
        if twice := [name for name in names if names.count(name) > 1]:
            raise BadPolicy(f"two rules are called {twice[0]!r}", why="decisions are told by their names",
                            where=self.where)  # fmt: skip
        object.__setattr__(self, "thresholds", self._checked(self.thresholds))

    def _checked(self, given: Any) -> dict[str, float]:
        """The thresholds, the mildest action first."""
        if not isinstance(given, Mapping) or not given.keys() <= set(ACTIONS[1:]):
            raise BadPolicy(f"thresholds {given!r}", why=f"they are of {' and '.join(ACTIONS[1:])}",
                            fix='thresholds={"review": 0.5, "decline": 0.9}', where=self.where)  # fmt: skip
        for value in given.values():
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                raise BadPolicy(f"a threshold of {value!r}", why="it is the least score that asks for the action",
                                where=self.where)  # fmt: skip
        if given and self.model is None:
            raise BadPolicy("thresholds without a model", why="there is no score that could reach them",
                            fix='model=hr.Model.read("...")', where=self.where)  # fmt: skip
        if self.model is not None and not given:
            raise BadPolicy("a model without thresholds", why="its score would decide nothing",
                            fix='thresholds={"review": 0.5, "decline": 0.9}', where=self.where)  # fmt: skip
        ordered: dict[str, float] = {action: float(given[action]) for action in ACTIONS if action in given}
        if list(ordered.values()) != sorted(ordered.values()):
            raise BadPolicy("review begins above decline", why="the stricter action needs the greater score",
                            where=self.where)  # fmt: skip
        return ordered

    @classmethod
    def read(cls, rules: str | Path, model: str | Path | None = None) -> Self:
        """From a file of rules and thresholds, and one that LightGBM saved; without a model, rules alone."""
        found, thresholds = read_rules(rules)
        if model is None:
            return cls(rules=found)
        return cls(rules=found, model=Model.read(model), thresholds=thresholds or {})

    @property
    def rules_version(self) -> str:
        """Of the rules and the thresholds: twelve digits of the hash of their JSON."""
        told = {"rules": [rule.as_json() for rule in self.rules], "thresholds": dict(self.thresholds)}
        return hashlib.sha256(_json(told).encode()).hexdigest()[:12]

    @property
    def model_version(self) -> str:
        """Twelve digits of the hash of the model's text; "" without a model."""
        return "" if self.model is None else self.model.version

    def as_text(self, note: str = "") -> str:
        """The JSON that is published."""
        return _json(
            {
                "rules": [rule.as_json() for rule in self.rules],
                "thresholds": dict(self.thresholds),
                "model": None if self.model is None else self.model.text,
                "note": note,
            }
        )

    @classmethod
    def of_text(cls, text: str | bytes) -> Self:
        """What was published; BadPolicy if this is none."""
        try:
            told = json.loads(text)
            if not isinstance(told, dict) or not {"rules", "thresholds", "model"} <= told.keys():
                raise ValueError("it has no rules, thresholds and model")
            rules = rules_of(told["rules"], [None] * len(told["rules"]))
            model = None if told["model"] is None else Model(text=told["model"])
            return cls(rules=rules, model=model, thresholds=told["thresholds"], where=None)
        except HeadraceError:
            raise
        except (ValueError, TypeError, AttributeError, RecursionError) as broken:
            raise BadPolicy("this record is no policy", why=str(broken),
                            fix='publish with c.policy("...").publish(...)') from None  # fmt: skip

    @staticmethod
    def note_of(text: str | bytes) -> str:
        """What was noted when it was published."""
        return str(json.loads(text).get("note", ""))

    def revised(
        self,
        rules: Iterable[Rule] | None = None,
        model: Model | None = None,
        thresholds: Mapping[str, float] | None = None,
    ) -> Policy:
        """The same with other rules, another model or other thresholds; what is None stays."""
        return Policy(
            rules=self.rules if rules is None else _listed(rules),
            model=self.model if model is None else model,
            thresholds=self.thresholds if thresholds is None else thresholds,
        )

    def bound(self, columns: Columns) -> Bound:
        """Typed over the columns of the rows to decide about; raises what is wrong with it, at its rule's line."""
        return Bound(
            policy=self,
            conditions=tuple(condition_of(rule.when, columns, rule.where) for rule in self.rules),
            asked=() if self.model is None else _asked(self.model, columns, self.where),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A policy over columns: the condition of each rule, and what the model is asked with, as expressions."""

    policy: Policy
    conditions: tuple[Any, ...]
    asked: tuple[Any, ...]  # each a float, null where there is none


def _listed(rules: Any) -> tuple[Rule, ...]:
    """One rule alone is taken for a list of it."""
    return tuple(rules) if isinstance(rules, Iterable) else (rules,)


def _asked(model: Model, columns: Columns, place: Where | None) -> tuple[Any, ...]:
    known = {column.name: column for column in columns}
    for name in model.features:
        if name not in known:
            raise UnknownColumn(f"the model asks for {name!r}", why=f"the columns are {', '.join(known)}",
                                fix="compute it in a .select(...) before .decide(...)", where=place)  # fmt: skip
        if not _number(known[name].type):
            raise BadPolicy(f"the model asks for {name!r}, which is {known[name].type}", why="trees compare numbers",
                            fix="compute a number of it in a .select(...) before .decide(...)",
                            where=place)  # fmt: skip
    return tuple(_float(value) for _, value in refs(model.features, columns))


def _number(type: Type) -> bool:
    return type in (BOOL, INT, FLOAT) or isinstance(type, DecimalType)


def _float(value: Any) -> Any:
    from headrace.expr.nodes import Cast

    if value.type == BOOL:
        value = Cast(arg=value, type=INT, implicit=True)
    return value if value.type == FLOAT else Cast(arg=value, type=FLOAT, implicit=True)


def _json(value: Any) -> str:
    """The same text for the same value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def strictest(actions: Iterable[str]) -> str:
    """The strictest of them; allow if there are none.

    >>> strictest(["review", "allow", "decline"])
    'decline'
    """
    return ACTIONS[max((ACTIONS.index(action) for action in actions), default=0)]
