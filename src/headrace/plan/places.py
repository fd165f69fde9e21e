"""Places: which stages find their rows where they belong, so that no shuffle is needed.

A row lies where the hash of its key says (jvm/Placed.scala), whatever step it goes to. Rows that pass a stage by have
been placed by the key of the step they are bound for; those that a step gives are still where its own key is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.expr.nodes import Ref
from headrace.model import declared
from headrace.model.declared import Node
from headrace.plan.plan import Flow, Input, Step

Names = tuple[str, ...]


def shuffled(flow: Flow) -> tuple[int, ...]:
    """The levels whose rows have to be placed anew."""
    return tuple(_shuffled(flow))


def _shuffled(flow: Flow) -> Iterator[int]:
    last = 0
    for level in range(1, flow.levels + 1):
        kernels = [s for s in flow.steps if s.level == level and s.kernel]
        if kernels and not (last and all(_in_place(flow, step, last) for step in kernels)):
            last = level
            yield level


def _in_place(flow: Flow, step: Step, last: int) -> bool:
    """Whether all rows that the step is handed lie by its key since the last shuffle."""
    return all(_lies(flow, at, _names(key_into(step.node, number)), last) for number, at in enumerate(step.inputs))


def key_into(node: Node, number: int) -> tuple[Any, ...]:
    """The key of a step with state, as rows of its n-th input have it; none: a table's record has its own."""
    match node:
        case declared.Joined():
            return tuple(pair[number] for pair in node.on)
        case declared.Enriched():
            return node.on if number == 0 else ()
        case declared.Pattern():
            key = node.keys[number]
        case declared.Featured():
            key = node.key_of(number)
        case declared.Dedup():
            key = node.id
        case declared.Aggregated() | declared.Changed():
            key = node.keys
        case _:
            key = ()
    return tuple(value for _, value in key)


def _lies(flow: Flow, at: Input, key: Names, last: int) -> bool:
    """Whether the rows of a port lie by these columns. Those from before the last shuffle were placed by it."""
    before = flow.step(at.step)
    if before.level < last:
        return True
    if before.staged:
        return bool(key) and _key_behind(before, at.port) == key
    match before.node:
        case declared.Project() as node:
            made = dict(node.values)
            key = _names([made[name] for name in key])
        case declared.Filter() | declared.Union():
            pass
        case _:
            return False
    return bool(key) and all(_lies(flow, one, key, last) for one in before.inputs)


def _key_behind(step: Step, port: str) -> Names:
    """The columns that a step's rows lie by when they leave it; none: nobody can say."""
    match step.node:
        case declared.Featured() as node:
            return _names([value for _, value in node.keys])
        case declared.Enriched() as node if port == "rows":
            taken = {value.path: name for name, value in node.values if isinstance(value, Ref)}
            return tuple(taken.get(f"{node.names[0]}.{name}", "") for name in _names(node.on))
        case declared.Dedup() as node:
            return _names([value for _, value in node.id])
        case declared.Changed() as node:
            return _names([value for _, value in node.keys])
        case declared.Aggregated() as node if port == "rows":
            return tuple(name for name, _ in node.keys)
        case declared.Pattern() as node if port == "rows":
            return node.key
        case _:
            return ()


def _names(values: Iterable[object]) -> Names:
    """Of columns; none if one is no column as it stands."""
    refs = [value if isinstance(value, Ref) else None for value in values]
    return () if None in refs else tuple(ref.name for ref in refs if ref is not None)
