"""The contract of a store: batches of a flow go in once and in order, and only the newest driver may write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from headrace.base.errors import Fenced


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows of one batch for one store, in Parquet files (stores/staged.py says in which form)."""

    flow: str  # whose batches are counted: "<app>/<version>/<flow>/<checkpoint>"
    number: int
    files: tuple[Path, ...]  # never empty; their order is the order of the rows


def fenced(label: str) -> Fenced:
    """Of a driver that was succeeded."""
    return Fenced(
        f"another driver has taken over {label}",
        why="it opened the store after this one, or dropped it; this driver wrote nothing more",
        fix="keep one of the two drivers; run the other under another version",
    )


class Store(ABC):
    """One place that a flow's rows go to.

    A driver opens it before its first batch and commits batch after batch; after a crash the next driver commits the
    last one again. What the store's guarantee makes of that:

    - exactly-once: a batch and the note that it is there become visible together, or in an order that a repetition
      repairs. A batch that is noted is not written again.
    - at-least-once: no note is asked. A batch that comes again is written again, which changes nothing in a store with
      keys, and appends it again to one without.
    - at-most-once: the note is made before the rows. A batch that is noted is not tried again, whole or not.

    In a store with keys, the last row of a key wins (stores/staged.py: `latest`). A row that is `_gone` removes its
    key; removing what is not there is fine.

    Notes are kept for each flow and store, so one flow may not write to one store through two outputs.
    """

    @abstractmethod
    def open(self, owner: str) -> None:
        """Connects, makes the table or checks the one that is there, and takes the store from every driver that opened
        it before for this owner ("<app>/<version>/<flow>"). Can be called again after any error.

        StoreUnreachable, StoreRefused, TableMismatch.
        """

    @abstractmethod
    def commit(self, batch: Batch) -> None:
        """Writes the batch, once. When it returns, readers see all of it.

        After StoreUnreachable its outcome is not known: open the store and commit the batch again.

        Fenced: another driver opened the store since; nothing was written. StoreUnreachable, StoreKeyMissing.
        """

    def tidy(self) -> None:  # noqa: B027  most have nothing to do
        """Upkeep, if there is some to do. After a batch is committed everywhere: while one is, readers of topics wait.
        What fails is tried again later."""

    @abstractmethod
    def drop(self) -> None:
        """Removes the rows and all notes about batches; open or not. Whoever still has the store open is fenced: the
        order of drivers outlives the data."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of connections; a closed store can be opened again."""
