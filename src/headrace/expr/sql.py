"""SQL text to untyped trees: sqlglot reads it, and only what the table of functions allows is let through."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar, NoReturn

from headrace.base.duration import duration
from headrace.base.errors import BadDuration, ExpressionRefused
from headrace.expr.check import Source
from headrace.expr.decimals import MAX_PRECISION
from headrace.expr.functions import EXTRACT_UNITS, FUNCTIONS, UNSTABLE, UNSTABLE_FIX, UNSTABLE_WHY
from headrace.expr.python import FARTHEST
from headrace.expr.syntax import Apply, CastTo, Choose, Name, Span, Star, Term, Value, negate
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, TIME, Type, decimal

DEEPEST = 100  # levels of a tree: what the recursion of the checker, and of Spark's optimizer, takes without pain
_SHALLOWER = "use `in` for a list of values, or compute parts of it in a select before"

_PREFIX = "select "  # a list of expressions is what stands between select and from

_BINARY = {
    "And": "and", "Or": "or", "EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=",
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "DPipe": "||", "Like": "like",
    "NullSafeNEQ": "distinct",
}  # fmt: skip
_OPERATORS_ONLY = frozenset({*_BINARY.values(), "not", "negate", "is_null", "in", "between", "extract"})
_TYPES: dict[str, Type] = {
    "BOOLEAN": BOOL, "INT": INT, "BIGINT": INT, "DOUBLE": FLOAT, "FLOAT": FLOAT, "TEXT": TEXT, "VARCHAR": TEXT,
    "TIME": TIME, "TIMESTAMP": TIME, "TIMESTAMPTZ": TIME,
}  # fmt: skip
_OTHER_NAMES = {"ceiling": "ceil", "pow": "power", "substring": "substr", "mod": "%"}

OVER_ROWS = frozenset({"count", "sum", "avg", "min", "max", "first", "last", "list"})
_AGGREGATES = {
    **{
        name: f'hr.{name}("...")'
        for name in ("sum", "count", "avg", "stddev", "min", "max", "first", "last", "distinct")
    },
    "mean": 'hr.avg("...")',
    "quantile": 'hr.quantile("...", 0.9)',
    "median": 'hr.quantile("...", 0.5)',
}


def terms(source: Source, *, over_rows: bool = False) -> list[tuple[str | None, Term]]:
    """The expressions of a comma-separated list, each with the name that `as` gives it; `*` may be one of them.
    `over_rows`: they may speak of several rows at once, `avg(miss.amount)`; whoever asks for it rewrites these."""
    return _Reader(source, OVER_ROWS if over_rows else frozenset()).read()


def term(source: Source, *, over_rows: bool = False) -> Term:
    """Exactly one expression, without a name."""
    found = terms(source, over_rows=over_rows)
    if len(found) > 1:
        raise source.error(ExpressionRefused, "one expression is wanted here, not a list", found[1][1].at)
    name, only = found[0]
    if isinstance(only, Star):
        raise source.error(ExpressionRefused, "* is not an expression", why="it means every column of a select list")
    if name is not None:
        at = source.text.rfind(name)
        raise source.error(
            ExpressionRefused,
            f"the word {name!r} has no place after the expression",
            Span(at, at + len(name)),
            why="an expression that is not in a select list has no name",
        )
    return only


@cache
def _dialect() -> Any:
    """sqlglot without its knowledge of functions: each call arrives under the name the user typed."""
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.parser import Parser

    class HeadraceParser(Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: read for name, read in Parser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST", "EXTRACT")
        }

    class Headrace(Dialect):
        parser_class: type[Any] = HeadraceParser

    return Headrace()


class _Reader:
    """Walks what sqlglot read; every node kind that has no method here is refused."""

    def __init__(self, source: Source, over_rows: frozenset[str]) -> None:
        self.source = source
        self.over_rows = over_rows
        self.tokens: list[Any] = []

    def read(self) -> list[tuple[str | None, Term]]:
        from sqlglot.errors import ParseError, TokenError

        try:
            self.tokens = _dialect().tokenize(_PREFIX + self.source.text)
            statements = _dialect().parse(_PREFIX + self.source.text)
            return self._list(statements)
        except ParseError as error:
            self._not_sql(error.errors[0])
        except TokenError:
            self._refuse("this is not SQL", None, why="a quote or a comment has no end")
        except RecursionError:
            self._refuse("this is nested too deeply", None, fix=_SHALLOWER)

    def _list(self, statements: list[Any]) -> list[tuple[str | None, Term]]:
        select: Any = statements[0] if len(statements) == 1 else None
        if type(select).__name__ != "Select" or {name for name, value in select.args.items() if value} > {
            "expressions"
        }:
            word = next((t for t in self.tokens[1:] if t.text.lower() in _CLAUSES), None)
            span = None if word is None else self._token_span(word)
            self._refuse("only expressions are allowed here", span, why="tables, clauses and statements are not")
        if self.tokens[-1].text == ",":
            self._refuse("nothing follows the comma", self._token_span(self.tokens[-1]))
        if not select.expressions:
            self._refuse("there is no expression here", None, fix="write one, like amount > 100")
        return [self._item(item) for item in select.expressions]

    def _item(self, item: Any) -> tuple[str | None, Term]:
        if type(item).__name__ == "Alias":
            return item.alias, self._visit(item.this)
        if type(item).__name__ == "Star" and not any(item.args.values()):
            return None, Star()
        if type(item).__name__ == "Column" and type(item.this).__name__ == "Star" and not item.args.get("db"):
            return None, Star(item.table, at=self._span(item))
        return None, self._visit(item)

    def _visit(self, node: Any) -> Term:
        kind = type(node).__name__
        if node.depth > DEEPEST:
            self._refuse("this is nested too deeply", None, fix=_SHALLOWER)
        if kind in _BINARY:
            args = (self._visit(node.this), self._visit(node.expression))
            return Apply(_BINARY[kind], args, at=self._span(node))
        method: Callable[[Any], Term] | None = getattr(self, f"_{kind.lower()}", None)
        if method is None:
            self._refuse_node(node)
        return method(node)

    # -- leaves

    def _column(self, node: Any) -> Term:
        if node.args.get("db") or type(node.this).__name__ != "Identifier":
            self._refuse_node(node)
        return Name(node.name, node.table or None, at=self._span(node))

    def _literal(self, node: Any) -> Term:
        span = self._span(node)
        if node.is_string:
            return Value(node.this, at=span)
        text = str(node.this)
        if "e" in text.lower():
            return Value(float(text), at=span)
        return Value(Decimal(text) if "." in text else int(text), at=span)

    def _boolean(self, node: Any) -> Term:
        return Value(bool(node.this), at=self._span(node))

    def _null(self, node: Any) -> Term:
        return Value(None, at=self._span(node))

    def _interval(self, node: Any) -> Term:
        span = next((self._token_span(token) for token in self.tokens if token.text.lower() == "interval"), None)
        if type(node.this).__name__ != "Literal":
            self._refuse("an interval is a constant", span, fix="write interval '5 min'")
        unit = node.args.get("unit")
        text = str(node.this.this) if unit is None else f"{node.this.this} {str(unit.this).lower()}"
        try:
            return Value(duration(text), at=span)
        except BadDuration as error:
            months = "months and years differ in length; " if any(w in text for w in ("month", "year")) else ""
            self._refuse(f"{text!r} is not an interval", span, why=months + error.why, fix=error.fix)

    # -- operators

    def _paren(self, node: Any) -> Term:
        return self._visit(node.this)

    def _neg(self, node: Any) -> Term:
        return negate(self._visit(node.this), at=self._span(node))

    def _not(self, node: Any) -> Term:
        return Apply("not", (self._visit(node.this),), at=self._span(node))

    def _nullsafeeq(self, node: Any) -> Term:
        args = (self._visit(node.this), self._visit(node.expression))
        span = self._span(node)
        return Apply("not", (Apply("distinct", args, at=span),), at=span)

    def _is(self, node: Any) -> Term:
        if type(node.expression).__name__ != "Null":
            self._refuse("`is` goes with null only", self._span(node), fix="write x, not x, or coalesce(x, false)")
        return Apply("is_null", (self._visit(node.this),), at=self._span(node))

    def _in(self, node: Any) -> Term:
        if not node.expressions or {name for name, value in node.args.items() if value} > {"this", "expressions"}:
            self._refuse_node(node.args.get("query") or node)
        args = (self._visit(node.this), *map(self._visit, node.expressions))
        return Apply("in", args, at=self._span(node))

    def _between(self, node: Any) -> Term:
        if node.args.get("symmetric"):
            self._refuse_node(node)
        args = (self._visit(node.this), self._visit(node.args["low"]), self._visit(node.args["high"]))
        return Apply("between", args, at=self._span(node))

    def _cast(self, node: Any, *, safe: bool = False) -> Term:
        if node.args.get("format"):
            self._refuse_node(node)
        return CastTo(self._visit(node.this), self._type(node), safe, at=self._span(node))

    def _trycast(self, node: Any) -> Term:
        return self._cast(node, safe=True)

    def _case(self, node: Any) -> Term:
        value = None if node.this is None else self._visit(node.this)
        branches = []
        for branch in node.args["ifs"]:
            when = self._visit(branch.this)
            if value is not None:
                when = Apply("=", (value, when), at=when.at)
            branches.append((when, self._visit(branch.args["true"])))
        default = node.args.get("default")
        return Choose(tuple(branches), None if default is None else self._visit(default), at=self._span(node))

    def _if(self, node: Any) -> Term:
        otherwise = node.args.get("false")
        branch = (self._visit(node.this), self._visit(node.args["true"]))
        return Choose((branch,), None if otherwise is None else self._visit(otherwise), at=self._span(node))

    def _extract(self, node: Any) -> Term:
        unit = str(node.this.this if type(node.this).__name__ == "Var" else node.this.name).lower()
        word = next((self._token_span(token) for token in self.tokens if token.text.lower() == unit), None)
        return Apply("extract", (Value(unit, at=word), self._visit(node.expression)), at=word)

    # -- functions

    def _anonymous(self, node: Any) -> Term:
        typed, span = str(node.this).lower(), self._span(node)
        name = _OTHER_NAMES.get(typed, typed)
        if name in self.over_rows:
            return Apply(name, tuple(self._visit(arg) for arg in node.expressions), at=span)
        args = tuple(self._visit(arg) for arg in node.expressions) if name not in _AGGREGATES else ()
        if name == "concat" and len(args) >= 2:
            return _concat(args, span)
        if name == "substr" and len(args) == 2:
            args = (*args, Value(FARTHEST))
        if name in EXTRACT_UNITS and len(args) == 1:
            return Apply("extract", (Value(name), *args), at=span)
        if name not in FUNCTIONS or (name in _OPERATORS_ONLY and name != "%"):
            self._refuse_function(name, span)
        return Apply(name, args, at=span)

    def _type(self, node: Any) -> Type:
        target = node.args["to"]
        found = _type_named(target.this.name, target.args.get("kind"), [int(size.name) for size in target.expressions])
        if found is None:
            why = f"the types are bool, int, float, text, time, money and decimal(precision to {MAX_PRECISION}, scale)"
            self._refuse("there is no such type", self._span(node), why=why)
        return found

    # -- refusals, and where to put the caret

    def _refuse(self, what: str, span: Span | None, *, why: str = "", fix: str = "") -> NoReturn:
        raise self.source.error(ExpressionRefused, what, span, why=why, fix=fix)

    def _refuse_function(self, name: str, span: Span | None) -> NoReturn:
        if name in _AGGREGATES:
            why = "it combines many rows, and an expression sees one"
            fix = f"declare it in agg(...): {_AGGREGATES[name]}"
        elif name in UNSTABLE:
            why, fix = UNSTABLE_WHY, UNSTABLE_FIX
        else:
            why = "an expression may use only the functions of the table in docs/expressions.md"
            close = difflib.get_close_matches(name, [op for op in FUNCTIONS if op[0].isalpha()], n=1, cutoff=0.6)
            fix = f"did you mean {close[0]}?" if close else ""
        self._refuse(f"{name} is not allowed in an expression", span, why=why, fix=fix)

    def _refuse_node(self, node: Any) -> NoReturn:
        kind = type(node).__name__
        why = _REASONS.get(kind, "an expression may use only the operators of the table in docs/expressions.md")
        self._refuse(f"{_KINDS.get(kind, kind.lower())} is not allowed in an expression", self._span(node), why=why)

    def _not_sql(self, error: dict[str, Any]) -> NoReturn:
        line, end, word = error.get("line") or 1, error.get("col") or 0, str(error.get("highlight") or "")
        lines = (_PREFIX + self.source.text).split("\n")
        start = sum(len(each) + 1 for each in lines[: line - 1]) + end - len(word) - len(_PREFIX)
        span = Span(start, start + len(word)) if start >= 0 and word else None
        missing = "missing" in str(error.get("description"))
        why = "something is missing after this word" if missing else "nobody expects this word here"
        self._refuse("this is not an SQL expression", span, why=why)

    def _token_span(self, token: Any) -> Span:
        return Span(token.start - len(_PREFIX), token.end + 1 - len(_PREFIX))

    def _span(self, node: Any) -> Span | None:
        """The node's own word; of an operator the sign between its sides; of a keyword the word before its parts."""
        if "start" in node.meta:
            return Span(node.meta["start"] - len(_PREFIX), node.meta["end"] + 1 - len(_PREFIX))
        if type(node).__name__ == "Column":
            first, last = self._reach(node) or (0, 0)
            return Span(first - len(_PREFIX), last + 1 - len(_PREFIX))
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if not starts:
            return None
        left = self._reach(node.this) if type(node).__name__ in _BETWEEN_SIDES else None
        if left is not None:
            after = (t for t in self.tokens if t.start > left[1] and t.text != ")")
            return self._token_span(next(after))
        before = [t for t in self.tokens[1:] if t.start < min(starts) and t.text != "("]
        return self._token_span(before[-1] if before else self.tokens[1])

    def _reach(self, node: Any) -> tuple[int, int] | None:
        metas = [part.meta for part in node.walk() if "start" in part.meta]
        return (min(m["start"] for m in metas), max(m["end"] for m in metas)) if metas else None


