"""What a pattern must be as a whole, so that there is something to match and an end to waiting (rules P3, P4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.base.errors import BadStep
from headrace.model.sequence import Written

if TYPE_CHECKING:
    from headrace.model.pattern import Pattern

MOST_ROWS = 1_000
"""Repetitions are written out: a pattern with more is a mistake, or wants `or_more`."""


def check(pattern: Pattern) -> None:
    """Refuses a pattern that could not run, at the line of the step to blame."""
    place = pattern.place
    if not pattern.parts:
        raise BadStep(f"{pattern.name} has no steps", fix='.first("name", stream)', where=place)
    if pattern.bound is None and pattern.keep is None:
        raise BadStep(f"{pattern.name} may take for ever", why="what has begun would be kept without end",
                      fix='.within("5 min"), or keep="1 d" in pattern(...)', where=place)  # fmt: skip
    for steps in (pattern.parts, *(part.steps for part in _every(pattern.parts) if part.steps)):
        if all(part.optional or part.never for part in steps):
            raise BadStep("every step may be left out", why="it would match no rows at all",
                          fix="make a group as a whole optional, or one step not", where=steps[0].place)  # fmt: skip
    for part in _every(pattern.parts):
        _check_repetition(part)
    if leading := _leading(pattern.parts):
        raise BadStep(f"the pattern may begin with never {leading.name}",
                      why="there is no row yet from which on something must not come",
                      fix="let a step that is not optional come first", where=leading.place)  # fmt: skip
    trailing = _trailing(pattern.parts)
    if trailing and pattern.bound is None:
        raise BadStep(f"never {trailing.name} at the end without within",
                      why="that something has not come is known only when its time is up",
                      fix='.within("30 min")', where=trailing.place)  # fmt: skip
    if pattern.after_step and pattern.after_step not in (part.name for part in _every(pattern.parts) if not part.never):
        raise BadStep(f"after a match there is no skipping to {pattern.after_step!r}",
                      why=f"the steps are {', '.join(p.name for p in _every(pattern.parts) if p.name)}",
                      where=place)  # fmt: skip
    if _rows(pattern.parts) > MOST_ROWS:
        raise BadStep(f"a pattern of more than {MOST_ROWS} rows", fix="repeat less, or use .or_more()", where=place)


def _check_repetition(part: Written) -> None:
    """What speaks of several rows wants a step that may take several."""
    if part.most != 1:
        return
    verb = {"next": "consecutive", "then_any": "any"}.get(part.inner, "")
    if part.greedy and not part.optional:
        verb = "greedy"
    if verb:
        raise BadStep(f".{verb}() of {part.called}, which comes once",
                      why="it says how several rows of a step follow each other",
                      fix=f".times(3).{verb}(), or .or_more().{verb}()", where=part.place)  # fmt: skip


def _every(parts: tuple[Written, ...]) -> Iterator[Written]:
    for part in parts:
        yield part
        yield from _every(part.steps)


def _leading(parts: tuple[Written, ...]) -> Written | None:
    """A never that can come before any row."""
    for part in parts:
        if part.never:
            return part
        if found := _leading(part.steps):
            return found
        if not part.optional:
            return None
    return None


def _trailing(parts: tuple[Written, ...]) -> Written | None:
    """A never that can come after the last row and has no bound of its own."""
    for part in reversed(parts):
        if part.never and part.within is None:
            return part
        if found := _trailing(part.steps):
            return found
        if not part.never and not part.optional:
            return None
    return None


def _rows(parts: tuple[Written, ...]) -> int:
    """The positions of the automaton (steps/pattern_nfa.py)."""
    return sum((p.most or p.least) * (_rows(p.steps) if p.steps else 1) for p in parts if not p.never)
