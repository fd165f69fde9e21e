"""Durations as people write them: "5 min", "1 h 30 min", "250 ms"; whole milliseconds (rule T1)."""

from __future__ import annotations

import re
from datetime import timedelta
from difflib import get_close_matches

from headrace.base.errors import BadDuration

MILLISECOND = timedelta(milliseconds=1)

_UNITS = {
    "ms": 1,
    "s": 1_000,
    "sec": 1_000,
    "min": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "w": 604_800_000,
    "week": 604_800_000,
}
_ALIASES = {"second": "s", "minute": "min", "m": "min", "hr": "h", "millisecond": "ms"}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)")
_SHOWN = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))


def duration(value: str | timedelta) -> timedelta:
    """Reads a duration; a timedelta passes through, checked.

    >>> duration("1 h 30 min")
    datetime.timedelta(seconds=5400)
    """
    found = _parse(value) if isinstance(value, str) else value
    if not isinstance(found, timedelta):
        raise BadDuration(
            f"{value!r} is not a duration", why="a duration is text or a timedelta", fix='write it like "5 min"'
        )
    if found % MILLISECOND:
        raise BadDuration(
            f"{value!r} is finer than a millisecond",
            why="watermarks, sizes and bounds are whole milliseconds (rule T1)",
            fix='round it, for example "1 ms"',
        )
    return found


def millis(value: str | timedelta) -> int:
    """The same in whole milliseconds."""
    return duration(value) // MILLISECOND


def show(value: timedelta) -> str:
    """The shortest text that reads back to the same duration.

    >>> show(timedelta(seconds=5400))
    '1 h 30 min'
    """
    left = value // MILLISECOND
    if left == 0:
        return "0 s"
    sign, left = ("-", -left) if left < 0 else ("", left)
    parts: list[str] = []
    for unit, size in _SHOWN:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return sign + " ".join(parts)


def _parse(text: str) -> timedelta:
    body = text.strip().lower()
    negative = body.startswith("-")
    body = body.removeprefix("-")
    total, at = 0.0, 0
    while at < len(body):
        part = _PART.match(body, at)
        unit = _unit(part.group(2)) if part else None
        if part is None or unit is None:
            raise BadDuration(
                f"{text!r} is not a duration",
                why=f"after a number comes one of {', '.join(_UNITS)}",
                fix=_nearest(body, part) or 'write it like "5 min" or "1 h 30 min"',
            )
        total += float(part.group(1)) * _UNITS[unit]
        at = part.end()
    if not body:
        raise BadDuration("a duration is empty", fix='write it like "5 min"')
    if total != int(total):
        raise BadDuration(f"{text!r} is finer than a millisecond", fix='use whole milliseconds, like "250 ms"')
    return timedelta(milliseconds=-int(total) if negative else int(total))


def _nearest(body: str, part: re.Match[str] | None) -> str:
    """The same text with the unit that was probably meant."""
    names = [*_UNITS, *_ALIASES, *(f"{name}s" for name in (*_UNITS, *_ALIASES) if len(name) > 2)]
    near = get_close_matches(part.group(2), names, 1) if part else []
    return f'did you mean "{body[: part.start(2)]}{near[0]}{body[part.end(2) :]}"?' if part and near else ""


def _unit(name: str) -> str | None:
    for known in (name, name.removesuffix("s")):
        if known in _UNITS:
            return known
        if known in _ALIASES:
            return _ALIASES[known]
    return None
