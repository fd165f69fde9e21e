"""What features remember of their rows, as outputs of their own: for each stream the columns kept, and a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.base.duration import show
from headrace.base.errors import BadStore
from headrace.base.where import Where
from headrace.model.featured import Featured
from headrace.model.output import Guarantee, Output
from headrace.model.target import FeatureRows, RedisKeys

if TYPE_CHECKING:
    from headrace.model.naming import Named


def remembered(features: Featured, store: Any, guarantee: Guarantee, place: Where | None) -> tuple[Output, ...]:
    """The rows that these features ask for, to a set for each key; those of another stream to sets of their own, which
    have its name before theirs. They are all rows of the streams: what came late is among them."""
    if not isinstance(store, RedisKeys):
        raise BadStore(f"{store!r} cannot hold features", why="they are looked up by key, in Redis",
                       fix=f"{example(features)}; .vectors.to(...) sends the vectors elsewhere",
                       where=place)  # fmt: skip
    keys = tuple(name for name, _ in features.keys)
    if set(store.key) != set(keys):
        raise BadStore(f"{store.label} has the key {', '.join(store.key)}, the features have {', '.join(keys)}",
                       fix=example(features), where=place)  # fmt: skip
    if store.ttl is not None and store.ttl < features.ttl:
        raise BadStore(f"{store.label} would forget after {show(store.ttl)} what the features know",
                       why=f"their own ttl is {show(features.ttl)}", fix="leave ttl out", where=place)  # fmt: skip
    return tuple(_output(features, number, store, guarantee, place) for number in range(len(features.inputs)))


def example(features: Featured) -> str:
    places = ":".join(f"{{{name}}}" for name, _ in features.keys)
    return f'.to(hr.redis("{features.name.lower()}:{places}"))'


def _output(features: Featured, number: int, store: RedisKeys, guarantee: Guarantee, place: Where | None) -> Output:
    from headrace.model.declared import Project

    values, id = _columns(features, number)
    reach = max((over.reach for over in features.overs if over.input == number), default=features.ttl * 0)
    kept = features.ttl if number == 0 else reach  # a silence of the source ends what it knows of itself alone
    target = FeatureRows(
        name=f"{features.others[number - 1].name}.{store.name}" if number else store.name,
        key=store.key,
        ttl=max(store.ttl or kept, kept) + features.lateness,
        where=store.where,
        values=tuple((name, str(value)) for name, value in values),
        id=id[0][0] if id else "",
        reach=reach,
        lateness=features.lateness,
        rows=max((one.n for one in features.before), default=0) if number == 0 else 0,
    )
    chosen = dict([*features.key_of(number), *id, *values])
    rows = Project(of=features.inputs[number], values=tuple(chosen.items()), where=place)
    target.check(rows.columns, place)
    return Output(of=rows, target=target, key=(), guarantee=guarantee, remembers=features, where=place)


def _columns(features: Featured, number: int) -> tuple[Named, Named]:
    """What is kept of each row, and by what it is known again: columns of the row under their own names, others under
    new ones."""
    from headrace.expr.nodes import Ref

    found: dict[Any, str] = {value: name for name, value in features.key_of(number)}
    for value in features.shown(number):
        name = value.name if isinstance(value, Ref) else f"asked_{len(found)}"
        while value not in found and name in found.values():
            name += "_"
        found.setdefault(value, name)
    values = tuple((found[value], value) for value in features.asked(number))
    once = number == 0 and features.once is not None
    return values, ((found[features.once], features.once),) if once else ()
