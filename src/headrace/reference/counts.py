"""Conservation (rule D3): in + held before = used + filtered + late + dead + duplicates + held now."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.base.errors import Unbalanced


@dataclass(slots=True)
class Counts:
    """What became of a step's rows. `received` is the rule's "in"; `held` is counted in the state itself, afterwards,
    not from the other terms: otherwise it would balance by construction."""

    received: int = 0
    used: int = 0
    filtered: int = 0
    late: int = 0
    dead: int = 0
    duplicates: int = 0
    held: int = 0

    def add(self, batch: Counts) -> None:
        """One more batch; `held` is what is held now."""
        self.received += batch.received
        self.used += batch.used
        self.filtered += batch.filtered
        self.late += batch.late
        self.dead += batch.dead
        self.duplicates += batch.duplicates
        self.held = batch.held

    def check(self, step: str, held_before: int = 0) -> None:
        """Loud when a row is lost or counted twice."""
        out = self.used + self.filtered + self.late + self.dead + self.duplicates + self.held
        if self.received + held_before != out:
            raise Unbalanced(
                f"{step} took {self.received} rows and held {held_before}, but accounts for {out}",
                why=f"{self}",
                fix="this is a fault of Headrace: please report it with the plan (`headrace explain`)",
            )
