"""The printer: one canonical text for every tree, which parses back to the same tree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from headrace.base.duration import show as show_duration
from headrace.expr.nodes import Call, Case, Cast, Expr, Literal, Ref
from headrace.expr.syntax import Apply, CastTo, Choose, Constant, Name, Star, Term, Value

_LEVELS = {"or": 1, "and": 2, "not": 3, "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4}
_LEVELS |= {"distinct": 4, "is_null": 4, "in": 4, "between": 4, "like": 4}
_LEVELS |= {"||": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "negate": 8}
_ATOM = 9
_CHAINS = frozenset({"or", "and", "+", "-", "*", "/", "%", "||"})  # a - b - c needs no parentheses on the left


def show(expr: Expr) -> str:
    return show_term(untyped(expr))


def untyped(expr: Expr) -> Term:
    """The tree a person would write: without types, and without the conversions the checker added."""
    match expr:
        case Ref():
            return Name(expr.name, expr.qualifier)
        case Literal():
            return Value(expr.value)
        case Cast():
            return untyped(expr.arg) if expr.implicit else CastTo(untyped(expr.arg), expr.type, expr.safe)
        case Case():
            branches = tuple((untyped(when), untyped(then)) for when, then in expr.branches)
            otherwise = untyped(expr.otherwise)
            return Choose(branches, None if otherwise == Value(None) else otherwise)
        case Call():
            return Apply(expr.op, tuple(untyped(arg) for arg in expr.args))
        case _:
            raise TypeError(f"{expr!r} is no expression")


def show_term(term: Term) -> str:
    match term:
        case Name():
            parts = [] if term.qualifier is None else [term.qualifier]
            return ".".join(_identifier(part) for part in [*parts, term.name])
        case Value():
            return _constant(term.value)
        case CastTo():
            return f"{'try_cast' if term.safe else 'cast'}({show_term(term.arg)} as {term.type})"
        case Choose():
            whens = " ".join(f"when {show_term(when)} then {show_term(then)}" for when, then in term.branches)
            otherwise = "" if term.otherwise is None else f" else {show_term(term.otherwise)}"
            return f"case {whens}{otherwise} end"
        case Apply():
            return _apply(term.op, term.args)
        case Star():
            return "*" if term.row is None else f"{_identifier(term.row)}.*"
        case _:
            raise TypeError(f"{term!r} is no term")


def _apply(op: str, args: Sequence[Term]) -> str:
    if op == "not":
        return _negation(args[0])
    if op == "negate":
        return f"-{_inside(args[0], _ATOM)}"
    if op == "is_null":
        return f"{_inside(args[0], 5)} is null"
    if op == "distinct":
        return f"{_inside(args[0], 5)} is distinct from {_inside(args[1], 5)}"
    if op == "in":
        return f"{_inside(args[0], 5)} in ({', '.join(map(show_term, args[1:]))})"
    if op == "between":
        return f"{_inside(args[0], 5)} between {_inside(args[1], 5)} and {_inside(args[2], 5)}"
    if op == "extract" and isinstance(args[0], Value):
        return f"extract({args[0].value} from {show_term(args[1])})"
    if op in _LEVELS and len(args) == 2:
        level = _LEVELS[op]
        return f"{_inside(args[0], level if op in _CHAINS else level + 1, op)} {op} {_inside(args[1], level + 1)}"
    return f"{op}({', '.join(map(show_term, args))})"


def _negation(arg: Term) -> str:
    """`not (a is null)` reads better as `a is not null`; the parser takes both for the same."""
    if isinstance(arg, Apply) and arg.op == "is_null":
        return f"{_inside(arg.args[0], 5)} is not null"
    if isinstance(arg, Apply) and arg.op == "in":
        return f"{_inside(arg.args[0], 5)} not in ({', '.join(map(show_term, arg.args[1:]))})"
    return f"not {_inside(arg, _ATOM)}"


def _inside(term: Term, level: int, op: str = "") -> str:
    """The term, in parentheses where it binds less than its surroundings; mixed `||` and `+` always have them."""
    text = show_term(term)
    found = _level(term)
    mixed = op == "||" and found != _ATOM and not (isinstance(term, Apply) and term.op == "||")
    return f"({text})" if found < level or mixed else text


def _level(term: Term) -> int:
    if isinstance(term, Apply):
        return _LEVELS.get(term.op, _ATOM)
    negative = isinstance(term, Value) and isinstance(term.value, int | float | Decimal) and term.value < 0
    return _LEVELS["negate"] if negative else _ATOM


def _identifier(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and name.lower() not in _RESERVED
    slot = name.endswith(")")  # named by the words that ask for it (earlier.py)
    return name if plain or slot else '"' + name.replace('"', '""') + '"'


def _constant(value: Constant) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case float():
            text = repr(value)
            return text if "e" in text else text + "e0"  # the exponent says float; 0.1 is a decimal
        case Decimal():
            return f"{value:f}" if "." in f"{value:f}" else f"{value:f}."  # the point says decimal, also of a huge int
        case datetime():
            return f"timestamp '{value.isoformat(timespec='microseconds').replace('+00:00', 'Z')}'"
        case timedelta():
            return f"interval '{show_duration(value)}'"
        case _:
            return str(value)


# Words that mean something else to the parser when they stand alone.
_RESERVED = frozenset({
    "all", "and", "any", "array", "as", "asc", "between", "by", "case", "cast", "cross", "current_date",
    "current_time", "current_timestamp", "current_user", "desc", "distinct", "div", "else", "end", "escape", "except",
    "exists", "extract", "false", "for", "from", "full", "group", "having", "if", "ilike", "in", "inner", "intersect",
    "interval", "into", "is", "join", "left", "like", "limit", "natural", "not", "null", "offset", "on", "or",
    "order", "outer", "qualify", "regexp", "right", "rlike", "select", "set", "similar", "some", "struct", "table",
    "then", "timestamp", "true", "try_cast", "union", "unique", "unnest", "using", "values", "when", "where",
    "window", "with", "xor", "date", "time", "map",
})  # fmt: skip
