"""The bank's own policy: the rules in rules.toml and the model in models/, published when the bank first starts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import headrace as hr

RULES = Path(__file__).parent / "rules.toml"
MODEL = Path(__file__).parent / "models" / "fraud.txt"


def thresholds(file: Path = RULES) -> Mapping[str, float] | None:
    """From which score on the model asks for what, if the file says so."""
    return tomllib.loads(file.read_text("utf-8")).get("thresholds")


def policy() -> hr.Policy:
    """As it is shipped."""
    return hr.Policy.read(RULES, MODEL)
