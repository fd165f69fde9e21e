"""Where the parts are: your own where settings name them, else the embedded stack that runs."""

from __future__ import annotations

from headrace.base.errors import StackDown
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.stack import stack

OWN = {"kafka": "kafka.bootstrap", "postgres": "postgres.url", "redis": "redis.url"}
"""Each part, and the setting that names one of your own."""


def own(settings: Settings, part: str) -> bool:
    """Whether settings name one of your own instead of the embedded part."""
    return part in OWN and bool(settings.text(OWN[part]))


def embedded(settings: Settings) -> tuple[str, ...]:
    """The parts that Headrace starts itself."""
    return tuple(part for part in OWN if not own(settings, part))


def broker(settings: Settings) -> Broker:
    """The log. No connection is made here: a broker that is gone says so at the first question."""
    return Broker.of(settings, embedded="" if own(settings, "kafka") else _embedded(settings, "kafka"))


def postgres(settings: Settings) -> str:
    return settings.text("postgres.url") or _embedded(settings, "postgres")


def redis(settings: Settings) -> str:
    return settings.text("redis.url") or _embedded(settings, "redis")


def _embedded(settings: Settings, part: str) -> str:
    running = stack.addresses(settings.home)
    address: str | None = getattr(running, part) if running is not None else None
    if not address:
        raise StackDown(
            f"no {part} is running",
            why=f"{OWN[part]} names none of your own, and no embedded stack runs in {settings.home}",
            fix=f"start it with `headrace up`, or set {OWN[part]}",
        )
    return address
