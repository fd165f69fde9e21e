"""The features that an app declares, found by name, and where their rows and those of tables are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from headrace.base.duration import show
from headrace.base.errors import BadStore, UsageError
from headrace.expr.types import Columns
from headrace.model.app import App
from headrace.model.changing import Versions
from headrace.model.declared import Node, Read, ReadTable
from headrace.model.event import EventType
from headrace.model.featured import Featured
from headrace.model.output import Output
from headrace.model.remembered import example
from headrace.model.target import RedisKeys


def all_features(app: App) -> dict[str, Featured]:
    """Those that reach an output, by name."""
    found: dict[str, Featured] = {}
    known: set[int] = set()
    for output in app.outputs:
        for node in _walk(output.of if output.remembers is None else output.remembers, known):
            if isinstance(node, Featured):
                found.setdefault(node.name, node)
    return found


def named(app: App, name: str) -> Featured:
    known = all_features(app)
    if name not in known:
        near = get_close_matches(name, known, 1)
        raise UsageError(
            f"{app.name} has no features {name!r}",
            why=f"it has {', '.join(known)}" if known else "no output of it comes from app.features(...)",
            fix=f"did you mean {near[0]!r}?" if near else "",
        )
    return known[name]


def event_of(features: Featured) -> EventType | None:
    """What the source's rows were when they came; None: they were made by a step that makes other rows."""
    node = features.of
    while node.inputs:
        node = node.inputs[0]
    return node.event if isinstance(node, Read) else None


def told(features: Featured) -> Columns:
    """What can be told anew: all but which rows of the log a vector was told of."""
    return features.features[:-1] if features.seen else features.features


def kept(outputs: Iterable[Output], features: Featured) -> tuple[Output, ...]:
    """The outputs that keep the rows of these features online, for each of their streams one."""
    own = [output for output in outputs if output.remembers is not None and output.remembers.name == features.name]
    if not own:
        raise BadStore(f"{features.name} is not kept online", why="no output sends what it remembers to Redis",
                       fix=example(features), where=features.where)  # fmt: skip
    first = own[0].remembers
    assert first is not None
    if _needs(first) != _needs(features):
        raise BadStore(f"{own[0].target.label} keeps other rows than {features.name} needs",
                       why=f"it was declared with {_needs(first)}, and is asked for with {_needs(features)}",
                       fix="declare the features alike in both apps", where=features.where)  # fmt: skip
    return tuple(own[: len(features.inputs)])


def kept_rows(outputs: Iterable[Output], table: ReadTable) -> Output:
    """The output that keeps the rows of a table online, as they are."""
    for output in outputs:
        match output:
            case Output(of=Versions(of=read), target=RedisKeys()) if read.event.topic == table.event.topic:
                return output
    places = ":".join(f"{{{name}}}" for name in table.event.key)
    raise BadStore(f"{table.name} is not kept online", why="no output sends its rows to Redis",
                   fix=f'.to(hr.redis("{table.name.lower()}:{places}"))', where=table.where)  # fmt: skip


def check_alike(label: str, kept: ReadTable, asked: ReadTable) -> None:
    """Refuses to read rows that are kept of a table for one that would have others."""
    if _rows(kept) != _rows(asked):
        raise BadStore(f"{label} keeps other rows than {asked.name} has",
                       why=f"it was declared with {_rows(kept)}, and is asked for with {_rows(asked)}",
                       fix="declare the table alike in both apps", where=asked.where)  # fmt: skip


def _rows(table: ReadTable) -> str:
    """Which rows, by what, for how long."""
    ttl = "" if table.ttl is None else f", ttl {show(table.ttl)}"
    return f"{', '.join(map(str, table.columns))} by {', '.join(table.event.key)}{ttl}"


def _needs(features: Featured) -> str:
    """What of each row, for how long."""
    streams = range(len(features.inputs))
    asked = "; ".join(", ".join(map(str, features.shown(number))) for number in streams)
    return f"{asked} over {show(features.reach)}, ttl {show(features.ttl)}"


def _walk(node: Node, known: set[int]) -> Iterator[Node]:
    """A node after those before it, each once."""
    if id(node) not in known:
        known.add(id(node))
        for of in node.inputs:
            yield from _walk(of, known)
        yield node
