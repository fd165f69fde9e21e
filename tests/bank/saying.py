"""What a call of the command `bank` in this process left: its exit code, stdout and stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

import bank.__main__ as command


class Said:
    """What a call of the command left."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        with pytest.MonkeyPatch.context() as typed:
            typed.setattr(sys, "argv", ["bank", *words])
            with pytest.raises(SystemExit) as ended:
                command.main()
        self.code = ended.value.code
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        return json.loads(self.out)
