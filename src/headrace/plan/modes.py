"""The three speeds: which a flow can run at, and why not (the runner chooses, never the declaration)."""

from __future__ import annotations

from typing import Literal

from headrace.base.errors import ModeRefused
from headrace.model import changing, declared
from headrace.plan.plan import Flow

Mode = Literal["live", "history", "realtime"]
MODES: tuple[Mode, ...] = ("live", "history", "realtime")


def why_not(flow: Flow, mode: Mode) -> tuple[str, ...]:
    """The reasons against a mode; empty when the flow can run at it."""
    found = [reason for step in flow.steps for reason in _REASONS[mode](step)]
    if mode == "realtime":
        words = "is written at most once, and an interval that is cut off is written again (rule R5)"
        found += [f"{e.target.name} {words}" for e in flow.exits if not e.stored and e.guarantee == "at-most-once"]
        if stores := ", ".join(e.target.label for e in flow.stores):
            words = "whole batches, and rows leave one by one; send them to a topic, and from there by a live flow"
            found.append(f"{stores} {'take' if len(flow.stores) > 1 else 'takes'} {words}")
    return tuple(found)


def check(flow: Flow, mode: Mode) -> None:
    """Raises ModeRefused with all reasons against it."""
    if reasons := why_not(flow, mode):
        raise ModeRefused(
            f"{flow.name} cannot run as {mode}",
            why="; ".join(reasons),
            fix="`headrace explain` shows which modes each flow allows",
        )


def _history(step: object) -> list[str]:
    if getattr(step, "by_clock", False):
        return [f"{_name(step)} follows processing time, and history has none (rule W7)"]
    return []


def _realtime(step: object) -> list[str]:
    node = getattr(step, "node", None)
    if isinstance(node, declared.Aggregated):
        return [f"{_name(step)} closes windows, and the watermark stands still inside a real-time interval (rule R5)"]
    if isinstance(node, declared.Joined):
        return [f"{_name(step)} lets rows go when their time is up, and time stands still inside an interval (rule R5)"]
    if isinstance(node, declared.Enriched) and node.wait:
        return [f'{_name(step)} waits for versions up to the row\'s time; say wait="0 s" (rule J4)']
    if isinstance(node, changing.Versions):
        return [f"{_name(step)} tells net changes when a batch ends, and a real-time interval is one batch (rule J5)"]
    return []


def _name(step: object) -> str:
    return str(getattr(step, "name", step))


_REASONS = {"live": lambda _: [], "history": _history, "realtime": _realtime}
