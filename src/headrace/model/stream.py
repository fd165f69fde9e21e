"""Streams: handles whose verbs chain; each verb checks itself against the columns and makes a new stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_type_hints

from headrace.base.duration import duration, show
from headrace.base.errors import BadStep, BadWindow
from headrace.base.where import here
from headrace.model import declared
from headrace.model.aggregate import Aggregate, bind
from headrace.model.declared import Node, Output
from headrace.model.declaring import declaring
from headrace.model.event import event_type
from headrace.model.topic import Topic
from headrace.model.window import AtClose, Emit, Forever, Sliding, Window

if TYPE_CHECKING:
    from headrace.model.app import App

RESERVED = frozenset({"window_start", "window_end", "kind", "revision"})
SHOWN = 8
"""Columns in the one line that a stream prints as."""

Named = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Stream:
    """Rows on their way. Verbs return new streams; nothing runs until an app is run."""

    app: App
    node: Node
    key: Named = ()

    def __repr__(self) -> str:
        """One line: what the rows are, not how they came about; `headrace explain` shows that."""
        key = ", ".join(name for name, _ in self.key)
        names = [column.name for column in self.columns]
        shown = ", ".join(names if len(names) <= SHOWN else [*names[:SHOWN], "..."])
        return f"<stream of {shown}{f' by {key}' if key else ''}>"

    @property
    def columns(self) -> tuple[Any, ...]:
        return self.node.columns

    @declaring('.named("spend")')
    def named(self, name: str) -> Stream:
        """Names the step, for plans, metrics and stable ids; results keep their ids when steps around it change."""
        if isinstance(self.node, declared.Read | declared.Side):
            raise BadStep(f"{name!r} names a source", fix="name a stream with app.stream(..., name=)", where=here())
        return Stream(self.app, replace(self.node, name=name), self.key)

    @declaring('.where("amount > 100")')
    def where(self, condition: Any) -> Stream:
        """Keeps the rows for which the condition is true."""
        place = here()
        found = _condition(condition, self.columns, place)
        return Stream(self.app, declared.Filter(of=self.node, condition=found, where=place), self.key)

    @declaring('.select("card_id, amount * 2 as double")')
    def select(self, columns: str) -> Stream:
        """New columns: `payments.select("card_id, amount * 2 as double")`."""
        from headrace.expr import select_list

        place = here()
        values = select_list(columns, self.columns, where=place)
        kept = self.key if all(_keeps(values, name) for name, _ in self.key) else ()
        return Stream(self.app, declared.Project(of=self.node, values=values, where=place), kept)

    @declaring(".map(function, to=SomeEvent)")
    def map(
        self,
        function: Callable[[Any], Any],
        to: type | None = None,
        *,
        retries: int = 0,
        on_error: str = "dead",
    ) -> Stream:
        """A Python function from each row to one row of type `to` (or the function's return annotation)."""
        return self._mapped(function, to, many=False, retries=retries, on_error=on_error)

    @declaring(".flat_map(function, to=SomeEvent)")
    def flat_map(
        self,
        function: Callable[[Any], Any],
        to: type | None = None,
        *,
        retries: int = 0,
        on_error: str = "dead",
    ) -> Stream:
        """The same, to any number of rows."""
        return self._mapped(function, to, many=True, retries=retries, on_error=on_error)

    @declaring('.dedup("payment_id", within="1 h")', why="within says how long an id is remembered")
    def dedup(self, id: str, *, within: str | timedelta) -> Stream:
        """Keeps the first row to arrive for each id; the others come out at `.duplicates`."""
        place = here()
        ids, kept = _columns_named(id, self, place), duration(within)
        if kept <= timedelta(0):
            raise BadStep(f"a dedup within {show(kept)} remembers nothing", fix='say within="1 h"', where=place)
        return Stream(self.app, declared.Dedup(of=self.node, id=ids, within=kept, where=place), self.key)

    @declaring('.key_by("card_id"), or .key_by("country, city") for several')
    def key_by(self, columns: str) -> Stream:
        """Rows with equal keys meet: windows are per key. An event's own key is the key until then."""
        return Stream(self.app, self.node, _columns_named(columns, self, here()))

    @declaring('.window(hr.tumbling("5 min"), lateness="10 min")')
    def window(
        self, window: Window, *, lateness: str | timedelta | None = None, emit: Emit | None = None
    ) -> WindowedStream:
        """Cuts the stream per key; `lateness` says how long a closed window can still be corrected."""
        place = here()
        if not self.key:
            raise BadStep("a window over a stream without key", why="windows are kept per key",
                          fix='say .key_by("...") first', where=place)  # fmt: skip
        if not isinstance(window, Window):
            raise BadWindow(f"{window!r} is no window", fix='say hr.tumbling("5 min"), hr.session(gap="30 min"), ...',
                            where=place)  # fmt: skip
        if emit is not None and not isinstance(emit, Emit):
            raise BadWindow(f"{emit!r} is no emit policy", fix="say hr.at_close(early=...) or hr.on_change()",
                            where=place)  # fmt: skip
        processing = getattr(window, "time", "event") == "processing"
        if lateness is None and not processing and not isinstance(window, Forever):
            raise BadWindow(
                "a window without lateness",
                why="rows can come after their window closed; how long they may still correct it is your decision",
                fix='say lateness="10 min", or lateness="0 s" to set late rows aside at once',
                where=place,
            )
        if lateness is not None and processing:
            raise BadWindow("a processing-time window has no lateness", why="no row is late by the engine's clock (W7)",
                            fix="leave lateness out", where=place)  # fmt: skip
        allowed = duration(lateness) if lateness is not None else timedelta(0)
        if allowed < timedelta(0):
            raise BadWindow(f"lateness of {show(allowed)} is negative", why="a window cannot go before it closes",
                            where=place)  # fmt: skip
        if isinstance(window, Forever) and lateness is not None:
            raise BadWindow("forever() has no lateness", why="it never closes", fix="leave lateness out", where=place)
        if isinstance(window, Forever) and emit is None:
            raise BadWindow("forever() never closes", why="without an emit policy nothing would ever come out",
                            fix="say emit=hr.on_change()", where=place)  # fmt: skip
        if isinstance(window, Forever) and isinstance(emit, AtClose):
            raise BadWindow("forever() never closes", why="at_close waits for the end", fix="say emit=hr.on_change()",
                            where=place)  # fmt: skip
        if isinstance(window, Sliding) and emit is not None:
            raise BadWindow("a sliding window emits once per event", why="rule W2", fix="leave emit out", where=place)
        if clash := sorted(RESERVED & {name for name, _ in self.key}):
            raise BadWindow(f"the key {clash[0]!r} has a name that results use", why="rule F2 reserves it",
                            fix=f'.key_by("{clash[0]} as ...")', where=place)  # fmt: skip
        return WindowedStream(self, window, allowed, emit or AtClose())

    @property
    def late(self) -> Stream:
        """Rows that came after every window they belong to was gone, with the watermark they met."""
        return self._side("late", declared.Aggregated, "a window")

    @property
    def duplicates(self) -> Stream:
        """Rows whose id was seen before."""
        return self._side("duplicates", declared.Dedup, "a dedup")

    @declaring('.to(app.topic("alerts"))')
    def to(self, sink: Topic, *, key: str | None = None) -> Stream:
        """Sends the rows to a topic, under the stream's key unless another is said."""
        place = here()
        if not isinstance(sink, Topic):
            raise BadStep(f"{sink!r} is no sink", fix='app.topic("name") is one', where=place)
        found = _columns_named(key, self, place) if key else self.key
        self.app.add(Output(of=self.node, topic=sink, key=found, where=place))
        return self

    def _side(self, port: str, kind: type, owner: str) -> Stream:
        if not isinstance(self.node, kind):
            raise BadStep(f"this stream has no .{port}", why=f"only the result of {owner} has it", where=here())
        side = declared.Side(of=self.node, port=port, where=here())  # type: ignore[arg-type]
        if len({c.name for c in side.columns}) < len(side.columns):
            raise BadStep("the column 'watermark' is taken", why="late rows say there which watermark they met",
                          fix='rename it first: .select("..., watermark as ...")', where=here())  # fmt: skip
        return Stream(self.app, side, self.key if port == "duplicates" else _source_key(self))

    def _mapped(
        self, function: Callable[[Any], Any], to: type | None, *, many: bool, retries: int, on_error: str
    ) -> Stream:
        place = here()
        result = to or get_type_hints(function).get("return")
        if result is None or not hasattr(result, "__headrace__"):
            raise BadStep(
                f"what {getattr(function, '__name__', function)} returns is not known",
                why="rows are typed, so that the next step can be checked",
                fix="say to=SomeEvent, a class under @hr.event",
                where=place,
            )
        if on_error not in ("dead", "stop"):
            raise BadStep(f"on_error={on_error!r} is not known", why='it is "dead" or "stop"', where=place)
        node = declared.MapRows(
            of=self.node,
            function=function,
            result=event_type(result),
            many=many,
            retries=retries,
            on_error=on_error,
            where=place,
        )
        return Stream(self.app, node)


@dataclass(frozen=True, slots=True, repr=False)
class WindowedStream:
    """A keyed stream cut into windows, waiting to be told what to say about each."""

    of: Stream
    window: Window
    lateness: timedelta
    emit: Emit

    def __repr__(self) -> str:
        return f"<{self.of!r} in windows: {self.window}, lateness {show(self.lateness)}>"

    @declaring('.agg(spent=hr.sum("amount"), times=hr.count())', why="each value is a column, and needs a name")
    def agg(self, *, having: Any = None, **values: Aggregate) -> Stream:
        """One result per key and window: `agg(spent=hr.sum("amount"), times=hr.count())`."""
        place = here()
        taken = RESERVED | {name for name, _ in self.of.key}
        for name, value in values.items():
            if not name.isidentifier():
                raise BadStep(f"{name!r} cannot name a column", fix="use letters, digits and _", where=place)
            if name in taken:
                raise BadStep(f"{name!r} is taken", why="results have it as a key or window column", where=place)
            if not isinstance(value, Aggregate):
                raise BadStep(f"{name} is no aggregate", fix=f'write {name}=hr.sum("...") or hr.count()', where=place)
        if not values:
            raise BadStep("agg() of nothing", fix="say what to compute: agg(times=hr.count())", where=place)
        node = declared.Aggregated(
            of=self.of.node,
            keys=self.of.key,
            window=self.window,
            lateness=self.lateness,
            emit=self.emit,
            values=tuple(bind(name, value, self.of.columns, place) for name, value in values.items()),
            where=place,
        )
        if having is not None:
            node = replace(node, having=_condition(having, node.columns, place))
        return Stream(self.of.app, node, _refs(tuple(name for name, _ in self.of.key), node.columns))


def _condition(condition: Any, columns: Any, place: Any) -> Any:
    from headrace.expr import expression
    from headrace.expr.types import BOOL

    found = expression(condition, columns, where=place)
    if found.type != BOOL:
        raise BadStep(f"{found} is {found.type}, not a condition", fix=f"compare it: {found} = ...", where=place)
    return found


def _columns_named(text: str, stream: Stream, place: Any) -> Named:
    from headrace.expr import select_list

    values = select_list(text, stream.columns, where=place)
    for name, value in values:
        if value.nullable:
            raise BadStep(
                f"{name} may be null, so it cannot be a key",
                why="a null key joins nothing and belongs to no window",
                fix=f'filter first: .where("{name} is not null"), or coalesce({name}, ...) as {name}',
                where=place,
            )
    return values


def _refs(names: tuple[str, ...], columns: Any) -> Named:
    from headrace.expr.nodes import Ref

    by_name = {column.name: column for column in columns}
    return tuple((n, Ref(name=n, type=by_name[n].type, nullable=by_name[n].nullable)) for n in names)


def _keeps(values: Named, name: str) -> bool:
    from headrace.expr.nodes import Ref

    return any(out == name and isinstance(value, Ref) and value.name == name for out, value in values)


def _source_key(stream: Stream) -> Named:
    node = stream.node
    assert isinstance(node, declared.Aggregated)
    return node.keys
