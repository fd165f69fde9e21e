"""The keys of a join: "ad_id, user_id" of both rows, or "orders.user_id = users.user_id and ..."."""

from __future__ import annotations

from dataclasses import replace

from headrace.base.errors import ExpressionRefused, ExpressionType
from headrace.base.where import Where
from headrace.expr import sql
from headrace.expr.check import Checker, Source
from headrace.expr.nodes import Expr
from headrace.expr.show import show_term
from headrace.expr.syntax import Apply, Name, Term, conjuncts, rebuilt, walk
from headrace.expr.types import Party, same


def pairs(text: str, left: Party, right: Party, *, where: Where | None = None) -> tuple[tuple[Expr, Expr], ...]:
    """Each key twice: as the left row has it and as the right row has it.

    >>> from headrace.expr.types import TEXT, Column
    >>> orders, users = Party("orders", (Column("buyer", TEXT),)), Party("users", (Column("id", TEXT),))
    >>> [(str(one), str(other)) for one, other in pairs("users.id = orders.buyer", orders, users)]
    [('buyer', 'id')]
    """
    source = Source(text=text, where=where)
    wanted = [one for _, term in sql.terms(source) for one in conjuncts(term)]
    return tuple(_pair(term, left, right, source) for term in wanted)


def _pair(term: Term, left: Party, right: Party, source: Source) -> tuple[Expr, Expr]:
    one, other = _sides(term, left, right, source)
    for side, party in ((one, left), (other, right)):
        _check_own(side, party, left, right, source)
    first = Checker(source=source, columns=left.columns).check(_bare(one, left.name))
    second = Checker(source=source, columns=right.columns).check(_bare(other, right.name))
    if not same(first.type, second.type):
        raise source.error(
            ExpressionType,
            f"{first} of {left.name} is {first.type}, {second} of {right.name} is {second.type}",
            term.at,
            why="keys of different types are never equal",
            fix="cast one of them in a select before",
        )
    return first, second


def _sides(term: Term, left: Party, right: Party, source: Source) -> tuple[Term, Term]:
    if isinstance(term, Name) and term.qualifier is None:
        return term, term
    if isinstance(term, Apply) and term.op == "=":
        one, other = term.args
        turned = _names(one, right.name) or _names(other, left.name)
        return (other, one) if turned else (one, other)
    raise source.error(
        ExpressionRefused,
        f"{show_term(term)} is no key",
        term.at,
        why="rows meet where keys are equal; other conditions come after it, in .where(...)",
        fix=f'say on="customer_id", or on="{left.name}.x = {right.name}.y"',
    )


def _check_own(side: Term, party: Party, left: Party, right: Party, source: Source) -> None:
    """Each side of a key speaks of its own row, and of nothing else."""
    found = [one for one in walk(side) if isinstance(one, Name)]
    known = Checker(source=source, columns=(), names={left.name: left.columns, right.name: right.columns})
    for one in found:
        known.columns_of(one.qualifier, one)
    if not found or any(one.qualifier not in (None, party.name) for one in found):
        raise source.error(
            ExpressionRefused,
            f"{show_term(side)} is no key of {party.name}",
            side.at,
            why="a key is made of the columns of one row, and equals one of the other row",
            fix=f'say on="{left.name}.x = {right.name}.y"; what concerns one row comes before it, in .where(...)',
        )


def _names(term: Term, row: str) -> bool:
    return any(isinstance(one, Name) and one.qualifier == row for one in walk(term))


def _bare(term: Term, row: str) -> Term:
    """Without the name of its own row: the key is an expression over that row alone."""
    if isinstance(term, Name) and term.qualifier == row:
        return replace(term, qualifier=None)
    return rebuilt(term, lambda part: _bare(part, row))
