"""Streams: handles whose verbs chain; each verb checks itself against the columns and makes a new stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_type_hints

from headrace.base.duration import duration, show
from headrace.base.errors import BadStep, BadWindow
from headrace.base.where import here
from headrace.expr.types import Party
from headrace.model import declared, joining
from headrace.model.branches import Branches
from headrace.model.decided import decided, policy_topic
from headrace.model.declared import Node
from headrace.model.declaring import declaring
from headrace.model.event import event_type
from headrace.model.naming import Named, condition_of, few, kept, key_columns
from headrace.model.output import Guarantee, Sink, output_of_stream
from headrace.model.static import Static
from headrace.model.table import Table
from headrace.model.verbs import NOT_OF_STREAMS, Verbs
from headrace.model.window import RESERVED, AtClose, Emit, Forever, Sliding, Window

if TYPE_CHECKING:
    from headrace.model.app import App
    from headrace.model.windowed import WindowedStream

HOWS = ("inner", "left", "right", "full", "semi", "anti")


@dataclass(frozen=True, slots=True, repr=False)
class Stream(Verbs):
    """Rows on their way. Verbs return new streams; nothing runs until an app is run."""

    KIND = "a stream"
    ELSEWHERE = NOT_OF_STREAMS

    app: App
    node: Node
    key: Named = ()
    label: str = ""  # what conditions call its rows, if `alias` said so

    @property
    def called(self) -> str:
        """The name of its rows in conditions: of the alias, the step or the stream it comes from (rule J6)."""
        node = self.node
        while not node.name and node.inputs:
            node = node.inputs[0]
        return self.label or re.sub(r"\W", "_", node.name)

    def __repr__(self) -> str:
        """One line: what the rows are, not how they came about; `headrace explain` shows that."""
        key = ", ".join(name for name, _ in self.key)
        return f"<stream of {few(self.columns)}{f' by {key}' if key else ''}>"

    @property
    def columns(self) -> tuple[Any, ...]:
        """Name, type and nullability of each column."""
        return self.node.columns

    @declaring('.named("spend")')
    def named(self, name: str) -> Stream:
        """Names the step, for plans, metrics and stable ids; results keep their ids when steps around it change."""
        if not name:
            raise BadStep("a step without name", fix='.named("spend"), or leave it out', where=here())
        if isinstance(self.node, declared.Read | declared.Side):
            raise BadStep(f"{name!r} names a source", fix="name a stream with app.stream(..., name=)", where=here())
        for kind, verb in ((declared.Pattern, "pattern"), (declared.Featured, "features")):
            if isinstance(self.node, kind):
                raise BadStep(f"the step has its name, {self.node.name!r}", fix=f"name it in app.{verb}(...)",
                              where=here())  # fmt: skip
        return replace(self, node=replace(self.node, name=name))

    @declaring('.alias("second")')
    def alias(self, name: str) -> Stream:
        """Another name for its rows in conditions, as a stream that is joined with itself needs."""
        if not name.isidentifier():
            raise BadStep(f"{name!r} cannot name rows", fix="use letters, digits and _", where=here())
        return replace(self, label=name)

    @declaring('.where("amount > 100")')
    def where(self, condition: Any, *, retries: int = 0, on_error: str = "dead") -> Stream:
        """Keeps the rows for which the condition is true: SQL text, an `hr.col` expression, or a Python function of the
        row. `retries` and `on_error` ("dead" or "stop") are for a function that fails."""
        place = here()
        if callable(condition):
            _check_on_error(on_error, place)
            told = declared.FilterRows(
                of=self.node, function=condition, retries=retries, on_error=on_error, where=place
            )  # fmt: skip
            return replace(self, node=told)
        found = condition_of(condition, self.columns, place)
        return replace(self, node=declared.Filter(of=self.node, condition=found, where=place))

    @declaring('.split(large="amount > 1000", small="amount > 0")')
    def split(self, **branches: Any) -> Branches:
        """Named branches: each row goes to the first whose condition is true, the others to `.rest`."""
        place = here()
        if not branches or "rest" in branches:
            raise BadStep("split() needs named conditions, and .rest is what none of them wants",
                          fix='.split(large="amount > 1000")', where=place)  # fmt: skip
        found: dict[str, Stream] = {}
        rest = self
        for name, condition in branches.items():
            found[name] = rest.where(condition)
            rest = rest.where(f"not coalesce({condition_of(condition, self.columns, place)}, false)")
        return Branches({**found, "rest": rest})

    @declaring('.select("card_id, amount * 2 as double")')
    def select(self, columns: str) -> Stream:
        """New columns: `payments.select("card_id, amount * 2 as double")`."""
        from headrace.expr import select_list

        place = here()
        values = select_list(columns, self.columns, where=place)
        return replace(
            self, node=declared.Project(of=self.node, values=values, where=place), key=kept(self.key, values)
        )

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
        """The first row to arrive for each id. Others, and rows too late to be told from them, are `.duplicates`."""
        place = here()
        ids, kept = key_columns(id, self.columns, place), duration(within)
        if kept <= timedelta(0):
            raise BadStep(f"a dedup within {show(kept)} remembers nothing", fix='say within="1 h"', where=place)
        return replace(self, node=declared.Dedup(of=self.node, id=ids, within=kept, where=place))

    @declaring('.changes("country", keep="30 d")', why="keep says how long a key's last row is remembered")
    def changes(self, columns: str, *, keep: str | timedelta) -> Stream:
        """Only rows in which one of these columns differs from the row of the key that came before. The first row of a
        key passes; a key is forgotten `keep` of event time after its last row."""
        from headrace.expr import column_list

        place = here()
        if not self.key:
            raise BadStep("changes of a stream without key", why="each row is compared with the last one of its key",
                          fix='say .key_by("...") first', where=place)  # fmt: skip
        names, kept = column_list(columns, self.columns, where=place), duration(keep)
        if kept <= timedelta(0):
            raise BadStep(f"changes kept {show(kept)} remember nothing", fix='say keep="30 d"', where=place)
        node = declared.Changed(of=self.node, keys=self.key, values=names, keep=kept, where=place)
        return replace(self, node=node)

    @declaring('.sample(0.1, by="card_id")')
    def sample(self, share: float, *, by: str) -> Stream:
        """About this share of the values of `by`, with all their rows, and the same ones in every run. A smaller sample
        is part of a larger one."""
        place = here()
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise BadStep(f"a sample of {share!r}", why="it is a share of all, more than 0 and at most 1",
                          fix="0.1 is one in ten", where=place)  # fmt: skip
        values = " || '/' || ".join(f"cast({value} as text)" for _, value in key_columns(by, self.columns, place))
        return self.where(f"crc32({values}) < {round(share * 2**32)}")

    @declaring('.key_by("card_id"), or .key_by("country, city") for several')
    def key_by(self, columns: str) -> Stream:
        """Rows with equal keys meet: windows are per key. An event's own key is the key until then."""
        return replace(self, key=key_columns(columns, self.columns, here()))

    @declaring('.join(clicks, on="ad_id", within=("0 s", "10 min"))')
    def join(
        self,
        other: Stream,
        *,
        on: str,
        within: tuple[str | timedelta, str | timedelta] | str | timedelta | None = None,
        how: str = "inner",
        take: str | None = None,
        prefix: str | None = None,
    ) -> Stream:
        """Rows of two streams with equal keys whose times are close: `within=("0 s", "10 min")` is how much later the
        other's row may be; one duration means either way. What comes out: all columns, `take="a.x, b.y as z"`, or with
        `prefix` before those of the other."""
        place = here()
        joining.check_stream(self, other, place)
        if how not in HOWS:
            raise BadStep(f"how={how!r} is not known", why=f"it is one of {', '.join(HOWS)}",
                          fix='how="full" keeps the rows of both sides, how="left" those of the first',
                          where=place)  # fmt: skip
        if within is None:
            raise BadStep("a join without a time bound", why="every row would be kept for ever, waiting for a partner",
                          fix='say within=("0 s", "10 min"): how much later the other may be', where=place)  # fmt: skip
        lower, upper = joining.bounds(within, place)
        if lower > upper:
            raise BadStep(f"within from {show(lower)} to {show(upper)} leaves no time", fix="say the lesser first",
                          where=place)  # fmt: skip
        parties = Party(self.called, self.columns), Party(other.called, other.columns)
        pairs = joining.keys(on, *parties, place)
        missing = how in ("right", "full"), how in ("left", "full")
        one_sided = how if how in ("semi", "anti") else ""
        values = joining.columns(
            *parties, pairs, missing=missing, one_sided=one_sided, take=take, prefix=prefix, place=place
        )
        node = declared.Joined(
            left=self.node,
            right=other.node,
            names=(self.called, other.called),
            on=pairs,
            lower=lower,
            upper=upper,
            how=how,
            values=values,
            where=place,
        )
        names = {ref.name for _, value in self.key for ref in value.refs()}
        whole = take is None and (not missing[0] or names <= joining.shared(pairs))
        return Stream(self.app, node, self.key if whole else kept(self.key, values))

    @declaring('.enrich(customers, on="customer_id")')
    def enrich(
        self,
        table: Table | Static,
        *,
        on: str,
        as_of: str | None = None,
        wait: str | timedelta | None = None,
        take: str | None = None,
        prefix: str | None = None,
    ) -> Stream:
        """Each row with what a table says for its key: what it says now, or with `as_of` the version valid at the
        event's time. A row waits until such versions are known; `wait="0 s"` takes what is there."""
        place = here()
        joining.check_table(self, table, as_of, place)
        joining.check_wait(wait, as_of, place)
        then = as_of is not None
        waits = then and wait is None
        node = joining.enriched(self, table, on=on, as_of=then, wait=waits, take=take, prefix=prefix, place=place)
        return Stream(self.app, node, self.key if take is None else kept(self.key, node.values), self.label)

    @declaring('.decide("fraud", default="review")')
    def decide(self, policy: str, *, default: str = "review") -> Stream:
        """Each row with what the policy of that name says of it: allow, review or decline, with reasons. Policies are
        published, and replaced while this runs: docs/policies.md. `default` is said until there is one."""
        self.app.know(policy_topic(policy))
        return replace(self, node=decided(self.node, policy, default, here()))

    @declaring(".union(refunds)")
    def union(self, *others: Stream) -> Stream:
        """This stream's rows and those of others of the same columns."""
        place = here()
        for other in others:
            joining.check_stream(self, other, place, whole=True)
            mine, theirs = ([(c.name, c.type) for c in one.columns] for one in (self, other))
            if mine != theirs:
                raise BadStep(f"{self.called} and {other.called} have different columns",
                              why=f"({_listed(self)}) and ({_listed(other)})",
                              fix="select the same columns first", where=place)  # fmt: skip
        if not others:
            raise BadStep("a union of one", fix=".union(other)", where=place)
        same = all(other.key == self.key for other in others)
        node = declared.Union(of=(self.node, *(other.node for other in others)), where=place)
        return Stream(self.app, node, self.key if same else ())

    @declaring('.window(hr.tumbling("5 min"), lateness="10 min")')
    def window(
        self, window: Window, *, lateness: str | timedelta | None = None, emit: Emit | None = None
    ) -> WindowedStream:
        """Cuts the stream per key; `lateness` says how long a closed window can still be corrected."""
        from headrace.model.windowed import WindowedStream

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
        """Rows that came after every window they belong to was gone, or too late for a join or for features, with the
        watermark they met."""
        kinds = (declared.Aggregated, declared.Joined, declared.Enriched, declared.Featured)
        return self._side("late", kinds, "a window, a join or features")

    @property
    def duplicates(self) -> Stream:
        """Rows whose id was seen before."""
        return self._side("duplicates", (declared.Dedup, declared.Featured), "a dedup, or of features with once=,")

    @property
    def unmatched(self) -> Stream:
        """Rows of a join that found no partner, when their time is up; `side` says whose they are."""
        return self._side("unmatched", (declared.Joined,), "a join")

    @declaring('.to(app.topic("alerts"))')
    def to(self, sink: Sink, *, key: str | None = None, guarantee: Guarantee = "exactly-once") -> Stream:
        """Sends the rows to a topic, under the stream's key unless another is said, or to a store, by its own key.
        Guarantees: docs/guarantees.md. Stores: docs/stores.md."""
        self.app.add(output_of_stream(self, sink, key=key, guarantee=guarantee, place=here()))
        return self

    def _side(self, port: str, kinds: tuple[type, ...], owner: str) -> Stream:
        place, node = here(), self.node
        if not isinstance(node, kinds) or port not in dict(declared.ports(node)):
            raise BadStep(f"this stream has no .{port}", why=f"only the result of {owner} has it", where=place)
        side = declared.Side(of=node, port=port, where=place)  # type: ignore[arg-type]
        names = [column.name for column in side.columns]
        if taken := [name for name in ("side", "watermark") if names.count(name) > 1]:
            raise BadStep(f"the column {taken[0]!r} is taken", why=f".{port} says there what the rows met",
                          fix=f'rename it first: .select("..., {taken[0]} as ...")', where=place)  # fmt: skip
        if isinstance(node, declared.Aggregated | declared.Featured):
            return replace(self, node=side, key=node.keys)
        return replace(self, node=side, key=self.key if port == "duplicates" else ())

    def _mapped(
        self, function: Callable[[Any], Any], to: type | None, *, many: bool, retries: int, on_error: str
    ) -> Stream:
        place = here()
        if not callable(function):
            raise BadStep(f"{function!r} is no function", fix=".map(function, to=SomeEvent)", where=place)
        result = to or get_type_hints(function).get("return")
        if result is None or not hasattr(result, "__headrace__"):
            raise BadStep(
                f"what {getattr(function, '__name__', function)} returns is not known",
                why="rows are typed, so that the next step can be checked",
                fix="say to=SomeEvent, a class under @hr.event",
                where=place,
            )
        _check_on_error(on_error, place)
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


def _check_on_error(on_error: str, place: Any) -> None:
    if on_error not in ("dead", "stop"):
        raise BadStep(f"on_error={on_error!r} is not known", why='it is "dead" or "stop"', where=place)


def _listed(stream: Stream) -> str:
    return ", ".join(map(str, stream.columns))
