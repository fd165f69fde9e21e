"""Lets: what is computed once per row, in columns beside the chain's; each layer is made of those before it.

The routes between two stages are one projection, and an expression stands in it as often as it is used: what five steps
compute from each other would be computed hundreds of times per row, and planned, and compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyspark.sql.functions as sf


@dataclass(frozen=True, slots=True)
class Lets:
    """The layers of the routes of one frame."""

    layers: list[list[Any]] = field(default_factory=list)

    def keep(self, depth: int, here: Any, struct: Any, names: Iterable[str]) -> dict[str, Any]:
        """A struct for rows that are `here`, made of layers below `depth`; its fields as they are read from there."""
        while len(self.layers) <= depth:
            self.layers.append([])
        name = f"_let_{depth}_{len(self.layers[depth])}"
        self.layers[depth].append(sf.when(here, struct).alias(name))
        return {field: sf.col(name)[field] for field in names}

    def onto(self, frame: Any) -> Any:
        """The frame with all of them. One that nobody reads, Spark leaves out."""
        for layer in self.layers:
            frame = frame.select("*", *layer)
        return frame
