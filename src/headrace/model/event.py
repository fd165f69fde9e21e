"""Events: immutable facts with typed fields, declared with `@hr.event`, valid however they were made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from difflib import get_close_matches
from typing import Any, TypeVar, dataclass_transform, get_type_hints, overload

from msgspec import Struct, StructMeta, ValidationError
from msgspec.structs import force_setattr

from headrace.base.errors import BadEvent, BadTopic, DataError, MissingField, UnknownField, WrongType
from headrace.base.ids import stable_id
from headrace.base.where import Where, here
from headrace.expr.types import TIME, Column, Columns
from headrace.model.field import KEYS, Field, Settle, Unreadable, read
from headrace.model.topic import check_name

E = TypeVar("E")

RESERVED = frozenset({"window_start", "window_end", "kind", "revision"})
"""Names that results add to key columns and values (rule F2)."""
_ROLES = ("topic", "key", "time", "id")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """What is known of an event class: columns, which of them are key, time and id, and where it was declared."""

    name: str
    doc: str = ""
    topic: str = ""
    key: tuple[str, ...] = ()
    time: str = ""
    id: str = ""
    columns: Columns
    where: Where | None = None
    cls: type = attribute(default=object, compare=False, repr=False)
    """The class itself. Plans are compared by what was declared, and two classes may declare the same."""

    @property
    def schema(self) -> str:
        """A short name for exactly these columns, in header `hr-schema`: it changes when they do."""
        return stable_id(self.name, *map(str, self.columns))[:16]

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.columns))})"


class EventMeta(StructMeta):
    """Checks values where a person makes an event. Decoding passes by here: msgspec has checked types by then."""

    __headrace__: EventType
    __headrace_fields__: tuple[Field, ...]
    __headrace_checks__: tuple[tuple[str, type | None, Settle], ...]

    def __new__(mcls, name: str, bases: tuple[type, ...], body: dict[str, Any], **how: Any) -> EventMeta:
        if any(isinstance(base, EventMeta) for base in bases):
            raise _based(name, here())
        return super().__new__(mcls, name, bases, body, **how)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            made = super().__call__(*args, **kwargs)
        except TypeError:
            raise _misfit(cls, args, kwargs) from None
        for name, plain, settle in cls.__headrace_checks__:
            value = getattr(made, name)
            if type(value) is not plain:
                try:
                    settled = settle(value)
                except DataError as broken:
                    raise located(broken, cls.__headrace__.name, name, here()) from None
                if settled is not value:
                    force_setattr(made, name, settled)
        return made


@overload
def event(cls: type[E], /) -> type[E]: ...
@overload
def event(*, topic: str = "", key: str = "", time: str = "", id: str = "") -> Callable[[type[E]], type[E]]: ...
@dataclass_transform(frozen_default=True)
def event(
    cls: type[E] | None = None, /, *, topic: str = "", key: str = "", time: str = "", id: str = "", **other: Any
) -> Any:
    """Declares an event: where it is written, and which fields are its key ("a, b" for several), its time and its id.

    >>> from datetime import UTC, datetime
    >>> @event(topic="logins", key="user", time="at")
    ... class Login:
    ...     user: str
    ...     at: datetime
    >>> Login("u1", datetime(2026, 11, 3, tzinfo=UTC))
    Login(user='u1', at=datetime.datetime(2026, 11, 3, 0, 0, tzinfo=datetime.timezone.utc))
    """
    where = here()
    for name in other:
        near = get_close_matches(name, _ROLES, 1)
        fix = f"did you mean {near[0]}?" if near else ""
        raise BadEvent(f"@hr.event takes no {name!r}", why=f"it takes {', '.join(_ROLES)}", fix=fix, where=where)
    caller = sys._getframe(1)
    names = caller.f_globals | caller.f_locals  # annotations as text may name what is known only where they stand
    keys = tuple(part.strip() for part in key.split(",")) if key.strip() else ()

    def declare(declared: type) -> EventMeta:
        return _declare(declared, names, topic=topic, key=keys, time=time, id=id, where=where)

    return declare if cls is None else declare(cls)


def event_type(cls: type) -> EventType:
    """What was declared about an event class."""
    found = getattr(cls, "__headrace__", None)
    if not isinstance(found, EventType):
        raise BadEvent(
            f"{getattr(cls, '__name__', cls)!s} is no event",
            why="it was not declared with @hr.event",
            fix='put @hr.event(topic="...", key="...") above the class',
            where=here(),
        )
    return found


def fields(cls: type) -> tuple[Field, ...]:
    """The fields of an event class, in order, with their checks."""
    event_type(cls)
    found: tuple[Field, ...] = cls.__headrace_fields__  # type: ignore[attr-defined]
    return found


def located(broken: DataError, event: str, field: str, where: Where | None = None) -> DataError:
    """The same error, saying which field of which event it is about."""
    return type(broken)(f"{event}.{field}: {broken.what}", why=broken.why, fix=broken.fix, where=where)


def unknown_field(described: EventType, name: str, where: Where | None = None) -> UnknownField:
    known = [column.name for column in described.columns]
    near = get_close_matches(name, known, 1)
    return UnknownField(
        f"{described.name} has no field {name!r}",
        why=f"its fields are {', '.join(known)}",
        fix=f"did you mean {near[0]!r}?" if near else "",
        where=where,
    )


def missing_field(described: EventType, name: str, where: Where | None = None) -> MissingField:
    return MissingField(
        f"{described.name} needs the field {name!r}",
        why=f"{described.column(name)} has no default",
        fix=f"give {name}=...",
        where=where,
    )


def misread(described: EventType, broken: ValidationError, given: Mapping[str, Any] | None = None) -> DataError:
    """What msgspec refused, in our words. `given`: what a person typed, to be shown again."""
    text = str(broken)
    if text.startswith("Object missing required field"):
        return missing_field(described, text.split("`")[1])
    what, _, place = text.partition(" - at `$.")
    field = place.rstrip("`")
    name = f"{described.name}.{field}" if field else described.name
    found = next((column for column in described.columns if column.name == field.split("[")[0]), None)
    if found is None:
        return WrongType(f"{name}: {what[0].lower()}{what[1:]}", why=f"it is declared as {described}")
    value = f"{given[found.name]!r} was given, and " if given else ""
    why, like = f"{value}it is declared as {found}", _LIKE.get(str(found.type), "")
    return WrongType(f"{name}: {what[0].lower()}{what[1:]}", why=why, fix=like and f"write it like {like}")


_LIKE = {"money": "12.50", "int": "42", "float": "0.5", "bool": "true or false", "time": "2026-11-03T15:00:00Z"}
"""Values as JSON lines and `headrace send` take them."""


def _declare(
    cls: type,
    names: dict[str, Any],
    *,
    topic: str,
    key: tuple[str, ...],
    time: str,
    id: str,
    where: Where | None,
) -> EventMeta:
    if cls.__bases__ != (object,):
        raise _based(cls.__name__, where)
    found = _fields(cls, names, where)
    described = EventType(
        name=cls.__name__,
        doc=(cls.__doc__ or "").strip(),
        topic=topic,
        key=key,
        time=time,
        id=id,
        columns=tuple(field.column for field in found),
        where=where,
    )
    _check(described)
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", "__annotate__")}
    body["__annotations__"] = {field.column.name: field.native for field in found}
    for field in found:
        if field.column.name in body:
            body[field.column.name] = _default(described, field, body[field.column.name])
    try:
        made = EventMeta(cls.__name__, (Struct,), body, frozen=True, gc=False)  # no field can make a cycle
    except TypeError as refused:
        raise BadEvent(f"{cls.__name__} cannot be declared", why=str(refused), where=where) from None
    made.__headrace__ = replace(described, cls=made)
    made.__headrace_fields__ = found
    made.__headrace_checks__ = tuple((field.column.name, field.plain, field.settle) for field in found)
    return made


def _based(name: str, where: Where | None) -> BadEvent:
    return BadEvent(
        f"{name} has a base class",
        why="an event's fields are its wire format; they stand in one place",
        fix="repeat the fields",
        where=where,
    )


def _fields(cls: type, names: dict[str, Any], where: Where | None) -> tuple[Field, ...]:
    try:
        hints = get_type_hints(cls, localns=names, include_extras=True)
    except NameError as unknown:
        raise BadEvent(
            f"{cls.__name__} has a field of a type nobody knows",
            why=str(unknown),
            fix="import it at the top of the file",
            where=where,
        ) from None
    found = []
    for name, annotation in hints.items():
        if name in RESERVED or name.startswith("_"):
            raise BadEvent(
                f"{cls.__name__} cannot have a field {name!r}",
                why="results add columns of that name (rule F2)" if name in RESERVED else "names with _ are private",
                fix="rename it",
                where=where,
            )
        try:
            found.append(read(name, annotation))
        except Unreadable as refused:
            shown = getattr(annotation, "__name__", annotation)
            raise BadEvent(f"{cls.__name__}.{name} cannot be of type {shown}", why=str(refused), where=where) from None
    if not found:
        raise BadEvent(
            f"{cls.__name__} has no fields", why="an event says something", fix="add `name: type` lines", where=where
        )
    return tuple(found)


def _check(described: EventType) -> None:
    """Key, time and id are fields that can do the job."""
    name, where = described.name, described.where
    if described.topic:
        try:
            check_name(described.topic)
        except BadTopic as refused:
            raise BadEvent(f"{name}: {refused.what}", why=refused.why, fix=refused.fix, where=where) from None
    for role, fields in (("key", described.key), ("time", (described.time,)), ("id", (described.id,))):
        for field in filter(None, fields):
            known = [column.name for column in described.columns]
            if field not in known:
                near = get_close_matches(field, known, 1)
                raise BadEvent(
                    f"{name} has no field {field!r} to be its {role}",
                    why=f"its fields are {', '.join(known)}",
                    fix=f'{role}="{near[0]}"?' if near else f"add the field, or name another {role}",
                    where=where,
                )
            column = described.column(field)
            if column.nullable:
                raise BadEvent(
                    f"{name}.{field} is its {role} and may be None",
                    why=f"an event without {role} would be a dead letter (rule B1)",
                    fix="take `| None` away",
                    where=where,
                )
            allowed = (TIME,) if role == "time" else KEYS
            if column.type not in allowed:
                raise BadEvent(
                    f"{name}.{field} is {column.type} and cannot be its {role}",
                    why=f"a {role} is {' or '.join(map(str, allowed))}",
                    where=where,
                )
    if len(set(described.key)) != len(described.key):
        raise BadEvent(f"{name} names a key twice", why=f"key is {', '.join(described.key)}", where=where)


def _default(described: EventType, field: Field, value: Any) -> Any:
    try:
        return field.settle(value)
    except DataError as broken:
        raise BadEvent(
            f"the default of {described.name}.{field.column.name} does not fit: {broken.what}",
            why=broken.why,
            fix=broken.fix,
            where=described.where,
        ) from None


def _misfit(cls: EventMeta, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DataError:
    """Why the arguments do not make this event, in words."""
    described, where = cls.__headrace__, here()
    names = [column.name for column in described.columns]
    for name in kwargs:
        if name not in names:
            return unknown_field(described, name, where)
    if len(args) > len(names):
        return UnknownField(
            f"{described.name} has {len(names)} fields, not {len(args)}",
            why=f"they are {', '.join(names)}",
            where=where,
        )
    given = names[: len(args)]
    for name in given:
        if name in kwargs:
            return UnknownField(f"{described.name}.{name} is given twice", why="by place and by name", where=where)
    optional = len(cls.__struct_defaults__)
    required = names[: len(names) - optional]
    return missing_field(described, next(n for n in required if n not in given and n not in kwargs), where)
