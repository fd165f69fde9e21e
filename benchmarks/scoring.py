"""One score at a time: LightGBM's own fast path in C, our trees in the JVM, and in Python; of the bank's model.

    python benchmarks/scoring.py [--rows N] [--laps N]

Each is asked for the sum of the trees, row after row, and must say the same to the last bit. LightGBM is called from
Python; what such a call costs when it does nothing is told beside it. The JVM is sent all rows at once and walks the
trees of each twice, for its score and for its sum: half of its time counts, less the time of a model without trees. The
second walk may be the easier one, over what the processor has just seen; so both together are told beside it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lightgbm
import numpy as np
from rig.table import Line, Table

import headrace as hr
from headrace.base.settings import load
from headrace.spark.deciding import trees_json
from headrace.spark.session import Spark, start
from headrace.steps.trees import raw

MODEL = Path(__file__).parents[1] / "bank" / "models" / "fraud.txt"
AIM = 5.0
"""Microseconds."""
FEW = 20
"""Of so many rows Python is asked for one."""
RAW_SCORE, DOUBLE = 1, 1  # C_API_PREDICT_RAW_SCORE, C_API_DTYPE_FLOAT64


def rows_of(model: hr.Model, count: int) -> Any:
    """Values about the thresholds that the model asks for, so that rows go all ways; some are missing."""
    chance, found = np.random.default_rng(7), np.empty((count, len(model.features)))
    for number in range(len(model.features)):
        asked = [at for tree in model.trees for n, at in zip(tree.feature, tree.threshold, strict=True) if n == number]
        found[:, number] = chance.choice(asked or [0.0], count) * chance.choice((0.5, 1.0, 2.0), count)
    found[chance.random(found.shape) < 0.05] = np.nan
    return found


class InC:
    """LightGBM's functions for single rows, of its library as it is installed."""

    def __init__(self, features: int) -> None:
        self._library = ctypes.CDLL(lightgbm.libpath._LIB._name)
        self._booster, self._ready = ctypes.c_void_p(), ctypes.c_void_p()
        self._must(
            self._library.LGBM_BoosterCreateFromModelfile(
                str(MODEL).encode(), ctypes.byref(ctypes.c_int()), ctypes.byref(self._booster)
            )
        )
        self._must(
            self._library.LGBM_BoosterPredictForMatSingleRowFastInit(
                self._booster, RAW_SCORE, 0, -1, DOUBLE, features, b"num_threads=1", ctypes.byref(self._ready)
            )
        )

    def sums(self, rows: Any) -> Any:
        return self._each(self._library.LGBM_BoosterPredictForMatSingleRowFast, rows)

    def nothing(self, rows: Any) -> Any:
        """The same calls, of a function that only returns."""
        return self._each(self._library.LGBM_GetLastError, rows)

    def _each(self, function: Any, rows: Any) -> Any:
        function.argtypes = [ctypes.c_void_p] * 4
        found, length = np.empty(len(rows)), ctypes.byref(ctypes.c_int64())
        froms = range(rows.ctypes.data, rows.ctypes.data + rows.nbytes, rows.strides[0])
        for row, into in zip(froms, range(found.ctypes.data, found.ctypes.data + found.nbytes, 8), strict=True):
            function(self._ready, row, length, into)
        return found

    @staticmethod
    def _must(answer: int) -> None:
        assert answer == 0, "LightGBM cannot read the model"


def in_java(spark: Spark, trees: dict[str, Any], features: int, rows: bytes) -> Any:
    told = spark.jvm.Pure.scored(json.dumps(trees), features, rows)
    return np.frombuffer(told, ">f8").reshape(-1, 2)[:, 1]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=100_000)
    asked.add_argument("--laps", type=int, default=8, help="the first warm the JIT compiler; the best counts")
    given = asked.parse_args()
    model = hr.Model.read(MODEL)
    rows, width = rows_of(model, given.rows), len(model.features)
    packed, few, trees, c = rows.astype(">f8").tobytes(), rows[::FEW].tolist(), trees_json(model), InC(width)
    with TemporaryDirectory(prefix="headrace-scoring-") as home:
        told = {"home": f"{home}/home", "spark.driver_memory": "1g"}
        with start(load(told), profile="live", app_name="scoring") as spark:
            sides: dict[str, Callable[[], Any]] = {
                "c": lambda: c.sums(rows),
                "nothing": lambda: c.nothing(rows),
                "java": lambda: in_java(spark, trees, width, packed),
                "sent": lambda: in_java(spark, {**trees, "trees": []}, width, packed),
                "python": lambda: [raw(model, row) for row in few],
            }
            best, gave = raced(sides, given.laps)
    if not np.array_equal(gave["c"], gave["java"]) or gave["c"][::FEW].tolist() != gave["python"]:
        raise SystemExit("the sums differ")
    own, empty, sent = (best[side] / given.rows * 1e6 for side in ("c", "nothing", "sent"))
    java = (best["java"] - best["sent"]) / 2 / given.rows * 1e6
    python = best["python"] / len(few) * 1e6
    table = Table(f"scoring: {given.rows:,} rows of {width} features, {len(model.trees)} trees, the same sums")
    table.add(
        Line(what="LightGBM, C, one row a call", figure=f"{own:.2f} us", beside=f"of which {empty:.2f} us the call")
    )
    table.add(Line(what="the JVM", figure=f"{java:.2f} us", ratio=f"{java / own:.2f} x", target=f"{AIM:.0f} us",
                   met=java <= AIM, beside=f"both walks {2 * java:.2f} us, {sent:.2f} us to send a row"))  # fmt: skip
    table.add(Line(what="Python", figure=f"{python:.0f} us", ratio=f"{python / own:.0f} x"))


def raced(sides: dict[str, Callable[[], Any]], laps: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of the best lap of each, and what it gave."""
    best, gave = dict.fromkeys(sides, float("inf")), {}
    for _ in range(laps):
        for side, work in sides.items():
            began = time.perf_counter()
            gave[side] = work()
            best[side] = min(best[side], time.perf_counter() - began)
    return best, gave


if __name__ == "__main__":
    main()
