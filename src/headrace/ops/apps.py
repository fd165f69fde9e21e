"""Finding an app by name (rule F4): `[apps]` in headrace.toml, else NAME/app.py or module:variable, one App in it."""

from __future__ import annotations

import importlib.util
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from headrace.base.errors import AppNotFound
from headrace.base.settings import Settings
from headrace.model.app import App


def find(name: str, settings: Settings) -> App:
    """Imports the user's module and returns its app."""
    target = settings.apps.get(name, name)
    module, _, variable = target.partition(":")
    loaded = _load(module, settings)
    apps = {key: value for key, value in vars(loaded).items() if isinstance(value, App)}
    if variable:
        if variable not in apps:
            raise AppNotFound(f"{module} has no app called {variable!r}", why=f"its apps are {_list(apps)}")
        return apps[variable]
    if len({id(app) for app in apps.values()}) != 1:
        raise AppNotFound(
            f"{module} holds {len(apps) or 'no'} apps",
            why=f"which one to run is not clear: {_list(apps)}" if apps else "no variable of it is an hr.App",
            fix=f"name it: headrace run {module}:VARIABLE" if apps else 'write: app = hr.App("name")',
        )
    return next(iter(apps.values()))


def declared(settings: Settings) -> list[App]:
    """All that headrace.toml names."""
    return [find(name, settings) for name in settings.apps]


def chosen(name: str | None, settings: Settings) -> App | None:
    """The app a command is about: the named one, else the only one in headrace.toml; None where there is none."""
    if name is None and len(settings.apps) > 1:
        raise AppNotFound(
            "which app is not clear",
            why=f"headrace.toml names {', '.join(sorted(settings.apps))}",
            fix="say --app NAME",
        )
    wanted = name or next(iter(settings.apps), None)
    return None if wanted is None else find(wanted, settings)


def knowing(topic: str, name: str | None, settings: Settings) -> App | None:
    """The app that types the records of a topic: the named one, else of those in headrace.toml the first that reads it,
    or writes it."""
    if name is not None:
        return find(name, settings)
    apps = [find(one, settings) for one in settings.apps]
    reading = [app for app in apps if any(event.topic == topic for event in app.events)]
    writing = [app for app in apps if any(found.name == topic for found in app.topics)]
    return next(iter(reading + writing), None)


def _load(module: str, settings: Settings) -> ModuleType:
    for folder in (Path.cwd(), settings.root):
        for file in (folder / module / "app.py", folder / f"{module}.py", folder / module):
            if file.is_file() and file.suffix == ".py":
                return _load_file(file, settings)
    _importable(settings.root)  # a console script has its own directory on the path, not the user's
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is not None and not found.submodule_search_locations:
        return importlib.import_module(module)
    near = get_close_matches(module, [*settings.apps, *(p.parent.name for p in Path.cwd().glob("*/app.py"))], 1)
    raise AppNotFound(
        f"there is no app {module!r}",
        why=f"neither [apps] in headrace.toml names it, nor is there {module}/app.py, nor a module of that name",
        fix=f"did you mean {near[0]!r}?" if near else "run it from the directory that holds the app",
    )


def _load_file(file: Path, settings: Settings) -> ModuleType:
    """Loads NAME/app.py as the module NAME.app, so that its own imports and pickled functions find it."""
    root = file.parent.parent if file.name == "app.py" else file.parent
    name = f"{file.parent.name}.app" if file.name == "app.py" else file.stem
    first = name.partition(".")[0]
    if first in sys.stdlib_module_names:
        raise AppNotFound(
            f"{file} is named like a module of Python's own",
            why=f"`import {first}` finds Python's, here and in Spark's workers",
            fix=f"rename the {'file' if name == first else 'directory'}",
        )
    _importable(root)
    return importlib.import_module(name)


def _importable(root: Path) -> None:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _list(apps: dict[str, App]) -> str:
    return ", ".join(sorted(apps)) or "none"
