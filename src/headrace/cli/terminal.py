"""The terminal: data goes to stdout as a table or JSON, talk to stderr; colour only where a person looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 10_000
"""No terminal, no edge to wrap at: a pipe gets whole lines."""

_KEPT = "\n\u00a0"

Row = dict[str, Any]
"""One thing shown: a row of the table, an object of the JSON; the keys are the column names."""


def console(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream, highlight=False, emoji=False, markup=False, width=None if stream.isatty() else PIPE_WIDTH
    )


def talk(text: str) -> None:
    """Words for the person, beside the data."""
    print(f"{text}\n", end="", file=sys.stderr, flush=True)  # in one piece, as data


def data(text: str) -> None:
    """One line of data, at once: a reader at the other end of a pipe may be waiting for it."""
    print(f"{text}\n", end="", flush=True)  # in one piece, since several flows may tell at the same time


def json_text(value: Any, *, indent: int = 0) -> str:
    import msgspec

    text = msgspec.json.encode(value, enc_hook=_plain)
    return (msgspec.json.format(text, indent=indent) if indent else text).decode()


def show(rows: Sequence[Row], *, json: bool, empty: str = "") -> None:
    """Many things: a table, or one JSON array. `empty` is said when there is nothing to show."""
    if json:
        data(json_text([_json_row(row) for row in rows], indent=2))
    elif rows:
        data(render(rows))
    elif empty:
        talk(empty)


def show_one(row: Row, *, json: bool) -> None:
    """One thing: a line per value, or one JSON object."""
    if json:
        data(json_text(_json_row(row), indent=2))
        return
    width = max(map(len, row))
    for name, value in row.items():
        data(f"{name:<{width}}  {text_of(value)}")


def render(rows: Sequence[Row], *, as_named: bool = False) -> str:
    """The rows as a table; numbers stand right. Where the terminal is narrow the last column wraps, and no name or
    address is ever broken: then the lines run over, but can still be copied whole. `as_named` leaves the names of
    columns as they are, for who must write them again."""
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in rows[0]:
        known = [row[name] for row in rows if row[name] is not None]
        number = bool(known) and all(isinstance(value, int | float | Decimal) for value in known)
        last = name == list(rows[0])[-1]
        drawn.add_column(
            name if as_named else name.replace("_", " "),
            justify="right" if number else "left",
            no_wrap=not last,
            min_width=len(name),
        )
    for row in rows:
        drawn.add_row(*(Text(text_of(value), style=STYLES.get(str(value), "")) for value in row.values()))
    out = console()
    unbroken = Measurement.get(out, out.options.update(max_width=PIPE_WIDTH), drawn).minimum
    out.width = max(out.width, unbroken)
    with out.capture() as captured:
        out.print(drawn)
    # Rich pads each line to the width of the table; nobody wants that in a pipe or a test.
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


STYLES = {
    "running": "green",
    "fine": "green",
    "note": "cyan",
    "warning": "yellow",
    "error": "red",
    "stable": "green",
    "dead": "red",
    "silent": "red",
    "refused": "red",
    "balancing": "yellow",
}
"""Words that are coloured wherever they stand alone in a cell."""


def text_of(value: Any) -> str:
    """A value as a person reads it."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, timedelta):
        from headrace.base.duration import show as duration_text

        return duration_text(value)
    if isinstance(value, datetime):
        return value.astimezone().isoformat(sep=" ", timespec="milliseconds")
    return printable(str(value))


def printable(text: str) -> str:
    """With signs that a terminal would obey written out: what stands on a topic may come from anybody."""
    return text if text.isprintable() else "".join(one if one in _KEPT or one.isprintable() else ascii(one)[1:-1]
                                                   for one in text)  # fmt: skip


def _json_row(row: Row) -> Row:
    """Durations as seconds and times as RFC 3339, as everywhere on the wire."""
    return {name: _json_value(value) for name, value in row.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        from headrace.base.clock import rfc3339

        return rfc3339(value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr that a download may move: `move(bytes so far, bytes in all, note)`; lines where nobody looks."""
    out = console(stderr=True)
    if not out.is_terminal:
        said = -1

        def say(done: int, total: int, note: str) -> None:
            nonlocal said
            tenth = done * 10 // max(total, 1)
            if tenth > said:
                said = tenth
                talk(f"{title}: {done / 1e6:.0f} of {total / 1e6:.0f} MB ({note})")

        yield say
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task(title, total=None, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total, note=note)
