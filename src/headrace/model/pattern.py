"""Patterns as they are declared: steps over one or several streams, how long they may take, what comes out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from headrace.base.duration import duration, show
from headrace.base.errors import BadStep
from headrace.base.where import Where, here
from headrace.model import declared
from headrace.model.declaring import declaring
from headrace.model.naming import refs
from headrace.model.pattern_binding import Binding
from headrace.model.pattern_check import check
from headrace.model.sequence import Group, Sequence, Written, written
from headrace.model.stream import Stream

if TYPE_CHECKING:
    from headrace.model.app import App

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,79}")
_AFTER = ("none", "next", "skip past last", "to first NAME", "to last NAME")


@dataclass(frozen=True, repr=False, kw_only=True)
class Pattern(Sequence):
    """Rows of a key that follow each other as its steps say. `.matches` and `.timeouts` are streams."""

    KIND = "a pattern"
    OF_STREAMS = "what it finds is a stream: .matches.VERB(...), or .timeouts.VERB(...)"

    app: App
    name: str
    key: str
    after: str
    after_step: str
    keep: timedelta | None
    bound: timedelta | None = None
    chosen: str | None
    place: Where | None

    def __repr__(self) -> str:
        return f"<pattern {self.name} of {', '.join(part.called for part in self.parts)}>"

    @declaring('.first("login", logins)')
    def first(
        self,
        step: str | Group,
        stream: Stream | None = None,
        *,
        where: Any = None,
        within: str | timedelta | None = None,
    ) -> Self:
        """The row a match begins with. `within`: of a step that is repeated, less than that from row to row."""
        if self.parts:
            raise BadStep("first() comes once", fix="say .then(...) or .next(...)", where=here())
        return self._with((written("first", step, stream, where, within),))

    @declaring('.within("5 min")')
    def within(self, time: str | timedelta) -> Self:
        """From the first row to the last it is less than this (rule P3)."""
        found = duration(time)
        if found <= timedelta(0):
            raise BadStep(f"within {show(found)} leaves no time", fix='.within("5 min")', where=here())
        if self.keep is not None:
            raise BadStep("within and keep", why="keep is for patterns without within", fix="leave keep out",
                          where=here())  # fmt: skip
        return replace(self, bound=found)

    @property
    def matches(self) -> Stream:
        """One row per match, dated as its last row (rule T6); by default the name of the pattern, the key, and of each
        step the columns of the last row it took."""
        return Stream(self.app, self._node, refs(self._node.key, self._node.columns))

    @property
    def timeouts(self) -> Stream:
        """One row per partial match whose time was up: the same columns, null for steps that were not reached."""
        side = declared.Side(of=self._node, port="timeouts", where=here())
        return Stream(self.app, side, refs(self._node.key, side.columns))

    @cached_property
    def _node(self) -> declared.Pattern:
        """One node, however often matches and timeouts are asked for: they are two ends of one step."""
        check(self)
        return Binding(self).node()

    def _with(self, parts: tuple[Written, ...]) -> Self:
        """Names are checked step by step, so that a mistake is told at the line that makes it."""
        grown = replace(self, parts=parts)
        Binding(grown)
        return grown


def pattern(
    app: App, name: str, *, key: str, after_match: str, keep: str | timedelta | None, select: str | None
) -> Pattern:
    """What `app.pattern(...)` gives."""
    place = here()
    if not _NAME.fullmatch(name):
        raise BadStep(f"{name!r} is no name for a pattern", why="it names the step in plans and in what it finds",
                      fix="letters, digits, - and _, beginning with a letter", where=place)  # fmt: skip
    after, to = _after(after_match, place)
    kept = None if keep is None else duration(keep)
    if kept is not None and kept <= timedelta(0):
        raise BadStep(f"keep of {show(kept)} keeps nothing", fix='keep="1 d"', where=place)
    return Pattern(app=app, name=name, key=key, after=after, after_step=to, keep=kept, chosen=select, place=place)


def _after(given: str, place: Where | None) -> tuple[str, str]:
    words = str(given).removeprefix("skip ").split()
    match words:
        case ["none"] | ["next"] | ["past", "last"]:
            return " ".join(words), ""
        case ["to", "first" | "last", to]:
            return " ".join(words[:2]), to
    raise BadStep(f"after_match={given!r} is not known", why=f"it is one of {', '.join(_AFTER)}", where=place)
