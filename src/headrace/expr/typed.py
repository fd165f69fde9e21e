"""The way in: text or `hr.col` trees become typed expressions over the columns they may read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.base.errors import ExpressionRefused
from headrace.base.where import Where
from headrace.expr import sql
from headrace.expr.build import Col
from headrace.expr.check import Checker, Source
from headrace.expr.nodes import Expr, Ref
from headrace.expr.show import show_term
from headrace.expr.syntax import Name, Star, Term
from headrace.expr.types import Columns


def parse(
    text: str, columns: Columns, *, where: Where | None = None, names: Mapping[str, Columns] | None = None
) -> Expr:
    """One SQL expression, typed; `names` are the rows that `buy.country` may speak of.

    >>> from headrace.expr.types import MONEY, TEXT, Column
    >>> rule = parse("amount*2 > 100 AND country<>'CH'", (Column("amount", MONEY), Column("country", TEXT)))
    >>> print(rule, rule.type, sep=": ")
    amount * 2 > 100 and country <> 'CH': bool
    """
    source = Source(text=text, where=where)
    return Checker(source=source, columns=columns, names=names or {}).check(sql.term(source))


def expression(
    given: str | Col, columns: Columns, *, where: Where | None = None, names: Mapping[str, Columns] | None = None
) -> Expr:
    """The same for text and for `hr.col` trees."""
    if isinstance(given, str):
        return parse(given, columns, where=where, names=names)
    if callable(given):
        raise ExpressionRefused(
            f"{getattr(given, '__name__', given)} is a Python function, not an expression",
            why="expressions are checked and computed without Python",
            fix="say it as text, or test the rows before: .where(function)",
            where=where,
        )
    if not isinstance(given, Col):
        raise ExpressionRefused(
            f"{given!r} is not an expression",
            why="an expression is SQL text or built from hr.col",
            fix='write "amount > 100" or hr.col.amount > 100',
            where=where,
        )
    source = Source(text=show_term(given.term), where=where)
    return Checker(source=source, columns=columns, names=names or {}).check(given.term)


def select_list(
    text: str, columns: Columns, *, where: Where | None = None, names: Mapping[str, Columns] | None = None
) -> tuple[tuple[str, Expr], ...]:
    """ "card_id, amount * 2 as doubled": expressions with names; a column is named by itself, `*` is all of them,
    `buy.*` all of a named row."""
    source = Source(text=_one_text(text, where), where=where)
    checker = Checker(source=source, columns=columns, names=names or {})
    found: dict[str, Expr] = {}
    for given, term in _without_stars(sql.terms(source), checker):
        expr = checker.check(term)
        name = given or (expr.name if isinstance(expr, Ref) else None)
        if name is None:
            raise source.error(ExpressionRefused, f"{expr} has no name", term.at, fix=f"write {expr} as something")
        if name in found:
            raise source.error(ExpressionRefused, f"two columns are named {name!r}", term.at, fix="rename one with as")
        found[name] = expr
    return tuple(found.items())


def _one_text(given: object, where: Where | None) -> str:
    if isinstance(given, str):
        return given
    listed = ", ".join(map(str, given)) if isinstance(given, list | tuple) else "card_id, amount * 2 as doubled"
    raise ExpressionRefused(
        f"{given!r} is no list of columns", why="it is one text, as in SQL", fix=f'write "{listed}"', where=where
    )


def _without_stars(terms: list[tuple[str | None, Term]], checker: Checker) -> Iterator[tuple[str | None, Term]]:
    for given, term in terms:
        if not isinstance(term, Star):
            yield given, term
            continue
        if term.row is None and checker.names:
            each = ", ".join(f"{name}.*" for name in checker.names)
            raise checker.source.error(ExpressionRefused, "* does not say of which row", term.at, fix=f"write {each}")
        for column in checker.columns_of(term.row, term):
            yield None, Name(column.name, term.row, at=term.at)


def column_list(text: str, columns: Columns, *, where: Where | None = None) -> tuple[str, ...]:
    """ "card_id, terminal_id": names of columns that exist, nothing else."""
    source = Source(text=_one_text(text, where), where=where)
    checker = Checker(source=source, columns=columns)
    names: list[str] = []
    for alias, term in _without_stars(sql.terms(source), checker):
        expr = checker.check(term)
        if not isinstance(expr, Ref) or alias is not None:
            raise source.error(ExpressionRefused, f"{expr} is not the name of a column", term.at,
                               fix="compute it in a .select(...) before")  # fmt: skip
        if expr.name in names:
            raise source.error(ExpressionRefused, f"{expr.name!r} is named twice", term.at)
        names.append(expr.name)
    return tuple(names)
