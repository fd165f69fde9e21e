"""Explaining an app: its plan in words, with partitions where a broker can be asked."""

from __future__ import annotations

from headrace.base.errors import HeadraceError
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.model.app import App
from headrace.ops import endpoints
from headrace.plan import text
from headrace.plan.bounds import bound
from headrace.plan.explain import explain as in_words
from headrace.plan.modes import MODES, why_not
from headrace.plan.plan import build


def explain(app: App, settings: Settings) -> str:
    """The plan as text."""
    return in_words(
        build(app), partitions=_partitions(settings), shuffle_partitions=settings.number("spark.shuffle_partitions")
    )


def described(app: App, settings: Settings) -> list[dict[str, object]]:
    """The same for machines: a row a flow."""
    known = _partitions(settings)
    return [
        {
            "flow": flow.name,
            "fingerprint": text.fingerprint(flow),
            "plan": list(text.lines(flow)),
            "partitions": {name: known.get(name) for name in flow.topics},
            "state": {
                step.name: {"bound": found.words, "bytes": found.bytes_per_key, "per": "key" if found.exact else "row"}
                for step in flow.steps
                if (found := bound(step)) is not None
            },
            "modes": {mode: list(why_not(flow, mode)) or "yes" for mode in MODES},
        }
        for flow in build(app).flows
    ]


def _partitions(settings: Settings) -> dict[str, int]:
    """Nothing where no broker runs: a plan can be read without one."""
    try:
        return topics.widths(endpoints.broker(settings))
    except HeadraceError:
        return {}
