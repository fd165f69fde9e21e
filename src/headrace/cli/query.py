"""The command that asks the lake: SQL in, a table, JSON or CSV out."""

from __future__ import annotations

import sys
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Annotated, Any

import typer

from headrace.base.errors import UsageError
from headrace.cli.options import Json
from headrace.cli.terminal import Row, data, json_text, render, show, talk

SHOWN = 100
"""Rows of an answer that a terminal shows unless told otherwise."""


def register(app: typer.Typer) -> None:
    app.command("query")(query)


def query(
    ctx: typer.Context,
    sql: Annotated[str | None, typer.Argument(metavar="[SQL]", help="A question; default: list the tables.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help=f"Rows at most, 0 for all; default {SHOWN}, for JSON and CSV all.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout instead of a table.")] = False,
    json: Json = False,
) -> None:
    """Ask the lake in SQL: its tables are lake.<name>."""
    from headrace.ops import query as lake

    if csv and json:
        raise UsageError("--csv and --json are two forms of one answer", fix="choose one")
    if sql is None:
        rows: list[Row] = [table.as_dict() for table in lake.tables(ctx.obj)]
        show(rows, json=json, empty="the lake has no tables yet; an output makes one: .to(hr.lake(...))")
        return
    answer = lake.query(ctx.obj, sql)
    most = limit if limit is not None else 0 if csv or json else SHOWN
    taken = list(islice(answer.rows, most or None))
    if csv:
        _csv(answer.columns, taken)
    elif json:
        show([{name: _plain(value) for name, value in row.items()} for row in taken], json=True)
    elif taken:
        data(render([{name: _cell(value) for name, value in row.items()} for row in taken], as_named=True))
    else:
        talk("no rows")
    if not csv and not json and next(answer.rows, None) is not None:
        talk(f"only the first {most:,} rows; --limit 0 shows all")


def _cell(value: Any) -> Any:
    """For the terminal. Numbers as they are, without the commas and the rounding of what is only looked at."""
    return Decimal(repr(value)) if isinstance(value, int | float) and not isinstance(value, bool) else _plain(value)


def _plain(value: Any) -> Any:
    """What has no form of its own in JSON becomes text: intervals, times of day, times without a zone."""
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    known = value is None or zoned or isinstance(value, str | bool | int | float | Decimal | bytes | list | dict)
    return value if known else str(value)


def _csv(columns: tuple[str, ...], rows: list[Row]) -> None:
    import csv

    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(columns)
    out.writerows([_field(value) for value in row.values()] for row in rows)


def _field(value: Any) -> Any:
    if isinstance(value, list | dict | bool):
        return json_text(value)
    return value.hex() if isinstance(value, bytes) else value
