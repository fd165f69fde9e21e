"""The event classes behind an app's declarations: what encodes a typed line at the shell, or decodes a table."""

from __future__ import annotations

from msgspec import Struct

from headrace.base.errors import BadEvent
from headrace.model.app import App
from headrace.model.event import EventType


def event_class(described: EventType) -> type:
    """The class a description was taken from. Declarations keep the description only, so that plans stay values;
    Python itself knows the living classes."""
    for cls in Struct.__subclasses__():
        if getattr(cls, "__headrace__", None) is described:
            return cls
    raise BadEvent(f"the class of {described.name} is gone", why="nothing refers to it any more", fix="keep it")


def class_of_topic(app: App | None, topic: str) -> type | None:
    """The event an app reads from a topic; None if it knows none."""
    found = [event for event in (app.events if app else ()) if event.topic == topic]
    return event_class(found[0]) if found else None
