"""Expressions over declared columns: parse, allow-list, types, print, evaluate."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.expr.evaluate import by_attribute, by_index, by_name, compile
    from headrace.expr.json import to_json
    from headrace.expr.nodes import Expr
    from headrace.expr.typed import column_list, expression, parse, select_list

__all__ = [
    "Expr",
    "by_attribute",
    "by_index",
    "by_name",
    "column_list",
    "compile",
    "expression",
    "parse",
    "select_list",
    "to_json",
]

# Loaded when first used: declaring an event needs the types of columns, and `import headrace` must stay light.
_LATER = {
    "Expr": "nodes",
    "to_json": "json",
    **dict.fromkeys(("by_attribute", "by_index", "by_name", "compile"), "evaluate"),
    **dict.fromkeys(("column_list", "expression", "parse", "select_list"), "typed"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
