"""Serving an app: its service found, its topics made, its key made or read, its fallback connected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.base.errors import AppNotFound, BadSetting
from headrace.base.settings import Settings
from headrace.model.app import App
from headrace.model.service import Service
from headrace.ops.connect import connect
from headrace.serve.server import Server
from headrace.stack import secret

KEY_FILE = "api-key"
_SHORTEST_KEY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that has its port, and where its key is kept."""

    server: Server
    service: Service
    key_place: str
    key: str


@contextmanager
def serving(
    app: App, settings: Settings, *, service: str | None = None, host: str | None = None, port: int | None = None
) -> Iterator[Serving]:
    """A server to `run`, at host and port or where settings say; what it uses is closed when the block ends."""
    chosen = service_of(app, service)
    key, place = api_key(settings)
    with connect(app, settings) as client:
        server = Server(
            chosen,
            client.broker,
            key=key,
            host=settings.text("serve.host") if host is None else host,
            port=settings.number("serve.port") if port is None else port,
            speak=None if chosen.fallback is None else chosen.fallback(client),
        )
        yield Serving(server=server, service=chosen, key_place=place, key=key)


def service_of(app: App, name: str | None = None) -> Service:
    """The named service of an app, or its only one."""
    found = {service.name: service for service in app.services}
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name is None or name not in found:
        raise AppNotFound(
            f"{app.name} has no service {name!r}" if name else f"which service of {app.name} is not clear",
            why=f"it declares {', '.join(sorted(found)) or 'none'}",
            fix="name one of them" if found else "declare one: app.service(...)",
            where=app.where,
        )
    return found[name]


def api_key(settings: Settings) -> tuple[str, str]:
    """The key, and where a person finds it: that of the settings, else one of our own, made at the first call."""
    given = settings.text("serve.api_key")
    if given:
        if len(given) < _SHORTEST_KEY or not given.isascii() or not given.isprintable():
            raise BadSetting("serve.api_key is no good key", why=f"it needs {_SHORTEST_KEY} plain characters or more")
        return given, settings.values["serve.api_key"].origin
    home = settings.home / "serve"
    home.mkdir(parents=True, exist_ok=True)
    return secret.password(home, KEY_FILE), str(home / KEY_FILE)
