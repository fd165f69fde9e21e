"""Expressions over the row in its turn and the rows that steps of a pattern took before it (rule P5).

| in the condition of `buy`         | means                                       | becomes                           |
|-----------------------------------|---------------------------------------------|-----------------------------------|
| `amount`, `buy.amount`            | the row in its turn                         | a column of that row              |
| `login.country`                   | the last row that `login` took              | the slot `last(login.country)`    |
| `avg(miss.amount)`, `count(miss)` | all rows that `miss` took, not this one     | a slot of the same name           |

A slot is a column beside those of the row: whoever keeps the rows computes it, and the expression only reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from headrace.base.errors import ExpressionRefused, ExpressionType, UnknownColumn
from headrace.expr import sql
from headrace.expr.check import Checker, Source, closest
from headrace.expr.nodes import Expr
from headrace.expr.show import show_term
from headrace.expr.syntax import Apply, Name, Star, Term, conjunction, conjuncts, rebuilt, walk
from headrace.expr.types import BOOL, INT, Column, Columns, Party, Type, list_of

Results = Callable[[str, Type], Type | None]
"""The type of an aggregate over values of a type; None: it makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A slot: `fn` over a column of the rows that `step` took; "" are all rows. `column`: None counts rows."""

    name: str
    fn: str
    step: str = ""
    column: str | None = None
    of: Type | None = None
    type: Type
    nullable: bool = True


class Fits(NamedTuple):
    """A condition in two parts, both of which must be true: over the row alone, and over the row and slots."""

    alone: Expr | None
    test: Expr | None
    asks: tuple[Ask, ...]


_NOBODY = Party("", ())


@dataclass(slots=True)
class Rows:
    """The rows that can be spoken of. `taken`: steps that have taken some, each with the name of its stream's columns
    in the layout. `own`: the step whose row is in its turn; "" where there is none, and then bare names are `keys`."""

    source: Source
    results: Results
    taken: Mapping[str, Party]
    own: str = ""
    party: Party = _NOBODY
    keys: Mapping[str, Column] = field(default_factory=dict)
    _asks: dict[str, Ask] = field(default_factory=dict)

    def condition(self, term: Term) -> Fits:
        """What only looks at the row is told apart: it is known before the row meets any other."""
        alone: list[Term] = []
        test: list[Term] = []
        for one in conjuncts(term):
            (test if any(self._asking(part) for part in walk(one)) else alone).append(one)
        asked = None if not test else self._bool(conjunction([self._rewritten(one, self.party.name) for one in test]))
        own = None if not alone else self._bool(conjunction([self._rewritten(one, None) for one in alone]))
        return Fits(own, asked, tuple(self._asks.values()))

    def chosen(self, given: str | None, term: Term) -> tuple[str, Expr]:
        """A column of the output, with its name."""
        if isinstance(term, Star):
            self._refuse("* is not known here", term, why="rows of several steps come out", fix="name the columns")
        name = given or (term.name if isinstance(term, Name) else None)
        if name is None:
            told = show_term(term)
            self._refuse(f"{told} has no name", term, fix=f"write {told} as something")
        return name, self._typed(self._rewritten(term, None))

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What was asked so far, each once."""
        return tuple(self._asks.values())

    def _asking(self, term: Term) -> bool:
        if isinstance(term, Name):
            return term.qualifier not in (None, self.own)
        return isinstance(term, Apply) and term.op in sql.OVER_ROWS

    def _rewritten(self, term: Term, row: str | None) -> Term:
        """Slots for what is asked of rows taken; columns of the row in its turn are those of `row`."""
        if isinstance(term, Apply) and term.op in sql.OVER_ROWS:
            return self._over(term)
        if not isinstance(term, Name):
            return rebuilt(term, lambda part: self._rewritten(part, row))
        if term.qualifier is None and not self.own:
            return self._key(term)
        if term.qualifier in (None, self.own):
            return Name(term.name, row, at=term.at)
        return self._slot("last", self._step(term.qualifier, term), term.name, term)

    def _over(self, call: Apply) -> Term:
        fn, args = call.op, call.args
        only = args[0] if len(args) == 1 else None
        if fn == "count" and isinstance(only, Name) and only.qualifier is None:
            step = self._step(only.name, only)
            return self._asked(Ask(name=f"count({step})", fn=fn, step=step, type=INT, nullable=False), call)
        if not isinstance(only, Name) or only.qualifier is None:
            fix = f"write {fn}(step.column)" + (", or count(step)" if fn == "count" else "")
            self._refuse(f"{show_term(call)} does not say over which rows", call,
                         why="an aggregate here is over one column of the rows that a step took", fix=fix)  # fmt: skip
        return self._slot(fn, self._step(only.qualifier, only), only.name, only)

    def _slot(self, fn: str, step: str, name: str, at: Name) -> Term:
        party = self.taken[step]
        found = Checker(source=self.source, columns=party.columns).check(Name(name, at=at.at))
        result = list_of(found.type) if fn == "list" else self.results(fn, found.type)
        told = f"{fn}({step}.{name})"
        if result is None:
            raise self.source.error(ExpressionType, f"{told} makes no sense", at.at, why=f"{name} is {found.type}")
        asked = Ask(
            name=told,
            fn=fn,
            step=step,
            column=f"{party.name}.{name}",
            of=found.type,
            type=result,
            nullable=fn not in ("count", "list") and (found.nullable or bool(self.own)),
        )
        return self._asked(asked, at)

    def _key(self, term: Name) -> Term:
        column = self.keys.get(term.name)
        if column is None:
            fix = next((f"write {step}.{term.name}" for step, party in self.taken.items()
                        if any(c.name == term.name for c in party.columns)), closest(term.name, self.keys))  # fmt: skip
            raise self.source.error(UnknownColumn, f"there is no column {term.name!r}", term.at,
                                    why=f"without the name of a step it is one of the key: {', '.join(self.keys)}",
                                    fix=fix)  # fmt: skip
        name = f"key({term.name})"
        key = Ask(name=name, fn="last", column=name, of=column.type, type=column.type, nullable=False)
        return self._asked(key, term)

    def _asked(self, ask: Ask, at: Term) -> Term:
        self._asks[ask.name] = ask
        return Name(ask.name, at=at.at)

    def _step(self, name: str, at: Term) -> str:
        if name in self.taken:
            return name
        known = [step for step in self.taken if step != self.own]
        fix = closest(name, (*self.taken, self.own))
        if not self.own:
            why = f"the steps that take rows are {', '.join(known)}"
        else:
            why = f"rows of {', '.join(known) or 'no step'} are taken before it; what comes later is not known yet"
            fix = fix or "say it at the step that comes later"
        raise self.source.error(UnknownColumn, f"there is no row named {name!r} here", at.at, why=why, fix=fix)

    def _typed(self, term: Term) -> Expr:
        slots = tuple(Column(ask.name, ask.type, ask.nullable) for ask in self._asks.values())
        columns = (*self.party.columns, *slots)
        names: dict[str, Columns] = {self.party.name: self.party.columns} if self.own else {}
        return Checker(source=self.source, columns=columns, names=names).check(term)

    def _bool(self, term: Term) -> Expr:
        found = self._typed(term)
        if found.type != BOOL:
            self._refuse(f"{self.source.text} is {found.type}, not a condition", term, fix="compare it with something")
        return found

    def _refuse(self, what: str, at: Term, *, why: str = "", fix: str = "") -> NoReturn:
        raise self.source.error(ExpressionRefused, what, at.at, why=why, fix=fix)
