"""The rules of the house: who may import whom, and what costs nothing until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "headrace"

# room -> rooms it may import, as in ARCHITECTURE.md
MAY: dict[str, set[str]] = {
    "base": set(),
    "expr": {"base"},
    "model": {"base", "expr"},
    "steps": {"base", "expr", "model"},
    "plan": {"base", "expr", "model", "steps"},
    "reference": {"base", "expr", "model", "steps", "plan"},
    "log": {"base", "model"},
    "stores": {"base", "expr", "model"},
    "stack": {"base"},
    "serve": {"base", "expr", "model", "log"},
    "observe": {"base", "model", "plan"},
    "spark": {"base", "expr", "model", "steps", "plan", "log", "stores", "stack", "observe"},
    "features": {"base", "expr", "model", "steps", "stores"},
    "ops": {
        *("base", "expr", "model", "steps", "plan", "reference", "features"),
        *("log", "stores", "stack", "serve", "observe", "spark"),
    },
    "chaos": {"base", "model", "log", "stores", "stack", "spark"},
    "cli": {"base", "observe", "ops", "chaos"},
    "testing": {"base", "expr", "model", "steps", "plan", "reference", "features"},
}

# library -> rooms that may touch it
ONLY: dict[str, set[str]] = {
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "confluent_kafka": {"log"},
    "sqlglot": {"expr"},
    "typer": {"cli"},
    "rich": {"cli"},
    "psycopg": {"stores", "stack", "chaos"},
    "redis": {"stores", "stack", "chaos"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
    "deltalake": {"stores"},
    "duckdb": {"stores"},
}


def modules() -> list[Path]:
    return sorted(p for p in SRC.rglob("*.py") if p.parent != SRC)


def room(file: Path) -> str:
    return file.relative_to(SRC).parts[0]


def imports(file: Path) -> set[str]:
    """Every module a file imports at run time, lazily or not; `if TYPE_CHECKING:` blocks are for the type checker."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("file", modules(), ids=lambda f: str(f.relative_to(SRC)))
def test_rooms_import_only_what_the_table_allows(file: Path) -> None:
    for name in imports(file):
        if name.startswith("headrace."):
            other = name.split(".")[1]
            assert other == room(file) or other in MAY[room(file)], f"{room(file)} may not import {name}"
        top = name.split(".")[0]
        assert room(file) in ONLY.get(top, {room(file)}), f"only {ONLY[top]} may import {top}"


@pytest.mark.parametrize("file", modules(), ids=lambda f: str(f.relative_to(SRC)))
def test_only_the_command_line_prints(file: Path) -> None:
    calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
    printed = [n.lineno for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]
    assert room(file) == "cli" or not printed


@pytest.mark.parametrize("file", sorted(SRC.rglob("*.py")), ids=lambda f: str(f.relative_to(SRC)))
def test_every_file_says_in_its_first_line_what_it_is(file: Path) -> None:
    assert file.read_text().startswith('"""')


def test_importing_headrace_loads_nothing_heavy() -> None:
    code = (
        "import sys, time; t = time.process_time(); import headrace; cost = time.process_time() - t;"
        "names = 'pyspark py4j confluent_kafka sqlglot rich typer psycopg redis pyarrow deltalake duckdb';"
        "names += ' starlette uvicorn';"
        "heavy = set(names.split()) & set(sys.modules);"
        "heavy |= {m for m in sys.modules if m.startswith('headrace.expr.') and m != 'headrace.expr.types'};"
        "print(sorted(heavy), int(cost * 1000))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith("[]"), out
