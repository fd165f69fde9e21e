"""Acceptance on the Fraud Detection Handbook's payments: features by the stream, beside batch; models by its protocol.

    python benchmarks/handbook.py FOLDER [--rows N] [--only-stream]

FOLDER holds transactions.parquet, customers.parquet and terminals.parquet of the handbook's simulated set (not part of
this repository). All payments go through Kafka and the features declared here, over history, into the lake. There
they are compared with a batch recomputation in NumPy, row by row; what they learn is measured by the handbook's
protocol: train on 7 days, wait 7 for the labels, test on 7, without the cards known as compromised by then; four times,
a week apart. Settings of the model are picked on four earlier folds, which have no day in common with these.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pyarrow.parquet as parquet
from deltalake import DeltaTable
from rig import payments, spark
from rig.history import read_through
from rig.table import Line, Table

import headrace as hr
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic

DAY = 86_400
DAYS = (1, 7, 30)
DELAY = 7
TIES = 20
"""Rows whose card paid twice in one second: the handbook has no order for them."""
FIRST_DAY = np.datetime64("2018-04-01")
TEST = ("2018-07-25", "2018-07-18", "2018-07-11", "2018-07-04")
VALIDATION = ("2018-06-13", "2018-06-06", "2018-05-30", "2018-05-23")
"""First days of training. A fold is three weeks: the last of validation ends the day before the first of test."""
COUNTS = ((67_240, 598), (58_264, 385))
"""Rows and frauds of the first fold, to train and to test."""
# Amounts over 220.00 are a scenario of their own: with 255 bins no threshold comes near enough to it (0.672 for 0.706).
PINNED = {"objective": "binary", "max_bin": 4095, "seed": 7, "deterministic": True, "force_row_wise": True,
          "num_threads": 2, "verbose": -1}  # fmt: skip
SETTINGS = tuple(
    ({"num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": 20, "feature_fraction": share, "lambda_l2": 0.1,
      "bagging_fraction": 0.7, "bagging_freq": 1}, rounds)
    for leaves, rate, share, rounds in ((15, 0.02, 0.7, 500), (15, 0.02, 0.4, 600), (8, 0.03, 0.5, 600))
)  # fmt: skip

FIFTEEN = {
    "amount": "cast(amount as float)",
    "weekend": "extract(isodow from at) >= 6",
    "night": "extract(hour from at) <= 6",
    **{f"times_{days}d": f"times_{days}d" for days in DAYS},
    **{f"mean_{days}d": f"cast(spent_{days}d as float) / times_{days}d" for days in DAYS},
    **{f"uses_{days}d": f"uses_{days}d" for days in DAYS},
    **{f"risk_{days}d": f"coalesce(frauds_{days}d / uses_{days}d, 0.0e0)" for days in DAYS},
}
MORE = {
    **{name: name for name in ("usual", "ratio", "z", "large_3d", "large_7d", "large_14d")},
    **{f"small_{days}d": f"coalesce(small_{days}d, 0)" for days in (1, 3, 7, 28)},
    **{f"small_share_{days}d": f"coalesce(small_{days}d / uses_{days}d, 0.0e0)" for days in (1, 3, 7, 28)},
}
"""What models ask for, as the flow declares it: the handbook's own, and what we add."""


@hr.event(topic="transactions", key="card", time="at", id="number")
class Transaction:
    """A payment of the handbook; its label stands in the row."""

    number: int
    card: int
    terminal: int
    amount: hr.Money
    fraud: int
    at: datetime


