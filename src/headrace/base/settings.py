"""Settings with their origin: defaults < headrace.toml < HEADRACE__SECTION__KEY < flags; secrets by reference."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from headrace.base.errors import BadSetting

FILE = "headrace.toml"
MASK = "********"
_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")

Scalar = str | int | bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set: its name, default, meaning, and whether it must never be shown."""

    name: str
    default: Scalar
    meaning: str
    secret: bool = False


KNOWN: tuple[Setting, ...] = (
    Setting("home", ".headrace", "directory of the embedded stack's data, state and logs"),
    Setting(
        "cache", "", "directory of jars, compiled kernels and what Java learned; empty: the user's cache directory"
    ),
    Setting("kafka.bootstrap", "", "host:port of your own Kafka; empty: the embedded one"),
    Setting("kafka.security", "PLAINTEXT", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    Setting("kafka.sasl_mechanism", "", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    Setting("kafka.username", "", "SASL user"),
    Setting("kafka.password", "", "SASL password", secret=True),
    Setting("kafka.ca_file", "", "PEM file of the certificate authority"),
    Setting("kafka.cert_file", "", "PEM file of the client certificate"),
    Setting("kafka.key_file", "", "PEM file of the client key"),
    Setting("kafka.key_password", "", "password of the client key", secret=True),
    Setting("kafka.brokers", 1, "brokers of the embedded Kafka: 1, or 3 for a replicated cluster"),
    Setting("kafka.patience", "2.5 s", "how long a lone embedded broker may be too busy to say that it lives"),
    Setting("kafka.partitions", 4, "partitions of topics that Headrace makes"),
    Setting("postgres.url", "", "postgresql://... of your own PostgreSQL; empty: the embedded one", secret=True),
    Setting("redis.url", "", "redis://... of your own Redis; empty: the embedded one", secret=True),
    Setting("lake.path", "", "directory of the lake's tables; empty: lake/ in the home directory"),
    Setting("files.path", "", "directory of plain Parquet outputs; empty: files/ in the home directory"),
    Setting("serve.host", "127.0.0.1", "address that `headrace serve` listens at; 0.0.0.0: every one"),
    Setting("serve.port", 8600, "port that it listens at; 0: any that is free"),
    Setting("serve.api_key", "", "key that callers send; empty: made once, in serve/api-key of home", secret=True),
    Setting("spark.master", "local[*]", "where Spark runs: local[*], spark://..., yarn, k8s://..."),
    Setting("spark.driver_memory", "2g", "heap of the Spark driver"),
    Setting("spark.shuffle_partitions", 2, "partitions of keyed state at the first start; then `checkpoint rescale`"),
    Setting("live.interval", "0 s", "how often a batch begins; 0 s: as soon as the one before it is done"),
    Setting("realtime.interval", "5 min", "how often a real-time flow makes its state safe: rows of one are redone"),
    Setting("state.growth_percent", 100, "state that grew by more than so much is worth a word, ..."),
    Setting("state.growth_over", "1 h", "... if it did so within this time, ..."),
    Setting("state.growth_entries", 100_000, "... and has at least so many keys and rows now"),
)
_BY_NAME = {s.name: s for s in KNOWN}


@dataclass(frozen=True, slots=True)
class Value:
    """A resolved setting and where it came from."""

    setting: Setting
    raw: Scalar = field(repr=False)  # may be a secret
    origin: str

    @property
    def shown(self) -> str:
        """For people: secrets masked, references left as written, since they name a place and hold no secret."""
        text = str(self.raw)
        secret = self.setting.secret and text and not _REFERENCE.fullmatch(text)
        return MASK if secret else text


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one run."""

    values: Mapping[str, Value]
    apps: Mapping[str, str] = field(default_factory=dict)
    root: Path = field(default_factory=Path.cwd)

    def text(self, name: str) -> str:
        """The value as text, references resolved."""
        value = self.values[name]
        return _resolve(str(value.raw), value, self.root)

    def number(self, name: str) -> int:
        try:
            return int(self.text(name))
        except ValueError:
            value = self.values[name]
            raise BadSetting(f"{name} = {value.shown!r} is not a number", why=f"it came from {value.origin}") from None

    def path(self, name: str) -> Path:
        """A path setting; relative ones are relative to the directory of headrace.toml."""
        return (self.root / Path(self.text(name)).expanduser()).resolve()

    @property
    def home(self) -> Path:
        return self.path("home")

    @property
    def lake(self) -> Path:
        return self.path("lake.path") if self.text("lake.path") else self.home / "lake"

    @property
    def files(self) -> Path:
        return self.path("files.path") if self.text("files.path") else self.home / "files"

    @property
    def cache(self) -> Path:
        if self.text("cache"):
            return self.path("cache")
        base = os.environ.get("XDG_CACHE_HOME", "")
        return (Path(base) if base else Path.home() / ".cache") / "headrace"


def load(
    flags: Mapping[str, Scalar | None] | None = None,
    *,
    root: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Settings:
    """Reads headrace.toml from `root` or the nearest directory above it, then the environment, then flags."""
    environment = os.environ if env is None else env
    file = _find(root or Path.cwd())
    values = {s.name: Value(s, s.default, "default") for s in KNOWN}
    apps: dict[str, str] = {}
    if file is not None:
        for name, raw in _flatten(_read(file)):
            if name.startswith("apps."):
                apps[name.removeprefix("apps.")] = str(raw)
            else:
                values[name] = Value(_known(name, str(file)), raw, str(file))
    for variable, text in environment.items():
        if variable.startswith("HEADRACE__"):
            name = variable.removeprefix("HEADRACE__").lower().replace("__", ".")
            values[name] = Value(_known(name, variable), text, variable)
    for name, given in (flags or {}).items():
        if given is not None:
            values[name] = Value(_known(name, "flag"), given, "flag")
    return Settings(values, apps, file.parent if file else (root or Path.cwd()))


def _find(start: Path) -> Path | None:
    for directory in (start, *start.resolve().parents):
        if (directory / FILE).is_file():
            return (directory / FILE).resolve()
    return None


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as broken:
        raise BadSetting(f"{file} cannot be read", why=str(broken), fix="correct the TOML at that line") from None


def _flatten(tree: Mapping[str, object], prefix: str = "") -> list[tuple[str, Scalar]]:
    found: list[tuple[str, Scalar]] = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found += _flatten(value, f"{name}.")
        elif isinstance(value, str | int | bool):
            found.append((name, value))
        else:
            raise BadSetting(f"{name} has a value of no use", why=f"{value!r} is neither text, number nor true/false")
    return found


def _known(name: str, origin: str) -> Setting:
    if name in _BY_NAME:
        return _BY_NAME[name]
    near = get_close_matches(name, _BY_NAME, 1)
    raise BadSetting(
        f"there is no setting {name!r}",
        why=f"{origin} names it",
        fix=f"did you mean {near[0]!r}?" if near else "`headrace config` lists them all",
    )


def _resolve(text: str, value: Value, root: Path) -> str:
    """Follows ${env:X} and ${file:path}; a relative path is relative to the directory of headrace.toml."""

    def found(match: re.Match[str]) -> str:
        kind, target = match.groups()
        why = f"{value.setting.name} refers to it (from {value.origin})"
        if kind == "env":
            if target not in os.environ:
                raise BadSetting(f"environment variable {target} is not set", why=why, fix=f"export {target}=...")
            return os.environ[target]
        try:
            return (root / Path(target).expanduser()).read_text().strip()
        except OSError as broken:
            raise BadSetting(f"file {target} cannot be read", why=f"{why}: {broken.strerror}") from None

    return _REFERENCE.sub(found, text)