def _type_named(kind: str, own: str | None, sizes: list[int]) -> Type | None:
    if kind == "DECIMAL" and len(sizes) in (1, 2):
        precision, scale = (*sizes, 0)[:2]
        return decimal(precision, scale) if 0 <= scale <= precision <= MAX_PRECISION and precision > 0 else None
    if str(own).lower() == "money":
        return MONEY
    return None if sizes else _TYPES.get(kind)


def _concat(args: tuple[Term, ...], at: Span | None) -> Term:
    first, *rest = args
    for arg in rest:
        first = Apply("||", (first, arg), at=at)
    return first


_CLAUSES = frozenset({
    "from", "where", "group", "having", "order", "limit", "offset", "union", "intersect", "except", "with",
    "distinct", ";", "qualify", "window", "into", "join", "lateral", "top", "sort", "cluster", "distribute", "for",
})  # fmt: skip
_BETWEEN_SIDES = frozenset({
    *_BINARY, "Is", "In", "Between", "NullSafeEQ", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "IntDiv", "ILike",
    "RegexpLike", "Escape", "SimilarTo", "Glob", "Xor", "Bracket", "JSONExtract",
})  # fmt: skip
_KINDS = {
    "Subquery": "a subquery", "Select": "a subquery", "Exists": "a subquery", "Star": "*", "Bracket": "[ ]",
    "Placeholder": "a parameter", "Parameter": "a parameter", "Tuple": "a row of values", "Lambda": "a lambda",
    "IntDiv": "div", "ILike": "ilike", "RegexpLike": "a regular expression", "Window": "over", "Dot": "a path",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "BitwiseNot": "~", "Column": "a longer path",
}  # fmt: skip
_REASONS = {
    "ILike": "write lower(x) like 'a%'",
    "IntDiv": "write floor(a / b)",
    "RegexpLike": "Java's and Python's regular expressions differ; use like, starts_with or contains",
    "Subquery": "an expression sees one row; join the streams instead",
    "BitwiseAnd": "conditions are joined with `and`",
    "BitwiseOr": "conditions are joined with `or`",
    "BitwiseXor": "a power is power(a, b)",
}
