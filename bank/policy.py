"""The bank's own policy: the rules in rules.toml and the model in models/, published when the bank first starts."""

from __future__ import annotations

from pathlib import Path

import headrace as hr

RULES = Path(__file__).parent / "rules.toml"
MODEL = Path(__file__).parent / "models" / "fraud.txt"


def policy() -> hr.Policy:
    """As it is shipped."""
    return hr.Policy.read(RULES, MODEL)
