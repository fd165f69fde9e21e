"""A page of the documents as a program: its Python blocks run in order, its text blocks are what they print.

A block ```` ```python ```` runs in the page's one namespace. What it prints stands in the ```` ```text ```` block right
after it; a block that prints nothing has none. `python -m tests.docs.page docs/time.md` writes the outputs anew.
"""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)|(?:src|srcset)=\"(?P<source>[^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Block:
    """Python code, the line it starts at, and the output that the page shows for it."""

    code: str
    line: int
    output: str


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    return [
        Block(found["code"], text.count("\n", 0, found.start("code")) + 1, found["output"] or "")
        for found in _BLOCK.finditer(text)
    ]


def links(text: str) -> list[tuple[str, str]]:
    """What a page points at in this repository: a file ("" for itself) and a heading in it, or ""."""
    found = [(link["target"] or link["source"] or "", link["anchor"] or "") for link in _LINK.finditer(_prose(text))]
    return [(target, anchor) for target, anchor in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """The names that a page's headings can be pointed at by, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def run(text: str, file: Path) -> str:
    """The page with the outputs that its code gives now; errors point at the page's own lines."""
    namespace: dict[str, object] = {"__name__": f"docs.{file.stem}"}
    written, at = [], 0
    for found in _BLOCK.finditer(text):
        code, line = found["code"], text.count("\n", 0, found.start("code"))
        with redirect_stdout(StringIO()) as printed:
            exec(compile("\n" * line + code, str(file), "exec"), namespace)
        output = f"\n```text\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        written += [text[at : found.start()], f"```python\n{code}```\n", output]
        at = found.end()
    return "".join([*written, text[at:]])


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(run(page.read_text("utf-8"), page.resolve()), "utf-8")
