"""Steps one after the other, as they are written: the verbs that patterns and groups of steps share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Self

from headrace.base.duration import duration, show
from headrace.base.errors import BadStep
from headrace.base.where import Where, here
from headrace.model.declaring import declaring
from headrace.model.stream import Stream
from headrace.model.verbs import NOT_OF_PATTERNS, Verbs
from headrace.model.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A step, or with `steps` a group of them. `most` None: or more."""

    how: str
    name: str = ""
    stream: Stream | None = None
    condition: Any = None
    steps: tuple[Written, ...] = ()
    least: int = 1
    most: int | None = 1
    optional: bool = False
    inner: str = "then"
    greedy: bool = False
    until: Any = None
    within: timedelta | None = None
    place: Where | None = None

    @property
    def never(self) -> bool:
        return self.how.startswith("never")

    @property
    def called(self) -> str:
        return self.name or "a group"


@dataclass(frozen=True, repr=False)
class Sequence(Verbs):
    """Each verb gives a new sequence. Verbs about repetition speak of the step before them."""

    ELSEWHERE = NOT_OF_PATTERNS

    parts: tuple[Written, ...] = ()

    @declaring('.next("buy", payments)')
    def next(
        self,
        step: str | Group,
        stream: Stream | None = None,
        *,
        where: Any = None,
        within: str | timedelta | None = None,
    ) -> Self:
        """The row directly after. `within`: less than that after the row before it."""
        return self._then("next", step, stream, where, within)

    @declaring('.then("buy", payments)')
    def then(
        self,
        step: str | Group,
        stream: Stream | None = None,
        *,
        where: Any = None,
        within: str | timedelta | None = None,
    ) -> Self:
        """The first row later that fits; rows that do not fit are passed by."""
        return self._then("then", step, stream, where, within)

    @declaring('.then_any("buy", payments)')
    def then_any(
        self,
        step: str | Group,
        stream: Stream | None = None,
        *,
        where: Any = None,
        within: str | timedelta | None = None,
    ) -> Self:
        """Any row later that fits: a match for each."""
        return self._then("then_any", step, stream, where, within)

    @declaring('.never("paid", payments)')
    def never(
        self, step: str, stream: Stream | None = None, *, where: Any = None, within: str | timedelta | None = None
    ) -> Self:
        """No such row before the next step; at the end: before the time is up. `within`: how long it watches."""
        return self._then("never", step, stream, where, within)

    @declaring('.never_next("paid", payments)')
    def never_next(
        self, step: str, stream: Stream | None = None, *, where: Any = None, within: str | timedelta | None = None
    ) -> Self:
        """The row directly after is not such a one."""
        return self._then("never_next", step, stream, where, within)

    @declaring(".times(3), or .times(1, 3)")
    def times(self, least: int, most: int | None = None) -> Self:
        """So often, or between so often and so often."""
        most = least if most is None else most
        if not (isinstance(least, int) and isinstance(most, int) and 1 <= least <= most):
            raise BadStep(f"{self._last.called} comes {least} to {most} times",
                          fix=".times(a, b) with 1 <= a <= b; .optional() if none will do", where=here())  # fmt: skip
        return self._change(least=least, most=most)

    @declaring(".or_more()")
    def or_more(self) -> Self:
        """That often or more: `.times(3).or_more()`; alone once or more."""
        return self._change(most=None)

    @declaring(".optional()")
    def optional(self) -> Self:
        """It may be left out."""
        return self._change(optional=True)

    @declaring(".greedy()")
    def greedy(self) -> Self:
        """As many rows as fit are taken before the next step may take one."""
        if self._last.steps:
            raise BadStep("a greedy group", why="only a step says what it takes", fix="make its steps greedy",
                          where=here())  # fmt: skip
        return self._change(greedy=True)

    @declaring('.or_more().until("amount > 100")')
    def until(self, condition: Any) -> Self:
        """Ends a repetition: such a row is no longer taken, nor any after it."""
        if self._last.steps or self._last.most is not None:
            raise BadStep(f"until ends what has no other end: {self._last.called} is not .or_more()",
                          fix=".or_more().until(...), or leave it out", where=here())  # fmt: skip
        return self._change(until=condition)

    @declaring(".times(3).consecutive()")
    def consecutive(self) -> Self:
        """Its rows follow each other directly."""
        return self._change(inner="next")

    @declaring(".times(3).any()")
    def any(self) -> Self:
        """Any of the rows that fit, in every combination."""
        return self._change(inner="then_any")

    def _then(self, how: str, step: str | Group, stream: Stream | None, condition: Any, within: Any) -> Self:
        if not self.parts:
            raise BadStep(f"{how}() begins a pattern", why="there is no row yet to come after",
                          fix='begin with .first("name", stream)', where=here())  # fmt: skip
        return self._with((*self.parts, written(how, step, stream, condition, within)))

    def _change(self, **change: Any) -> Self:
        if self._last.never:
            raise BadStep(f"never {self._last.name} cannot be repeated or optional", why="it takes no row",
                          where=here())  # fmt: skip
        return self._with((*self.parts[:-1], replace(self._last, **change)))

    @property
    def _last(self) -> Written:
        if not self.parts:
            raise BadStep("there is no step yet", fix='begin with .first("name", stream)', where=here())
        return self.parts[-1]

    def _with(self, parts: tuple[Written, ...]) -> Self:
        return replace(self, parts=parts)


@dataclass(frozen=True, repr=False)
class Group(Sequence):
    """A step of steps: it is reached, repeated and left out as one."""

    KIND = "a group"

    def __repr__(self) -> str:
        return f"<group of {', '.join(part.called for part in self.parts)}>"


@declaring('hr.group("miss", logins, where="not ok").then("hit", where="ok")')
def group(
    step: str | Group, stream: Stream | None = None, *, where: Any = None, within: str | timedelta | None = None
) -> Group:
    """Steps as one step, beginning with this one: `.then(hr.group("up").then("down")).times(2)`."""
    return Group((written("then", step, stream, where, within),))


def written(how: str, step: str | Group, stream: Stream | None, condition: Any, within: Any) -> Written:
    """A step as a verb was told of it, at the user's line."""
    place = here()
    bound = None if within is None else duration(within)
    if bound is not None and bound <= timedelta(0):
        raise BadStep(f"within {show(bound)} leaves no time", fix='say within="5 min"', where=place)
    if isinstance(step, Group):
        if stream is not None or condition is not None:
            raise BadStep("a group has no rows of its own", why="its steps say which rows they take", where=place)
        if how.startswith("never"):
            raise BadStep("never a group", why="it takes no row, so it is one step", where=place)
        return Written(how=how, steps=step.parts, within=bound, place=place)
    if not isinstance(step, str) or not step.isidentifier():
        raise BadStep(f"{step!r} cannot name a step", fix="use letters, digits and _", where=place)
    if isinstance(stream, View):
        raise BadStep(f"{stream.called} is a table", why="its rows change, and a pattern takes rows that come",
                      fix=f"{stream.called}.changes() is a stream, of its changes; app.stream(...) reads the topic",
                      where=place)  # fmt: skip
    if stream is not None and not isinstance(stream, Stream):
        raise BadStep(f"{stream!r} is no stream", fix="app.stream(SomeEvent, ...) is one", where=place)
    return Written(how=how, name=step, stream=stream, condition=condition, within=bound, place=place)
