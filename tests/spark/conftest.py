"""Checkpoints of this room's tests; Spark itself is the one of the whole run (tests/conftest.py)."""

from pathlib import Path

import pytest


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
