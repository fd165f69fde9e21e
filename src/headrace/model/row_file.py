"""A file of rows, CSV or JSON lines, typed by an event class; a mistake in it is told with its own line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from headrace.base.errors import BadApp, DataError, Undecodable, WrongType
from headrace.base.where import Where
from headrace.expr.types import BOOL, FLOAT, INT, Column, ListType
from headrace.model.event import EventType, misread, unknown_field


def rows_of(event: EventType, file: Path, place: Where | None) -> Iterator[tuple[Any, Where]]:
    """Its rows as events, each with its line. `place`: where the file was asked for."""
    if file.suffix not in _FORMS:
        raise BadApp(f"{file} is no file of rows", why="the end of its name tells how to read it",
                     fix="name it .csv, with a line of names first, or .jsonl, a JSON object a line",
                     where=place)  # fmt: skip
    try:
        text = file.read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark first
    except (OSError, UnicodeDecodeError) as broken:
        raise BadApp(f"{file} cannot be read", why=str(broken), fix="give the path of a file in UTF-8",
                     where=place) from None  # fmt: skip
    split, plain = _FORMS[file.suffix]
    at = Where(str(file), 1)
    try:
        for line, part in split(text):
            at = Where(str(file), line)
            yield _typed(event, plain(event, part)), at
    except DataError as broken:
        raise type(broken)(broken.what, why=broken.why, fix=broken.fix, where=at) from None
    except csv.Error as broken:
        raise Undecodable(f"{file} is no CSV", why=str(broken), fix="close every quote",
                          where=Where(str(file), at.line + 1)) from None  # fmt: skip


def _typed(event: EventType, plain: dict[str, Any]) -> Any:
    """An event from JSON values, with all the checks of one that a person makes."""
    known = {column.name for column in event.columns}
    for name in plain:
        if name not in known:
            raise unknown_field(event, name)
    try:
        made: Any = msgspec.convert(plain, event.cls)
    except msgspec.ValidationError as broken:
        raise misread(event, broken, plain) from None
    return event.cls(**asdict(made))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _of_line(event: EventType, line: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError as broken:
        raise Undecodable("the line is no JSON", why=str(broken), fix="write one JSON object a line") from None
    if not isinstance(found, dict):
        raise WrongType("the line is no JSON object", fix="write one JSON object a line")
    return found


def _cells(text: str) -> Iterator[tuple[int, tuple[list[str], list[str]]]]:
    """The names of the first line with the cells of each other."""
    lines = csv.reader(io.StringIO(text), strict=True)
    names = next(lines, [])
    return ((lines.line_num, (names, cells)) for cells in lines if cells)


def _of_cells(event: EventType, part: tuple[list[str], list[str]]) -> dict[str, Any]:
    names, cells = part
    if len(cells) != len(names):
        raise WrongType(
            f"the line has {len(cells)} cells",
            why=f"the first line names {len(names)}: {', '.join(names)}",
            fix="a cell with a comma in it stands in quotes",
        )
    columns = {column.name: column for column in event.columns}
    return {name: _value(columns.get(name), cell) for name, cell in zip(names, cells, strict=True)}


def _value(column: Column | None, cell: str) -> Any:
    """A cell as the JSON value of its column. One that does not read as that stays text, and is refused as such."""
    if column is None:
        return cell
    if not cell and column.nullable:
        return None
    if column.type in (INT, FLOAT, BOOL) or isinstance(column.type, ListType):
        try:
            return msgspec.json.decode(cell)
        except msgspec.DecodeError:
            return cell
    return cell


_FORMS: dict[str, tuple[Any, Any]] = {".csv": (_cells, _of_cells), ".jsonl": (_lines, _of_line)}
"""By the end of a file's name: the parts it is cut into, with their lines, and plain values from a part."""
