"""Headrace: declare streams once in Python; run them live, in real time and over history on Apache Spark.

Everything a user needs is here: `import headrace as hr`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.base.errors import HeadraceError
from headrace.base.money import Money, money
from headrace.model.aggregate import avg, collect, count, distinct, first, last, max, min, quantile, sum, top
from headrace.model.app import App, marked
from headrace.model.event import event
from headrace.model.sequence import group
from headrace.model.static import Static
from headrace.model.stream import Stream
from headrace.model.table import Table
from headrace.model.view import View
from headrace.model.window import at_close, forever, hopping, on_change, session, sliding, tumbling

if TYPE_CHECKING:
    from headrace import testing
    from headrace.expr.build import col
    from headrace.ops.connect import connect

__version__ = "0.1.0"

__all__ = [
    "App",
    "HeadraceError",
    "Money",
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
    "first",
    "forever",
    "group",
    "hopping",
    "last",
    "marked",
    "max",
    "min",
    "money",
    "on_change",
    "quantile",
    "session",
    "sliding",
    "sum",
    "testing",
    "top",
    "tumbling",
]

# Loaded when first used, so that `import headrace` stays light: the broker's client, sqlglot, the test kit.
_LATER = {"connect": "headrace.ops.connect", "col": "headrace.expr.build", "testing": "headrace.testing"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_LATER[name])
    return module if name == "testing" else getattr(module, name)