def declared(name: str, more: bool) -> hr.App:
    """The handbook's fifteen by card and terminal, one chain into the lake; `more`: and fourteen of our own."""
    app = hr.App("handbook", version=name)
    card = app.features("card", key="card", source=app.stream(Transaction, disorder="0 s"), ttl="60 d")
    card = card.over("1 d", "7 d", "30 d", times=hr.count(), spent=hr.sum("amount"))
    source = against_usual(app, card) if more else card.vectors
    terminal = app.features("terminal", key="terminal", source=source, ttl="60 d")
    terminal = terminal.over("1 d", "7 d", "30 d", delay="7 d", uses=hr.count(), frauds=hr.sum("fraud"))
    if more:  # what is wrong with a large amount is seldom the terminal
        terminal = terminal.over("3 d", "28 d", delay="7 d", uses=hr.count())
        terminal = terminal.over("1 d", "3 d", "7 d", "28 d", delay="7 d", small=hr.sum("if(amount > 220, 0, fraud)"))
    columns = ", ".join(f"{text} as {column}" for column, text in (FIFTEEN | MORE if more else FIFTEEN).items())
    terminal.vectors.select(f"number, {columns}").to(hr.lake(name))
    return app


def against_usual(app: hr.App, card: Any) -> hr.Stream:
    """The amount against what the card paid in 30 days, itself aside; how often one was three times as much."""
    known = card.over("30 d", squares=hr.sum("amount * amount")).vectors.select(
        "*, cast(spent_30d - amount as float) / nullif(times_30d - 1, 0) as usual, "
        "cast(squares_30d - amount * amount as float) / nullif(times_30d - 1, 0) as square"
    )
    measured = known.select(
        "*, cast(amount as float) / nullif(usual, 0) as ratio, "
        "(cast(amount as float) - usual) / nullif(sqrt(square - usual * usual), 0) as z"
    )
    large = app.features("large", key="card", source=measured, ttl="60 d")
    return large.over("3 d", "7 d", "14 d", large=hr.sum("if(ratio > 3, 1, 0)")).vectors


@dataclass(frozen=True, slots=True)
class Data:
    """The payments in order of time and number, in columns. `at` in seconds."""

    number: Any
    card: Any
    terminal: Any
    cents: Any
    fraud: Any
    at: Any

    @property
    def day(self) -> Any:
        return self.at // DAY - FIRST_DAY.astype(int)


def read(folder: Path, rows: int | None) -> Data:
    table = parquet.read_table(folder / "transactions.parquet").slice(0, rows)
    of: Any = lambda name: table[name].to_numpy()  # noqa: E731
    return Data(
        of("TRANSACTION_ID").astype(np.int64),
        of("CUSTOMER_ID").astype(np.int64),
        of("TERMINAL_ID").astype(np.int64),
        np.rint(of("TX_AMOUNT") * 100).astype(np.int64),
        of("TX_FRAUD").astype(np.int64),
        of("TX_DATETIME").astype("datetime64[s]").astype(np.int64),
    )


def records(data: Data) -> Iterator[tuple[str, str, int]]:
    times = np.datetime_as_string(data.at.astype("datetime64[s]"))
    columns = (data.number, data.card, data.terminal, data.cents, data.fraud, data.at, times)
    for number, card, terminal, cents, fraud, at, time in zip(*(c.tolist() for c in columns), strict=True):
        amount = f"{cents // 100}.{cents % 100:02}"
        who = f'"number":{number},"card":{card},"terminal":{terminal}'
        value = f'{{{who},"amount":"{amount}","fraud":{fraud},"at":"{time}Z"}}'
        yield str(card), value, at * 1000


def run(broker: Broker, settings: Settings, name: str, more: bool) -> None:
    read_through(declared(name, more), broker, settings)


def over(data: Data, key: Any, values: Any, days: int, delay: int = 0) -> tuple[Any, Any]:
    """Sum and count over (t - delay - days, t - delay] for every row, by prefix sums over rows sorted by key."""
    order = np.lexsort((data.number, data.at, key))
    k, at = key[order], data.at[order]
    total = np.concatenate([[0], np.cumsum(values[order])])
    places = k * (1 << 33) + at  # keys apart by more than all time
    begin = np.searchsorted(k, k)
    end = np.arange(1, len(k) + 1) if not delay else np.searchsorted(places, places - delay * DAY, side="right")
    end = np.maximum(end, begin)
    first = np.clip(np.searchsorted(places, places - (delay + days) * DAY, side="right"), begin, end)
    sums, counts = np.empty_like(end), np.empty_like(end)
    sums[order], counts[order] = total[end] - total[first], end - first
    return sums, counts


