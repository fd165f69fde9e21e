"""Models for tests: trained with LightGBM on made-up rows, the same ones in every run."""

from __future__ import annotations

from functools import cache
from typing import Any

import lightgbm
import numpy

from headrace.model.trees import Model

FEATURES = ("amount", "hour", "km", "times")
_PINNED = {
    "seed": 7,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "max_bin": 63,
    "num_leaves": 15,
    "min_data_in_leaf": 5,
    "verbose": -1,
}


def rows(count: int, seed: int = 1, *, odd: bool = False) -> Any:
    """Rows of numbers, some missing, some zero; with `odd` also infinities, -0.0 and what is nearly zero."""
    chance = numpy.random.default_rng(seed)
    found = chance.normal(size=(count, len(FEATURES))).round(3)
    others = (numpy.nan, 0.0, numpy.inf, -numpy.inf, -0.0, 1e-36, -1.00000001e-35, 5e-324) if odd else (numpy.nan, 0.0)
    for value in others:
        found[chance.random(found.shape) < 0.05] = value
    return found


@cache
def booster(**options: Any) -> Any:
    """A booster of twenty trees; `options` are LightGBM's."""
    known = rows(2_000)
    filled = numpy.nan_to_num(known)
    labels = (filled[:, 0] + filled[:, 1] ** 2 - filled[:, 2] > 1).astype(int)
    data = lightgbm.Dataset(known, labels, feature_name=list(FEATURES))
    return lightgbm.train({"objective": "binary", **_PINNED, **options}, data, 20)


def model(**options: Any) -> Model:
    return Model(text=booster(**options).model_to_string())
