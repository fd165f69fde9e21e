"""Groups for the shell: all of them, how far behind each is, and moving one to another place."""

from __future__ import annotations

from headrace.base.clock import SystemClock, read_time
from headrace.base.errors import GroupMissing
from headrace.log import groups, topics
from headrace.log.broker import Broker
from headrace.log.groups import Group, Lag, Seek
from headrace.log.offsets import Goal


def listing(broker: Broker) -> list[Group]:
    return groups.listing(broker)


def lag(broker: Broker, group: str | None = None) -> list[tuple[str, Lag]]:
    """How far one group, or every group, is behind, per partition."""
    chosen = [named(broker, group)] if group else groups.listing(broker)
    return [(one.name, found) for one in chosen for found in groups.lag(broker, one.name)]


def goal_of(text: str) -> Goal:
    """`earliest`, `latest`, an offset, or a time as `read_time` takes it."""
    typed = text.strip()
    if typed == "earliest":
        return "earliest"
    if typed == "latest":
        return "latest"
    return int(typed) if typed.isdigit() else read_time(typed, now=SystemClock().now())


def seek(broker: Broker, group: str, topic: str, to: str, *, dry_run: bool) -> Seek:
    """What moving a group means, or the move itself. The group must exist: a name mistyped would make a new one."""
    goal = goal_of(to)
    topics.width(broker, topic)
    named(broker, group)
    return groups.seek(broker, group, topic, goal, dry_run=dry_run)


def named(broker: Broker, name: str) -> Group:
    from difflib import get_close_matches

    present = {group.name: group for group in groups.listing(broker)}
    if name in present:
        return present[name]
    near = get_close_matches(name, present, 1)
    raise GroupMissing(
        f"there is no group {name!r} on {broker.bootstrap}",
        why=f"near it is {near[0]}" if near else f"{len(present)} groups are there",
        fix=f"did you mean {near[0]!r}?" if near else "`headrace groups` lists them",
    )
