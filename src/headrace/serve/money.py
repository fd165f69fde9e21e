"""Money: what fraud took, and what the flow and a batch job saved of it, as ids, labels and amounts become known."""

from __future__ import annotations

from decimal import Decimal


class Money:
    """Sums over ids that turned out to be fraud. What is known of an id comes in any order."""

    def __init__(self) -> None:
        self._frauds: dict[str, Decimal] = {}
        self._stopped: tuple[set[str], set[str]] = (set(), set())  # by the flow, by the batch job
        self._saved = [Decimal(0), Decimal(0)]
        self.fraud = Decimal(0)
        """All of it, let through or not."""

    def labelled(self, id: str, fraud: bool, amount: Decimal) -> None:
        """A label; a later one corrects it."""
        before = self._frauds.pop(id, None)
        if before is not None:
            self._add(id, -before)
        if fraud:
            self._frauds[id] = amount
            self._add(id, amount)

    def stopped(self, id: str) -> None:
        """The flow did not let it through."""
        self._stop(0, id)

    def stopped_by_batch(self, id: str) -> None:
        """The batch job would not have let it through: it knew by then."""
        self._stop(1, id)

    @property
    def saved(self) -> Decimal:
        return self._saved[0]

    @property
    def saved_by_batch(self) -> Decimal:
        return self._saved[1]

    def _stop(self, who: int, id: str) -> None:
        if id not in self._stopped[who]:
            self._stopped[who].add(id)
            self._saved[who] += self._frauds.get(id, Decimal(0))

    def _add(self, id: str, amount: Decimal) -> None:
        self.fraud += amount
        for who, ids in enumerate(self._stopped):
            if id in ids:
                self._saved[who] += amount
