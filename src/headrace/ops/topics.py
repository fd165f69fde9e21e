"""Topics for the shell: all of them as they are, and advice on how many partitions one should have."""

from __future__ import annotations

import re
from collections.abc import Callable

from headrace.base.errors import HeadraceError, UsageError
from headrace.base.settings import Settings
from headrace.log import advice, topics
from headrace.log.advice import Advice
from headrace.log.broker import Broker
from headrace.log.topics import TopicInfo
from headrace.model.topic import Topic
from headrace.ops import apps, endpoints
from headrace.stack.jars import silent

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)b?(?:/s)?", re.IGNORECASE)
_IN_MB = {"": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3}


def listing(broker: Broker) -> list[TopicInfo]:
    return topics.listing(broker)


def make(settings: Settings, *, tell: Callable[[str], None] = silent) -> list[str]:
    """Makes the topics that the apps of headrace.toml declare and the broker lacks; returns their names.

    An app that cannot be loaded is told of and passed over: a typo in one must not keep the log from the others.
    """
    declared: dict[str, Topic] = {}
    for name in settings.apps:
        try:
            declared |= {topic.name: topic for topic in apps.find(name, settings).topics}
        except HeadraceError as broken:
            tell(f"the topics of {name} are not made: {broken}")
    return topics.ensure(endpoints.broker(settings), *declared.values()) if declared else []


def throughput(text: str) -> float:
    """Megabytes a second, as people write it: "40MB", "800 kB/s", "1.5GB".

    >>> throughput("800 kB/s")
    0.8
    """
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no throughput", why="it is bytes a second", fix="for example 40MB or 800kB")
    return float(found.group(1)) * _IN_MB[found.group(2).lower()]


def advise(rate: str, consumers: int) -> Advice:
    return advice.partitions(throughput_mb=throughput(rate), consumers=consumers)
