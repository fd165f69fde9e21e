"""Reading SQL: what is allowed becomes a tree, everything else is refused with a caret under the word."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.base.errors import ExpressionError, ExpressionRefused
from headrace.base.where import Where
from headrace.expr import parse
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, TIME, Column

GOLDEN = Path(__file__).parent / "refused.txt"
COLUMNS = (
    Column("amount", MONEY),
    Column("country", TEXT),
    Column("at", TIME),
    Column("n", INT),
    Column("x", FLOAT),
    Column("ok", BOOL),
)
NAMES = {"buy": COLUMNS, "login": COLUMNS}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("amount>1", "amount > 1"),
        ("n!=1 AND n==2", "n <> 1 and n = 2"),
        ("concat(country, 'a', 'b')", "country || 'a' || 'b'"),
        ("mod(n, 3)", "n % 3"),
        ("hour(at)", "extract(hour from at)"),
        ("n::float", "cast(n as float)"),
        ("cast(n as bigint)", "cast(n as int)"),
        ("if(ok, 1, 2)", "case when ok then 1 else 2 end"),
        ("case n when 1 then 'a' end", "case when n = 1 then 'a' end"),
        ("n <=> 1", "not (n is distinct from 1)"),
        ("n is not distinct from 1", "not (n is distinct from 1)"),
        ("interval '90' second + at", "interval '1 min 30 s' + at"),
        ("buy.country <> login.country", "buy.country <> login.country"),
        ("amount > 1 -- why", "amount > 1"),
        ("((n))", "n"),
        ("substring(country, 2)", "substr(country, 2, 1000000000)"),
        ("- - 5", "-(-5)"),
        ("not n in (1, 2)", "n not in (1, 2)"),
        ("-9223372036854775808 + n", "-9223372036854775808 + n"),
    ],
)
def test_other_spellings_make_the_canonical_tree(text: str, canonical: str) -> None:
    assert str(parse(text, COLUMNS, names=NAMES)) == canonical


def test_refusals_read_as_the_golden_file_says() -> None:
    """One block per refusal: the text, then the error. Rewrite the file from the output after a wished change."""
    blocks = [block.strip("\n") for block in GOLDEN.read_text().split("\n---\n")]
    texts = [block.split("\n", 1)[0].replace("\\n", "\n") for block in blocks]
    assert "\n---\n".join(_refused(text) for text in texts) == "\n---\n".join(blocks)


def _refused(text: str) -> str:
    try:
        allowed = parse(text, COLUMNS, names=NAMES, where=Where("app.py", 7))
    except ExpressionError as error:
        return text.replace("\n", "\\n") + "\n" + str(error)
    return f"{text}\nallowed as {allowed}"


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'exit', 0)",
        "java_method('java.lang.Runtime', 'getRuntime')",
        "(select 1)",
        "exists (select 1)",
        "n in (select n from t)",
        "1 = 1; drop table t",
        "n from t",
        "n union select 1",
        "n over (order by n)",
        "sum(n) over ()",
        "{fn now()}",
        "current_user",
        "input_file_name()",
        "raise_error('x')",
        "n -> n",
        "transform(n, y -> y)",
        "/*+ broadcast(t) */ n",
        "top 5 n",
        "*",
        "buy.*",
        "?",
        ":name",
        "@name",
        "$1",
        "array(1, 2)",
        "struct(1)",
        "[1]",
        "(1, 2)",
        "n[0]",
        "a.b.c.d",
        "unknown_function(n)",
        "`n`",
        "",
        " ",
        "n,",
        "(((",
        "'",
    ],
)
def test_what_is_not_in_the_table_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text, COLUMNS, names=NAMES)


@pytest.mark.parametrize("text", ["(" * 3000 + "n" + ")" * 3000, " or ".join(["ok"] * 3000), "not " * 3000 + "ok"])
def test_a_bottomless_expression_is_refused_not_crashed_on(text: str) -> None:
    with pytest.raises(ExpressionRefused, match="nested too deeply"):
        parse(text, COLUMNS)


def test_a_long_list_of_conditions_is_not_bottomless() -> None:
    assert parse(" or ".join(["ok"] * 90), COLUMNS).type == BOOL