def batch(data: Data) -> dict[str, Any]:
    """The handbook's own fifteen, as they must be: the same integers divided, so to the last bit."""
    found = {"amount": data.cents / 100, "weekend": (data.at // DAY + 3) % 7 >= 5, "night": data.at % DAY // 3600 <= 6}
    for days in DAYS:
        spent, times = over(data, data.card, data.cents, days)
        frauds, uses = over(data, data.terminal, data.fraud, days, DELAY)
        found |= {f"times_{days}d": times, f"mean_{days}d": spent / 100 / times, f"uses_{days}d": uses}
        found[f"risk_{days}d"] = np.divide(frauds, uses, out=np.zeros(len(uses)), where=uses > 0)
    return found


def streamed(home: Path, name: str, numbers: Any) -> dict[str, Any]:
    """The lake's columns in the order of these numbers, as models take them: NaN where there is none."""
    table = DeltaTable(str(home / "lake" / name)).to_pyarrow_table()
    order = np.argsort(table["number"].to_numpy())
    if not np.array_equal(table["number"].to_numpy()[order], numbers):
        raise SystemExit(f"{table.num_rows:,} vectors of {len(numbers):,} payments, or others")
    wanted = FIFTEEN | MORE if name == "more" else FIFTEEN
    return {name: table[name].to_numpy(zero_copy_only=False)[order].astype(float) for name in wanted}


def split(data: Data, first: str) -> tuple[Any, Any]:
    """Rows to train and to test: of each day of the test without cards whose fraud is known on it."""
    start = int((np.datetime64(first) - FIRST_DAY).astype(int))
    train = np.flatnonzero((data.day >= start) & (data.day < start + 7))
    known = set(data.card[train][data.fraud[train] == 1])
    tested = []
    for day in range(7):
        known |= set(data.card[(data.day == start + 6 + day) & (data.fraud == 1)])
        rows = np.flatnonzero(data.day == start + 14 + day)
        tested.append(rows[~np.isin(data.card[rows], list(known))])
    return train, np.concatenate(tested)


def average_precision(fraud: Any, score: Any) -> float:
    order = np.argsort(-score, kind="stable")
    fraud, score = fraud[order], score[order]
    last = np.r_[score[1:] != score[:-1], True]  # rows of one score are one step
    caught, asked = np.cumsum(fraud)[last], np.arange(1, len(fraud) + 1)[last]
    return float(np.sum(np.diff(np.r_[0, caught / fraud.sum()]) * caught / asked))


def card_precision(data: Data, rows: Any, score: Any, most: int = 100) -> float:
    """Of the hundred cards a day that look worst, the share that were; a card once found is not looked at again."""
    shares, known = [], set()
    for day in np.unique(data.day[rows]):
        worst: dict[int, tuple[float, int]] = {}
        today = data.day[rows] == day
        for card, one, fraud in zip(data.card[rows][today], score[today], data.fraud[rows][today], strict=True):
            before = worst.get(card, (0.0, 0))
            worst[card] = (max(before[0], one), max(before[1], fraud))
        asked = sorted((-one, card, fraud) for card, (one, fraud) in worst.items() if card not in known)[:most]
        caught = {card for _, card, fraud in asked if fraud}
        known |= caught
        shares.append(len(caught) / most)
    return float(np.mean(shares))


def judged(data: Data, columns: Any, first: str, settings: dict[str, Any], rounds: int) -> tuple[float, float]:
    """Average precision and card precision of a fold."""
    train, test = split(data, first)
    model = lightgbm.train(PINNED | settings, lightgbm.Dataset(columns[train], data.fraud[train]), rounds)
    score = model.predict(columns[test])
    return average_precision(data.fraud[test], score), card_precision(data, test, score)


def protocol(data: Data, features: dict[str, Any]) -> tuple[float, float, str]:
    """Average precision, the mean over the test folds, and card precision of the first, where it cannot be more than
    0.397; with the settings that were best on the validation folds, and what was said of them there."""
    columns = np.stack(list(features.values()), axis=1)
    tried = [np.mean([judged(data, columns, first, *one) for first in VALIDATION], axis=0) for one in SETTINGS]
    best = max(range(len(SETTINGS)), key=lambda number: tried[number][0])
    found = [judged(data, columns, first, *SETTINGS[best]) for first in TEST]
    said = f"settings {best + 1}, {tried[best][0]:.3f} on validation; folds {' '.join(f'{ap:.3f}' for ap, _ in found)}"
    return float(np.mean([ap for ap, _ in found])), found[0][1], said


def equal(told: dict[str, Any], wanted: dict[str, Any]) -> Iterator[Line]:
    """Each column of the stream beside batch."""
    for name, right in wanted.items():
        wrong = int(np.count_nonzero(told[name] != right))  # what is missing is NaN: unequal to all
        allowed = TIES if name.startswith(("times", "mean")) else 0
        yield Line(what=f"{name} equal to batch", figure=f"{wrong} differ", target=f"{allowed}", met=wrong <= allowed)


def counted(data: Data) -> Iterator[Line]:
    """The first fold, as the handbook counts it."""
    for what, rows, right in zip(("train", "test"), split(data, TEST[0]), COUNTS, strict=True):
        found = len(rows), int(data.fraud[rows].sum())
        show = ["{:,} / {:,}".format(*both) for both in (found, right)]
        yield Line(what=f"first fold, {what}: rows / frauds", figure=show[0], target=show[1], met=found == right)


def learned(data: Data, name: str, features: dict[str, Any], aim: float, cards_aim: float | None) -> Iterator[Line]:
    precision, cards, said = protocol(data, features)
    yield Line(what=f"{name}: average precision", figure=f"{precision:.3f}", target=f"{aim:.3f}", met=precision >= aim,
               beside=said)  # fmt: skip
    target, met = ("", None) if cards_aim is None else (f"{cards_aim:.3f}", cards >= cards_aim)
    yield Line(what=f"{name}: card precision at 100", figure=f"{cards:.3f}", target=target, met=met)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--rows", type=int, help="only the first so many payments; then no models")
    asked.add_argument("--only-stream", action="store_true", help="no models")
    given = asked.parse_args()
    data = read(given.folder, given.rows)
    with payments.log() as (settings, broker), spark.ours(settings) as ours:
        topics.ensure(broker, Topic(name="transactions", partitions=payments.PARTITIONS))
        payments.send(broker, "transactions", records(data))
        spent = ours.run(run, broker, settings, "fifteen", False)
        told = streamed(settings.home, "fifteen", data.number)
        ours.run(run, broker, settings, "more", True)
        more = streamed(settings.home, "more", data.number)
    count = len(data.number)
    table = Table(f"handbook: {count:,} payments, {data.fraud.sum():,} frauds")
    table.add(Line(what="backfill of the 15, Kafka to lake", figure=f"{spent.clock:.0f} s", target="60 s",
                   met=spent.clock <= 60 if given.rows is None else None,
                   beside=f"{count / spent.clock:,.0f} payments/s, {spent.cpu:.0f} s of CPU"))  # fmt: skip
    lines = equal(told, batch(data))
    if given.rows is None and not given.only_stream:
        fifteen = learned(data, "15 features", told, 0.68, None)
        lines = chain(lines, counted(data), fifteen, learned(data, "stream's", more, 0.7, 0.3))
    missed = []
    for line in lines:
        table.add(line)
        missed += [line.what] * (line.met is False)
    if missed:  # none of these depend on how busy the machine is
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
