"""A rule: a condition over a row's columns, what it asks for where it holds, and the reason that is told."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from headrace.base.errors import BadPolicy
from headrace.base.where import Where, here

Action = Literal["allow", "review", "decline"]
ACTIONS: tuple[Action, ...] = get_args(Action)
"""From the mildest to the strictest."""
MOST = 500
"""Letters of a name or a reason: they stand in every decision that they led to."""
_FIELDS = {"name": str, "when": str, "action": str, "reason": str, "final": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Where `when` is true, the decision is `action` or stricter, and says the reason (or the name, if there is none).
    `final`: then nothing that comes after this rule is asked.

        hr.Rule(name="far too fast", when="speed_kmh > 900 and km > 50", action="decline")
    """

    name: str
    when: Any  # text, or an hr.col expression, which becomes its text
    action: Action
    reason: str = ""
    final: bool = False
    where: Where | None = field(default_factory=here, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.when, str):
            object.__setattr__(self, "when", _text(self.when))
        for name, kind in _FIELDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise BadPolicy(f"{name}={value!r} of a rule is not {kind.__name__}", where=self.where)
        if self.action not in ACTIONS:
            raise BadPolicy(f"the rule {self.name!r} asks for {self.action!r}", fix='action="review"',
                            why=f"it is one of {', '.join(ACTIONS)}", where=self.where)  # fmt: skip
        if not "".join(self.when.split()).isprintable():
            raise BadPolicy(f"the condition of {self.name!r} has letters that cannot be printed", where=self.where)
        for words in (self.name, self.reason or "-"):
            if not words.strip() or len(words) > MOST or not words.isprintable():
                raise BadPolicy(f"{words[:40]!r} cannot name a rule or be its reason",
                                why=f"it is told with every decision: one line of 1 to {MOST} letters",
                                fix='name="far too fast"', where=self.where)  # fmt: skip

    @property
    def said(self) -> str:
        """What a decision says of it."""
        return self.reason or self.name

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}


def rules_of(tables: Iterable[Any], places: Iterable[Where | None]) -> tuple[Rule, ...]:
    """Rules from plain tables, as JSON and TOML have them, each with the place where it stands."""
    found = []
    for table, where in zip(tables, places, strict=True):
        if not isinstance(table, dict) or not {"name", "when", "action"} <= table.keys() <= _FIELDS.keys():
            raise BadPolicy(f"{table!r} is no rule", where=where,
                            why=f"a rule has {', '.join(_FIELDS)}; the first three must be there")  # fmt: skip
        found.append(Rule(**table, where=where))
    return tuple(found)


def read_rules(path: str | Path) -> tuple[tuple[Rule, ...], dict[str, float] | None]:
    """A file of rules: a table [[rule]] for each, in their order, and perhaps one table [thresholds]."""
    place = here()
    try:
        text = Path(path).read_text("utf-8")
        told = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as unread:
        raise BadPolicy(f"{path} cannot be read as rules", why=str(unread), fix="[[rule]] begins each",
                        where=place) from None  # fmt: skip
    if odd := sorted(told.keys() - {"rule", "thresholds"}):
        raise BadPolicy(f"{path} has {odd[0]!r}", why="a file of rules has [[rule]] and [thresholds]", where=place)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    tables = told.get("rule", [])
    if not isinstance(tables, list):
        raise BadPolicy(f"{path} has one rule that is not in a list", fix="write [[rule]]", where=place)
    known = len(lines) == len(tables)  # a list written inline has no line for each
    places = [Where(str(path), line) for line in lines] if known else [place] * len(tables)
    return rules_of(tables, places), told.get("thresholds")


def _text(when: Any) -> str:
    from headrace.expr.build import Col
    from headrace.expr.show import show_term

    if not isinstance(when, Col):
        raise BadPolicy(f"{when!r} is no condition", fix='when="amount > 100", or hr.col.amount > 100', where=here())
    return show_term(when.term)
