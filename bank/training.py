"""The model: trained on what was known of each payment when it was decided, tested on later days, saved as text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from bank.known import Ask, frauds
from bank.policy import thresholds
from bank.progress import Say, silent
from bank.traffic import SEED, Traffic
from bank.vectors import DELAY, live_through

COLUMNS = ("amount", "ratio", "z", "km", "speed_kmh", "misses_5min", "misses_1d", "frauds_28d", "acts_7d", "abroad")
"""What the trees are asked with: figures that mean the same for a busy card and a quiet one."""
SETTINGS = {
    "objective": "binary",
    "num_leaves": 15,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "max_bin": 255,
    "seed": 2026,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
TREES = 60
NEARLY_ALL = 0.95
A_DAY = 10
"""Payments that somebody can look at on a day: precision is of the highest scores of each."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How a model did on days it was not trained on. Money is of frauds; `caught` at the threshold for review."""

    payments: int
    frauds: int
    average_precision: float
    precision_a_day: float
    fraud_money: float
    caught_money: float
    false_reviews: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A model as LightGBM's text, with what stands beside it."""

    text: str
    columns: tuple[str, ...]
    trained_from: datetime
    trained_until: datetime
    tested_until: datetime
    rows: int
    frauds: int
    figures: Figures

    def save(self, path: Path, command: str) -> None:
        """The text, and beside it as JSON its SHA-256, its data and its figures."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text)
        told = {name: value for name, value in asdict(self).items() if name != "text"}
        told |= {"sha256": hashlib.sha256(self.text.encode()).hexdigest(), "settings": SETTINGS, "command": command}
        path.with_suffix(".json").write_text(json.dumps(told, indent=2, default=str) + "\n")


START = datetime.fromisoformat("2026-09-01T00:00Z")


def made_up(days: int, cards: int, say: Say = silent) -> Trained:
    """On days of made-up traffic, tested on the last quarter of them."""
    lived = live_through(Traffic(SEED, cards=cards, shops=2 * cards), START, days, say=say)
    known = {one.payment.payment_id: one.payment.at + DELAY for one in lived.made if one.fraud}
    return train(lived.rows, known, split=START + timedelta(days=days * 3 / 4), delay=DELAY, say=say)


def from_lake(ask: Ask, say: Say = silent) -> Trained:
    """On what the bank decided and what became known of it: the vectors are those that decisions were made with. Tested
    on the last quarter of the time; frauds are given as long to become known as nearly all of them took: one that
    somebody found out of months later would leave nothing to learn from."""
    say("reading what was decided")
    needed = dict.fromkeys(("payment_id", "at", "pin_ok", "amount", *COLUMNS))
    rows = ask(f"select {', '.join(needed)} from lake.decisions order by at")  # noqa: S608 (names of our own)
    known, paid = frauds(ask), {row["payment_id"]: row["at"] for row in rows}
    if not rows or not known:
        raise hr.HeadraceError("there is nothing to learn from", why=f"{len(rows)} decisions, {len(known)} frauds")
    took = sorted(known[one] - paid[one] for one in known.keys() & paid.keys())
    delay = took[int(NEARLY_ALL * (len(took) - 1))] if took else timedelta(0)
    first, last = rows[0]["at"], rows[-1]["at"]
    return train(rows, known, split=first + (last - first) * 3 / 4, delay=delay, say=say)


def train(
    rows: Iterable[Row],
    known: Mapping[str, datetime],
    *,
    split: datetime,
    delay: timedelta,
    say: Say = silent,
) -> Trained:
    """Trains on payments up to `delay` before `split` with what was `known` of them at `split` (frauds, by payment, and
    when each became known), and tests on those after it."""
    import lightgbm
    import numpy

    # A wrong PIN is declined by a rule before any model is asked.
    paid = sorted((row for row in rows if row["pin_ok"]), key=lambda row: (row["at"], row["payment_id"]))
    before = [row for row in paid if row["at"] < split - delay]
    after = [row for row in paid if row["at"] >= split]
    if not before or not after:
        raise hr.HeadraceError(
            "there is too little to learn from",
            why=f"of {len(paid)} payments {len(before)} can be learnt from, and {len(after)} are for the test; frauds "
            f"take {delay} to become known",
            fix="let the bank decide for longer, or train on made-up traffic",
        )
    asked = lambda rows: numpy.array([[_number(row[name]) for name in COLUMNS] for row in rows])  # noqa: E731
    say(f"training on {len(before):,} payments, to be tested on {len(after):,}")
    learnt = [float(known.get(row["payment_id"], split) < split) for row in before]
    data = lightgbm.Dataset(asked(before), learnt, feature_name=list(COLUMNS), free_raw_data=False)
    booster = lightgbm.train(SETTINGS, data, num_boost_round=TREES)
    scores = booster.predict(asked(after))
    return Trained(
        text=booster.model_to_string(),
        columns=COLUMNS,
        trained_from=before[0]["at"],
        trained_until=before[-1]["at"],
        tested_until=after[-1]["at"],
        rows=len(before),
        frauds=int(sum(learnt)),
        figures=measure(after, [float(score) for score in scores], set(known)),
    )


def measure(rows: Sequence[Row], scores: Sequence[float], frauds: set[str]) -> Figures:
    """Scores against what the payments proved to be."""
    truth = [row["payment_id"] in frauds for row in rows]
    amounts = [float(row["amount"]) for row in rows]
    days: dict[Any, list[int]] = {}
    for index in sorted(range(len(rows)), key=lambda index: -scores[index]):
        days.setdefault(rows[index]["at"].date(), []).append(index)
    review = (thresholds() or {})["review"]
    looked_at = [index for ordered in days.values() for index in ordered[:A_DAY]]
    caught = [score >= review for score in scores]
    return Figures(
        payments=len(rows),
        frauds=sum(truth),
        average_precision=round(average_precision(truth, scores), 4),
        precision_a_day=round(sum(truth[index] for index in looked_at) / max(len(looked_at), 1), 4),
        fraud_money=round(sum(a for a, bad in zip(amounts, truth, strict=True) if bad), 2),
        caught_money=round(sum(a for a, bad, c in zip(amounts, truth, caught, strict=True) if bad and c), 2),
        false_reviews=sum(c and not bad for bad, c in zip(truth, caught, strict=True)),
    )


def average_precision(truth: Sequence[bool], scores: Sequence[float]) -> float:
    """The mean, over the frauds from the highest score down, of the share of frauds among all scored as high.

    >>> average_precision([True, False, True, False], [0.9, 0.8, 0.7, 0.1])
    0.8333333333333333
    """
    ordered = sorted(range(len(truth)), key=lambda index: -scores[index])
    found, total = 0, 0.0
    for place, index in enumerate(ordered, 1):
        if truth[index]:
            found += 1
            total += found / place
    return total / found if found else 0.0


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
