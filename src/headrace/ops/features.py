"""Features of an app: what they are, and readers of them and of tables that are kept beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headrace.base.duration import show
from headrace.base.errors import BadStore
from headrace.base.settings import Settings
from headrace.features import declared, history
from headrace.features.reader import FeatureReader
from headrace.model.app import App
from headrace.model.featured import Featured
from headrace.model.features import Features
from headrace.model.output import Output
from headrace.model.table import Table
from headrace.ops import endpoints

if TYPE_CHECKING:
    from headrace.features.online_table import OnlineTable


def reader(app: App, features: Features | str, settings: Settings, beside: Iterable[App] = ()) -> FeatureReader:
    """Of features that an app declares, or this one by their name. Their rows are where that app or this keeps them, or
    one of those `beside`."""
    if isinstance(features, str):
        node, owner = declared.named(app, features), app
    else:
        node, owner = features.node, features.app
    outputs = [output for one in (owner, app, *beside) for output in one.outputs]
    return FeatureReader(node, outputs, redis=lambda: endpoints.redis(settings), lake=settings.lake)


def online_table(app: App, table: Table, settings: Settings) -> OnlineTable:
    """A reader of the rows of a table that its app or this one keeps in Redis."""
    from headrace.features.online_table import OnlineTable

    outputs = [output for one in (table.app, app) for output in one.outputs]
    return OnlineTable(table.read, declared.kept_rows(outputs, table.read), endpoints.redis(settings))


def described(app: App, name: str | None = None, beside: Iterable[App] = ()) -> list[dict[str, Any]]:
    """A row for each set of features, or for each feature of one. They may be kept by those `beside`."""
    if name is not None:
        node = declared.named(app, name)
        said = zip(declared.told(node), _said(node), strict=True)
        return [{"feature": column.name, "type": str(column.type), "what": what} for column, what in said]
    outputs = [output for one in (app, *beside) for output in one.outputs]
    return [
        {
            "features": node.name,
            "key": ", ".join(key for key, _ in node.keys),
            "columns": len(declared.told(node)),
            "ttl": node.ttl,
            "online": _online(outputs, node),
            "lake": _lake(outputs, node),
        }
        for node in declared.all_features(app).values()
    ]


def _said(node: Featured) -> Iterator[str]:
    for over in node.overs:
        of = f" of {node.others[over.input - 1].name}" if over.input else ""
        ago = f" until {show(over.delay)} ago" if over.delay else f" in tiles of {show(over.tile)}" if over.tile else ""
        for value in over.values:
            yield f"{str(value).removeprefix(f'{value.name} = ')}{of} over {show(over.size)}{ago}"
    for one in node.before:
        yield f"{one.column.name} of the row before" if one.n == 1 else f"{one.column.name} of {one.n} rows before"


def _online(outputs: Sequence[Output], node: Featured) -> str:
    with suppress(BadStore):
        return ", ".join(output.target.label for output in declared.kept(outputs, node))
    return ""


def _lake(outputs: Sequence[Output], node: Featured) -> str:
    with suppress(BadStore):
        return ", ".join(f"lake.{history.find(stream, outputs).table}" for stream in node.inputs)
    return ""
