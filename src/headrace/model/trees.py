"""A model as LightGBM saves it: the trees, the columns they ask for, and the version that its text has."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from headrace.base.errors import BadModel
from headrace.base.where import here

CATEGORICAL, DEFAULT_LEFT = 1, 2
"""Bits of a split's decision_type; the two above them say what counts as missing."""
NEVER, ZERO, NAN = 0, 1, 2
"""What counts as missing: nothing, zero and NaN, NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One tree. A split asks feature[n] <= threshold[n]; children that are negative are leaves, ~child their number."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    default_left: tuple[bool, ...]
    missing: tuple[int, ...]  # NEVER | ZERO | NAN
    left: tuple[int, ...]
    right: tuple[int, ...]
    leaf: tuple[float, ...]
    inner: tuple[float, ...]  # what a split would say if it were a leaf

    def __post_init__(self) -> None:
        splits = len(self.leaf) - 1
        parts = self.feature, self.threshold, self.default_left, self.missing, self.left, self.right, self.inner
        if {len(part) for part in parts} != {splits}:
            raise ValueError(f"{splits} splits are needed for {splits + 1} leaves")
        if any(map(math.isnan, self.threshold)) or not all(map(math.isfinite, (*self.leaf, *self.inner))):
            raise ValueError("a threshold or a leaf is no number")  # infinity parts what is there from what is missing
        # Each node has one parent and comes after it: so a walk ends, and every node is reached.
        children = sorted((*self.left, *self.right))
        if children != [*range(-splits - 1, 0), *range(1, splits)] * bool(splits):
            raise ValueError("a node is reached by two ways, or by none")
        if any(0 <= child <= parent for side in (self.left, self.right) for parent, child in enumerate(side)):
            raise ValueError("a node stands before its parent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Trees that give a score. `features`: the columns they are asked with, in that order. `sigmoid`: the steepness of
    the curve that makes a probability of their sum; None: the sum itself is the score.

        model = hr.Model.read("fraud.txt")
    """

    text: str = field(repr=False)
    features: tuple[str, ...] = field(init=False)
    trees: tuple[Tree, ...] = field(init=False, repr=False, compare=False)
    sigmoid: float | None = field(init=False)
    average: bool = field(init=False)  # of a random forest: the mean of the trees instead of their sum

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """From a file that `booster.save_model(path)` wrote."""
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as unread:
            raise BadModel(f"{path} cannot be read as a model", why=str(unread), fix="booster.save_model(path)",
                           where=here()) from None  # fmt: skip
        return cls(text=text)

    def __post_init__(self) -> None:
        try:
            head, bodies = _parts(self.text)
            found: dict[str, Any] = {
                "features": tuple(head["feature_names"].split()),
                "sigmoid": _sigmoid(head.get("objective", "")),
                "average": "average_output" in head,
                "trees": tuple(map(_tree, bodies)),
            }
            _check(head, found)
        except (KeyError, ValueError) as broken:
            why = f"it does not say {broken}" if isinstance(broken, KeyError) else str(broken)
            raise BadModel("this text is no model that can be asked", why=why,
                           fix="save it whole with LightGBM 4: booster.save_model(path)",
                           where=here()) from None  # fmt: skip
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def version(self) -> str:
        """The first twelve digits of its hash."""
        return self.sha256[:12]

    def __str__(self) -> str:
        return f"model {self.version}: {len(self.trees)} trees over {', '.join(self.features)}"


def _parts(text: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The lines before the first tree, and those of each tree, as names and values. What follows the trees says how it
    was trained, and does not matter here."""
    trees, sign, _ = text.partition("\nend of trees")
    if not sign:
        raise ValueError("it has no line 'end of trees', so some of it may be missing")
    head, *bodies = trees.split("\nTree=")
    if not head.startswith("tree\n"):
        raise ValueError("its first line is not 'tree'")
    found = dict(_lines(head))
    sizes = found["tree_sizes"].split()
    if len(sizes) != len(bodies):
        raise ValueError(f"it speaks of {len(sizes)} trees and has {len(bodies)}")
    return found, [dict(_lines(f"Tree={body}")) for body in bodies]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, _, value = line.partition("=")
        yield name, value


def _sigmoid(objective: str) -> float | None:
    kind, *options = objective.split() or [""]
    if kind == "regression" and not options:
        return None
    if kind == "binary":
        steepness = next((float(value) for option in options for name, _, value in [option.partition(":")]
                          if name == "sigmoid"), 1.0)  # fmt: skip
        if steepness > 0:
            return steepness
    raise ValueError(f"its objective is {objective!r}, and binary and regression are what can be asked here")


def _tree(body: dict[str, str]) -> Tree:
    leaves = int(body["num_leaves"])
    if int(body["num_cat"]) or int(body.get("is_linear", "0")):
        raise ValueError("it has categorical splits or linear leaves; train with numbers and linear_tree=false")

    def values(name: str, kind: Callable[[str], Any], count: int) -> tuple[Any, ...]:
        found = tuple(map(kind, body[name].split())) if count else ()
        if len(found) != count:
            raise ValueError(f"a tree of {leaves} leaves has {len(found)} of {name}")
        return found

    kinds = values("decision_type", int, leaves - 1)
    if any(kind & CATEGORICAL or kind >> 2 not in (NEVER, ZERO, NAN) for kind in kinds):
        raise ValueError("a split is of a kind that is not known")
    return Tree(
        feature=values("split_feature", int, leaves - 1),
        threshold=values("threshold", float, leaves - 1),
        default_left=tuple(bool(kind & DEFAULT_LEFT) for kind in kinds),
        missing=tuple(kind >> 2 for kind in kinds),
        left=values("left_child", int, leaves - 1),
        right=values("right_child", int, leaves - 1),
        leaf=values("leaf_value", float, leaves),
        inner=values("internal_value", float, leaves - 1),
    )


def _check(head: dict[str, str], found: dict[str, Any]) -> None:
    if int(head["num_class"]) != 1 or int(head["num_tree_per_iteration"]) != 1:
        raise ValueError("it tells several classes apart; a decision needs one score")
    if not found["trees"]:
        raise ValueError("it has no trees")
    if not math.isfinite(sum(max(map(abs, tree.leaf)) for tree in found["trees"])):
        raise ValueError("its leaves add up to more than a float can hold")
    width = int(head["max_feature_idx"]) + 1
    if len(found["features"]) != width or len(set(found["features"])) != width:
        raise ValueError(f"it asks for {width} features and names {len(found['features'])}")
    if any(not 0 <= at < width for tree in found["trees"] for at in tree.feature):
        raise ValueError("a split asks for a feature that has no name")
