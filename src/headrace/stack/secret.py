"""Passwords of the embedded servers, and the key of ours: generated once, readable by their owner alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def password(part: Path, name: str = "password") -> str:
    """The password of the part in this directory; made at the first call."""
    file = part / name
    if not file.exists():
        write(file, secrets.token_urlsafe(24))
    return file.read_text()


def write(file: Path, text: str) -> None:
    """Writes a file whole or not at all, with mode 600 from its first byte on."""
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    draft.replace(file)
