"""Features as they are declared: what is to be known of a key at each of its rows; `.vectors` is the stream of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from headrace.base.duration import duration, show
from headrace.base.errors import BadStep
from headrace.base.where import Where, here
from headrace.expr.types import ListType
from headrace.model.aggregate import NULL_WHEN_EMPTY, Aggregate, Bound, bind_all
from headrace.model.declaring import declaring
from headrace.model.featured import Before, Featured, Other, Over, seen_by
from headrace.model.joining import check_stream
from headrace.model.naming import Named, key_columns
from headrace.model.output import Guarantee
from headrace.model.remembered import remembered
from headrace.model.stream import Stream
from headrace.model.target import RedisKeys
from headrace.model.tiles import LEAST, NEED_ROWS, width_of
from headrace.model.verbs import Verbs

if TYPE_CHECKING:
    from headrace.model.app import App

ZERO = timedelta(0)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,79}")


@dataclass(frozen=True, repr=False, kw_only=True)
class Features(Verbs):
    """What is known of a key at each of its rows. `.vectors`, `.late` and `.duplicates` are streams."""

    KIND = "a set of features"
    OF_STREAMS = "its rows are a stream: .vectors.VERB(...), or source=stream.VERB(...)"

    app: App
    name: str
    source: Stream
    by: str  # the key, as it was said
    key: Named
    ttl: timedelta
    lateness: timedelta
    most: int
    once: Any
    place: Where | None
    others: tuple[Other, ...] = ()
    overs: tuple[Over, ...] = ()
    before: tuple[Before, ...] = ()
    tells: bool = False  # which rows it was told of

    def __repr__(self) -> str:
        return f"<features {self.name}: {', '.join(self._names) or 'none yet'}>"

    @declaring('.over("1 h", "1 d", spent=hr.sum("amount"), times=hr.count())', why="each value is a column a window")
    def over(
        self,
        *sizes: str | timedelta,
        of: Stream | None = None,
        delay: str | timedelta = "0 s",
        tiles: bool = False,
        **values: Aggregate,
    ) -> Self:
        """Aggregates over the rows of (t - size, t], for each size: `spent_1h`, `spent_1d`. The row itself is among
        them. `of`: over rows of another stream that have the same key. `delay`: over (t - delay - size, t - delay], for
        what is known only that much later. `tiles`: for keys with very many rows, kept by pieces of time instead of by
        row; such a window forgets a twelfth of itself or less at a time (rule FE12)."""
        place, late = here(), duration(delay)
        if not sizes or not values:
            raise BadStep("over() of nothing", why="it says how far back, and what",
                          fix='.over("1 h", "1 d", spent=hr.sum("amount"))', where=place)  # fmt: skip
        if late < ZERO:
            raise BadStep(f"a delay of {show(late)} looks ahead", fix='delay="7 d"', where=place)
        others, input = (self.others, 0) if of is None else self._with_other(of, place)
        columns = self.source.columns if of is None else of.columns
        found = []
        for size in map(duration, sizes):
            if size <= ZERO:
                raise BadStep(f"a window of {show(size)} holds nothing", fix='.over("1 h", ...)', where=place)
            suffix = show(size).replace(" ", "")
            bound = bind_all({f"{name}_{suffix}": one for name, one in values.items()}, columns, (), place)
            full = _maybe_empty(bound) if late or input else bound
            tile = self._tile(size, late, full, input, place) if tiles else ZERO
            found.append(Over(size=size, delay=late, values=full, input=input, tile=tile))
        return self._with(place, others=others, overs=(*self.overs, *found))

    @declaring('.last("at", "country")')
    def last(self, *columns: str, n: int = 1) -> Self:
        """Columns of the row before this one, null if there is none: `last_at`, `last_country`. `n`: of so many rows
        before it, as lists, the latest first."""
        place = here()
        known = {column.name: column for column in self.source.columns}
        missing = [name for name in columns if name not in known]
        if missing or not columns:
            raise BadStep(f"last() of {missing[0]!r}" if missing else "last() of nothing",
                          why=f"the rows have {', '.join(known)}", fix='.last("at", "country")',
                          where=place)  # fmt: skip
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n < self.most:
            raise BadStep(f"last() of {n!r} rows", why=f"it is a count, from 1 to less than {self.most:,}",
                          fix='.last("at", n=3)', where=place)  # fmt: skip
        for column in map(known.__getitem__, columns):
            if n > 1 and (column.nullable or isinstance(column.type, ListType)):
                raise BadStep(f"last() cannot list {n} values of {column}", why="a list holds neither nulls nor lists",
                              fix=f'.last("{column.name}"), or coalesce it in a select before',
                              where=place)  # fmt: skip
        return self._with(place, before=(*self.before, *(Before(column=known[name], n=n) for name in columns)))

    @declaring(".seen()")
    def seen(self) -> Self:
        """One more column, `seen_<name>`: which rows of the log a vector was told of. Equal ones were told the same."""
        return self._with(here(), tells=True)

    @property
    def vectors(self) -> Stream:
        """Every row of the source, dated as it was, with the features after its columns."""
        return Stream(self.app, self.node, self.key)

    @property
    def late(self) -> Stream:
        """Rows that came more than `lateness` behind the watermark: what their windows need may be gone."""
        return self.vectors.late

    @property
    def duplicates(self) -> Stream:
        """Rows whose id, said by `once`, the key has been told of."""
        return self.vectors.duplicates

    @declaring('.to(hr.redis("card:{card_id}"))')
    def to(self, store: RedisKeys, *, guarantee: Guarantee = "exactly-once") -> Self:
        """Keeps in Redis what the features remember, so that they can be asked for at any time (docs/feature-store.md):
        `c.features(card).get(card_id="c1")`. The vectors themselves go anywhere: `.vectors.to(...)`."""
        for output in remembered(self.node, store, guarantee, here()):
            self.app.add(output)
        return self

    @property
    def node(self) -> Featured:
        """What was declared, as plans have it."""
        if not self._names:
            raise BadStep(f"{self.name} has no features yet", fix='.over("1 h", spent=hr.sum("amount"))', where=here())
        return self._node

    @cached_property
    def _node(self) -> Featured:
        """One node, however often it is asked for: vectors, late and duplicates are ends of one step."""
        return Featured(
            of=self.source.node,
            keys=self.key,
            others=self.others,
            overs=self.overs,
            before=self.before,
            once=self.once,
            seen=self.tells,
            ttl=self.ttl,
            lateness=self.lateness,
            most=self.most,
            name=self.name,
            where=self.place,
        )

    @property
    def _names(self) -> list[str]:
        windows = [value.name for over in self.overs for value in over.values]
        return windows + [one.told.name for one in self.before] + ([seen_by(self.name).name] if self.tells else [])

    def _with_other(self, of: Stream, place: Where | None) -> tuple[tuple[Other, ...], int]:
        """The other streams with this one, and the number of its input."""
        check_stream(self.source, of, place)
        if of.node is self.source.node:
            raise BadStep(f"{of.called} is the source itself", why="windows are over its rows unless another is said",
                          fix="leave of= out", where=place)  # fmt: skip
        for number, other in enumerate(self.others, 1):
            if other.of is of.node:
                return self.others, number
        keys = key_columns(self.by, of.columns, place)
        for (name, mine), (_, theirs) in zip(self.key, keys, strict=True):
            if mine.type != theirs.type:
                raise BadStep(f"{name} is {theirs.type} in {of.called} and {mine.type} in {self.source.called}",
                              why="rows of both meet by the key",
                              fix=f"cast it in a select before: cast({name} as ...)", where=place)  # fmt: skip
        return (*self.others, Other(of=of.node, keys=keys, name=of.called)), len(self.others) + 1

    def _tile(
        self, size: timedelta, delay: timedelta, values: tuple[Bound, ...], input: int, place: Where | None
    ) -> timedelta:
        """How wide the tiles of a window are, if it can be kept in some."""
        width, what = width_of(size), f"a window of {show(size)} cannot be kept in tiles"
        if width is None:
            raise BadStep(what, why=f"tiles are 5 min, 1 h or 1 d wide, and it is no {LEAST} or more of one width",
                          fix='leave tiles out, or say "1 h", "1 d", "30 d"', where=place)  # fmt: skip
        if delay:
            raise BadStep(f"a window that ends {show(delay)} ago cannot be kept in tiles",
                          why="where it ends it would cut a tile, of which no rows are kept",
                          fix="leave tiles out, or delay", where=place)  # fmt: skip
        if rows := [value for value in values if value.kind in NEED_ROWS]:
            raise BadStep(f"{rows[0].kind} cannot be kept in tiles",
                          why="it asks for many single rows, which tiles do not keep",
                          fix="leave tiles out: an over(...) of its own is exact", where=place)  # fmt: skip
        if input == 0 and size > self.ttl:
            raise BadStep(f"{what} with a ttl of {show(self.ttl)}",
                          why="a silence of ttl ends what is known, and may lie within a tile",
                          fix=f'ttl="{show(size)}", or leave tiles out', where=place)  # fmt: skip
        return width

    def _with(self, place: Where | None, **more: Any) -> Self:
        grown = replace(self, **more)
        names = [column.name for column in self.source.columns] + grown._names
        if twice := [name for name in grown._names if names.count(name) > 1]:
            raise BadStep(f"{twice[0]!r} is taken", why="vectors have the columns of their row, and each feature once",
                          fix="give the value another name", where=place)  # fmt: skip
        return grown


def features(
    app: App,
    name: str,
    *,
    key: str,
    source: Stream,
    ttl: str | timedelta,
    lateness: str | timedelta,
    most: int,
    once: str | None,
) -> Features:
    """What `app.features(...)` gives."""
    place, kept, late = here(), duration(ttl), duration(lateness)
    if not _NAME.fullmatch(name):
        raise BadStep(f"{name!r} is no name for features", why="it names the step in plans",
                      fix="letters, digits, - and _, beginning with a letter", where=place)  # fmt: skip
    if not isinstance(source, Stream):
        raise BadStep(f"{source!r} is no stream", fix="source=app.stream(SomeEvent, ...)", where=place)
    if source.app is not app:
        raise BadStep(f"{source.called} belongs to {source.app!r}, these features to {app!r}",
                      why="what runs together is declared in one app", where=place)  # fmt: skip
    if kept <= ZERO:
        raise BadStep(f"a ttl of {show(kept)} keeps nothing", fix='ttl="30 d"', where=place)
    if late < ZERO:
        raise BadStep(f"lateness of {show(late)} is negative", fix='lateness="1 h"', where=place)
    if isinstance(most, bool) or not isinstance(most, int) or most < 2:
        raise BadStep(f"most={most!r} rows", why="a key remembers at least the row and the one before",
                      fix="most=100_000", where=place)  # fmt: skip
    return Features(
        app=app,
        name=name,
        source=source,
        by=key,
        key=key_columns(key, source.columns, place),
        ttl=kept,
        lateness=late,
        most=most,
        once=None if once is None else _id(once, source, place),
        place=place,
    )


def _maybe_empty(values: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Over a window that the row itself is not in, and so perhaps none."""
    return tuple(replace(one, nullable=one.nullable or one.kind in NULL_WHEN_EMPTY) for one in values)


def _id(once: str, source: Stream, place: Where | None) -> Any:
    """The one value that a row is known by."""
    found = key_columns(once, source.columns, place)
    if len(found) != 1:
        raise BadStep(f"once={once!r} is {len(found)} values", why="a row is known by one",
                      fix="put them together: once=\"a || '/' || b as id\"", where=place)  # fmt: skip
    return found[0][1]
