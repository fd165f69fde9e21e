"""The rows that partial matches hold, each stored once; matches that begin alike share their beginnings.

A node is a row taken by a step after another node: a partial match is known by its last node. Nodes and rows count who
points at them, so that a row is used up (rule D3) the moment the last partial match lets go of it.

| a b1 b2, a b1 and a b2 are open | a <- b1 <- b2 |
|                                 | a <- b2       |
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.steps.row import Row


@dataclass(slots=True, eq=False)
class Kept:
    """A row in its turn: "directly after" is one turn more."""

    row: Row
    turn: int
    refs: int = 1


@dataclass(slots=True, eq=False)
class Node:
    """`step` has taken the row after `before` had taken its own; `first`: the first row of all."""

    kept: Kept
    step: int
    before: Node | None
    first: Kept
    refs: int = 1

    def path(self) -> list[Node]:
        """The nodes up to this one, in order."""
        found = []
        node: Node | None = self
        while node is not None:
            found.append(node)
            node = node.before
        return found[::-1]


@dataclass(slots=True)
class Buffer:
    """`rows`: how many are held. `turn`: of the last row that was taken. `gap`: rows came since; how many is not
    counted, so that rows which nobody takes leave the state as it is. `used`: let go of since somebody asked."""

    rows: int = 0
    turn: int = 0
    gap: bool = False
    used: int = 0

    def keep(self, row: Row) -> Kept:
        """The next row, held while it has its turn; `passed` after it."""
        self.rows += 1
        return Kept(row, self.turn + (2 if self.gap else 1))

    def passed(self, kept: Kept) -> None:
        self.gap = kept.refs == 1
        if not self.gap:
            self.turn = kept.turn
        self.let_go(kept)

    def let_go(self, kept: Kept) -> None:
        kept.refs -= 1
        if kept.refs == 0:
            self.rows -= 1
            self.used += 1

    def grow(self, before: Node | None, kept: Kept, step: int) -> Node:
        """A new node; whoever asked for it holds it, and releases it."""
        kept.refs += 1
        if before is None:
            return Node(kept, step, None, kept)
        before.refs += 1
        return Node(kept, step, before, before.first)

    def hold(self, node: Node) -> Node:
        node.refs += 1
        return node

    def release(self, node: Node) -> None:
        found: Node | None = node
        while found is not None:
            found.refs -= 1
            if found.refs > 0:
                return
            self.let_go(found.kept)
            found = found.before
