"""A question in SQL, as DuckDB parses it: which tables of the lake it reads, and that it reads nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from headrace.base.errors import BadQuery, TableMissing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SCHEMA = "lake"
HARMLESS = ("range", "generate_series", "unnest", "repeat", "repeat_row")
"""Functions that make tables out of their arguments alone."""
EXAMPLE = "headrace query 'select count(*) from lake.payments'"

_AT = re.compile(r"at\b", re.IGNORECASE)
_IN_SQL = re.compile(r"\(|time\b", re.IGNORECASE)

Node = dict[str, Any]
"""A part of the question, as DuckDB writes it in JSON."""


def with_at(sql: str) -> str:
    """`at` is a column of most events, and a word of SQL: quoted, unless it begins AT TIME ZONE or AT (VERSION ...).

    >>> with_at("select at, at at time zone 'UTC' from lake.payments")
    'select "at", "at" at time zone \\'UTC\\' from lake.payments'
    """
    import duckdb

    places = [place for place, _ in duckdb.tokenize(sql)]
    for place, following in reversed(list(pairwise([*places, len(sql)]))):
        if _AT.match(sql, place) and not _IN_SQL.match(sql, following):
            sql = f'{sql[:place]}"{sql[place : place + 2]}"{sql[place + 2 :]}'
    return sql


def tables_in(sql: str, there: Sequence[str], connection: DuckDBPyConnection) -> list[str]:
    """Which of the tables that are `there` a question reads; BadQuery if it is none, or goes elsewhere."""
    nodes = list(_nodes(_parsed(sql, connection)))
    for node in nodes:
        if node.get("type") == "TABLE_FUNCTION":
            _check_function(node["function"], sql)
    named = {entry["key"].lower() for node in nodes for entry in (node.get("cte_map") or {}).get("map", ())}
    by_name = {name.lower(): name for name in there}
    found = set()
    for node in nodes:
        if node.get("type") == "BASE_TABLE":
            schema, name = node["schema_name"].lower(), node["table_name"].lower()
            if schema == SCHEMA or (not schema and name not in named):
                if name not in by_name:
                    raise _missing(node["table_name"], there)
                found.add(by_name[name])
    return sorted(found)


def _parsed(sql: str, connection: DuckDBPyConnection) -> Node:
    connection.extract_statements(sql)  # raises with a caret for what is no SQL; the next would not
    (text,) = connection.execute("select json_serialize_sql(?)", [sql]).fetchone() or ("",)
    parsed: Node = json.loads(text)
    if parsed["error"] or len(parsed["statements"]) != 1:
        raise BadQuery(
            "that is not one question",
            text=sql,
            why="tables of the lake are written by flows and only read here: by one SELECT, DESCRIBE or SUMMARIZE",
            fix=EXAMPLE,
        )
    return parsed


def _check_function(function: Node, sql: str) -> None:
    name, at = function["function_name"], function["query_location"]
    if name.lower() not in HARMLESS:
        raise BadQuery(
            f"{name}(...) cannot be asked here",
            text=sql,
            span=(at, at + len(name)),
            why="it could read what is not in the lake",
            fix="ask for lake.<table>; `headrace query` alone lists the tables",
        )


def _missing(name: str, there: Sequence[str]) -> TableMissing:
    near = get_close_matches(name.lower(), there, n=1)
    if not there:
        fix = f'a flow makes one: .to(hr.lake("{name}")), and `headrace run`'
    else:
        fix = f"lake.{near[0]}?" if near else f"there are {', '.join(f'lake.{one}' for one in there)}"
    return TableMissing(f"there is no table {name} in the lake", why="" if there else "it has no tables yet", fix=fix)


def _nodes(tree: Any) -> Iterator[Node]:
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for child in tree:
            yield from _nodes(child)
