"""Headrace: declare streams once in Python; run them live, in real time and over history on Apache Spark.

Everything a user needs is here: `import headrace as hr`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace import testing
    from headrace.base.errors import HeadraceError
    from headrace.base.money import Money, money
    from headrace.expr.build import col
    from headrace.model.aggregate import (
        avg,
        collect,
        count,
        distinct,
        first,
        last,
        max,
        min,
        quantile,
        stddev,
        sum,
        top,
    )
    from headrace.model.app import App, marked
    from headrace.model.event import event
    from headrace.model.policy import Policy
    from headrace.model.rule import Rule
    from headrace.model.sequence import group
    from headrace.model.static import Static
    from headrace.model.stream import Stream
    from headrace.model.table import Table
    from headrace.model.target import files, lake, postgres, redis
    from headrace.model.trees import Model
    from headrace.model.view import View
    from headrace.model.window import at_close, forever, hopping, on_change, session, sliding, tumbling
    from headrace.ops.connect import connect
    from headrace.steps.seen import Seen

__version__ = "0.1.0"

__all__ = [
    "App",
    "HeadraceError",
    "Model",
    "Money",
    "Policy",
    "Rule",
    "Seen",
    "Static",
    "Stream",
    "Table",
    "View",
    "at_close",
    "avg",
    "col",
    "collect",
    "connect",
    "count",
    "distinct",
    "event",
    "files",
    "first",
    "forever",
    "group",
    "hopping",
    "lake",
    "last",
    "marked",
    "max",
    "min",
    "money",
    "on_change",
    "postgres",
    "quantile",
    "redis",
    "session",
    "sliding",
    "stddev",
    "sum",
    "testing",
    "top",
    "tumbling",
]

# Loaded when first used: the command line needs none of them, and whoever needs one rarely needs all.
_HOMES = {
    "headrace.base.errors": "HeadraceError",
    "headrace.base.money": "Money money",
    "headrace.expr.build": "col",
    "headrace.model.aggregate": "avg collect count distinct first last max min quantile stddev sum top",
    "headrace.model.app": "App marked",
    "headrace.model.event": "event",
    "headrace.model.policy": "Policy",
    "headrace.model.rule": "Rule",
    "headrace.model.sequence": "group",
    "headrace.model.static": "Static",
    "headrace.model.stream": "Stream",
    "headrace.model.table": "Table",
    "headrace.model.target": "files lake postgres redis",
    "headrace.model.trees": "Model",
    "headrace.model.view": "View",
    "headrace.model.window": "at_close forever hopping on_change session sliding tumbling",
    "headrace.ops.connect": "connect",
    "headrace.steps.seen": "Seen",
}
_LATER = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "testing":
        return import_module("headrace.testing")
    if name not in _LATER:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LATER[name]), name)  # asked for here only once
    return found


def __dir__() -> list[str]:
    return __all__
