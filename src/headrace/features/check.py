"""Whether vectors that were told are those that the lake gives: rows, equal ones and examples, feature by feature."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

EXAMPLES = 3
"""Rows that differ and are shown, of each feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row for which a feature was told otherwise."""

    row: dict[str, Any]  # its key, time and id
    logged: Any
    recomputed: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One feature."""

    feature: str
    rows: int
    equal: int
    examples: tuple[Difference, ...]

    @property
    def rate(self) -> float:
        """The share of rows that are equal; 1 if there are none."""
        return self.equal / self.rows if self.rows else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The report. `missing`: rows that the lake does not have, or not yet; they are not compared."""

    rows: int
    missing: int
    features: tuple[Match, ...]

    @property
    def exact(self) -> bool:
        return all(match.equal == match.rows for match in self.features)

    def as_dict(self) -> dict[str, Any]:
        matches = [asdict(match) | {"rate": match.rate} for match in self.features]
        return {"rows": self.rows, "missing": self.missing, "exact": self.exact, "features": matches}


def compare(
    logged: pa.Table, recomputed: pa.Table, found: list[bool], features: list[str], known: list[str]
) -> Checked:
    """Both tables have the same rows in the same order. `known`: the columns that tell a row apart."""
    matches = []
    for name in features:
        pairs = zip(found, logged[name].to_pylist(), recomputed[name].to_pylist(), strict=True)
        differing = [place for place, (there, one, other) in enumerate(pairs) if there and one != other]
        examples = [
            Difference(
                row={column: logged[column][place].as_py() for column in known},
                logged=logged[name][place].as_py(),
                recomputed=recomputed[name][place].as_py(),
            )
            for place in differing[:EXAMPLES]
        ]
        rows = sum(found)
        matches.append(Match(feature=name, rows=rows, equal=rows - len(differing), examples=tuple(examples)))
    return Checked(rows=len(logged), missing=len(logged) - sum(found), features=tuple(matches))
