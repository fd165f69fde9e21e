"""An output as declared: which rows leave for which topic or store, in what form, and what a crash does to them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from headrace.base.duration import show
from headrace.base.errors import BadStep, BadStore
from headrace.base.where import Where
from headrace.model.naming import key_columns, refs
from headrace.model.target import FeatureRows, LakeTable, ParquetFiles, PostgresTable, RedisKeys, Target
from headrace.model.topic import Topic

if TYPE_CHECKING:
    from headrace.model.declared import Node
    from headrace.model.featured import Featured
    from headrace.model.stream import Stream
    from headrace.model.view import View

Guarantee = Literal["exactly-once", "at-least-once", "at-most-once"]
Sink = Topic | Target
"""Where rows may go."""

_KINDS: dict[type, str] = {
    Topic: "topic",
    PostgresTable: "PostgreSQL table",
    RedisKeys: "Redis keys",
    FeatureRows: "features in Redis",
    LakeTable: "lake table",
    ParquetFiles: "Parquet files",
}


def kind(sink: Sink) -> str:
    """What people call such a thing."""
    return _KINDS[type(sink)]


def difference(first: Sink, second: Sink) -> str:
    """What two declarations of one thing say differently."""
    pairs = [(one.name, getattr(first, one.name), getattr(second, one.name)) for one in fields(first) if one.compare]
    return "; ".join(
        f"{name} was {_said(before)}, and is {_said(now)} here" for name, before, now in pairs if before != now
    )


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "left out"
    if isinstance(value, timedelta):
        return show(value)
    return "left out" if value in (None, False) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A stream's or a view's end: rows go to a topic or a store, under a key. `form`: rows as they are; of a view
    upserts (the row after a change, a tombstone where there is none), or whole changes (rule F2). `guarantee`: what a
    crash does to them. `remembers`: the features that the rows are kept for, if they are."""

    of: Node
    target: Sink
    key: tuple[tuple[str, Any], ...]  # empty: no key; to a topic round robin, to a store appended
    form: str = "rows"  # rows | upserts | changes
    guarantee: Guarantee = "exactly-once"
    remembers: Featured | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        if self.guarantee not in get_args(Guarantee):
            raise BadStep(f"guarantee={self.guarantee!r} is not known", why=f"it is {', '.join(get_args(Guarantee))}",
                          fix="leave it out for exactly-once", where=self.where)  # fmt: skip


def beside(sink: Sink, version: str) -> Sink:
    """The same place of another name, for another version's rows. What a store's name cannot hold becomes _. Keys in
    Redis say it first: all that begins like the live ones belongs to them."""
    if isinstance(sink, PostgresTable | LakeTable | ParquetFiles):
        return replace(sink, name=f"{sink.name}_{re.sub(r'[^a-z0-9]+', '_', version.lower())}")
    if isinstance(sink, RedisKeys):
        return replace(sink, name=f"{version}.{sink.name}")
    return replace(sink, name=f"{sink.name}.{version}")


def output_of_stream(
    stream: Stream, sink: Sink, *, key: str | None, guarantee: Guarantee, place: Where | None
) -> Output:
    """The rows of a stream as they are. A topic has the stream's key unless another is said; a store has its own."""
    _check_sink(sink, 'app.topic("name") is one, so is hr.postgres("name", key="...")', place)
    if isinstance(sink, Target):
        if key is not None:
            raise BadStep(f"{sink.label} has its own key", why="it was declared with the store",
                          fix="leave key out of .to(...)", where=place)  # fmt: skip
        sink.check(stream.columns, place)
        found = refs(sink.key, stream.columns)
    else:
        found = key_columns(key, stream.columns, place) if key else stream.key
    return Output(of=stream.node, target=sink, key=found, guarantee=guarantee, where=place)


def output_of_view(view: View, sink: Sink, *, as_changes: bool, guarantee: Guarantee, place: Where | None) -> Output:
    """The rows of a view as they are now, each under the view's key; or its changes, to a topic that keeps them."""
    _check_sink(sink, 'app.topic("name", compact=True) is one, so is hr.postgres("name")', place)
    if isinstance(sink, Target):
        sink = _table(view, sink, as_changes, place)
    elif as_changes and sink.compact:
        raise BadStep(f"the topic {sink.name!r} keeps only the last change of a key", why="it is compacted",
                      fix=f'app.topic("{sink.name}")', where=place)  # fmt: skip
    elif not as_changes and not sink.compact:
        raise BadStep(
            f"the topic {sink.name!r} is not compacted",
            why="a row replaces the one before it under its key; a topic that keeps both, for a time, is no table",
            fix=f'app.topic("{sink.name}", compact=True), or .to(..., as_changes=True) for all changes',
            where=place,
        )
    form = "changes" if as_changes else "upserts"
    return Output(of=view.node, target=sink, key=view.key, form=form, guarantee=guarantee, where=place)


def _check_sink(sink: Any, fix: str, place: Where | None) -> None:
    if not isinstance(sink, Topic | Target):
        raise BadStep(f"{sink!r} is no sink", fix=fix, where=place)


def _table(view: View, target: Target, as_changes: bool, place: Where | None) -> Target:
    """The store as a copy of the view: it has the view's key, whether that was said or not."""
    names = tuple(name for name, _ in view.key)
    if as_changes:
        raise BadStep(f"{target.label} holds rows, not changes", fix=".changes().to(...) sends them as rows",
                      where=place)  # fmt: skip
    if isinstance(target, ParquetFiles):
        raise BadStore(f"{target.label} cannot hold a table", why="rows of a table change and go, and files only grow",
                       fix=f'hr.lake("{target.name}"), or .changes().to(...) for all changes', where=place)  # fmt: skip
    if target.key and set(target.key) != set(names):
        raise BadStore(f"{target.label} has the key {', '.join(target.key)}, the table has {', '.join(names)}",
                       why="a row that changes or goes is found again by the table's key",
                       fix=_fix(target, names), where=place)  # fmt: skip
    found = target if target.key else replace(target, key=names)
    found.check(view.columns, place)
    return found


def _fix(target: Target, names: tuple[str, ...]) -> str:
    if isinstance(target, RedisKeys):
        return f"""name these: hr.redis("...:{":".join(f"{{{name}}}" for name in names)}")"""
    return "leave key out"
