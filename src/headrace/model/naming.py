"""Names of columns in declarations: conditions, keys, and which keys a new list of columns keeps."""

from __future__ import annotations

from typing import Any

from headrace.base.errors import BadStep
from headrace.base.where import Where
from headrace.expr.types import Columns

Named = tuple[tuple[str, Any], ...]
"""Expressions, each with the name of the column it becomes."""
SHOWN = 8
"""Columns in the one line that a stream or a table prints as."""


def condition_of(condition: Any, columns: Columns, place: Where | None) -> Any:
    from headrace.expr import expression
    from headrace.expr.types import BOOL

    found = expression(condition, columns, where=place)
    if found.type != BOOL:
        raise BadStep(f"{found} is {found.type}, not a condition", fix=f"compare it: {found} = ...", where=place)
    return found


def key_columns(text: str, columns: Columns, place: Where | None) -> Named:
    from headrace.expr import select_list

    values = select_list(text, columns, where=place)
    for name, value in values:
        if value.nullable:
            raise BadStep(
                f"{name} may be null, so it cannot be a key",
                why="a null key joins nothing and belongs to no window",
                fix=f'filter first: .where("{name} is not null"), or coalesce({name}, ...) as {name}',
                where=place,
            )
    return values


def refs(names: tuple[str, ...], columns: Columns) -> Named:
    from headrace.expr.nodes import Ref

    by_name = {column.name: column for column in columns}
    return tuple((n, Ref(name=n, type=by_name[n].type, nullable=by_name[n].nullable)) for n in names)


def kept(key: Named, values: Named) -> Named:
    """The key, if all its columns come out under their own names."""
    from headrace.expr.nodes import Ref

    same = {out for out, value in values if isinstance(value, Ref) and value.name == out}
    return key if all(ref.name in same for _, value in key for ref in value.refs()) else ()


def few(columns: Columns) -> str:
    """Their names; of many the first ones."""
    names = [column.name for column in columns]
    return ", ".join(names if len(names) <= SHOWN else [*names[:SHOWN], "..."])
