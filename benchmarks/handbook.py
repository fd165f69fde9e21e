"""Acceptance on the Fraud Detection Handbook's payments: features by the stream, beside batch; models by its protocol.

    python benchmarks/handbook.py FOLDER [--rows N] [--only-stream]

FOLDER holds transactions.parquet, customers.parquet and terminals.parquet of the handbook's simulated set (not part of
this repository). All payments go through Kafka and the features declared here, over history, into the lake. There
they are compared with a batch recomputation in NumPy, row by row; what they learn is measured by the handbook's
protocol: train on 7 days, wait 7 for the labels, test on 7, without the cards known as compromised by then; four times,
a week apart. Settings of the model are picked on four earlier folds, never on these.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
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
VALIDATION = ("2018-07-11", "2018-07-04", "2018-06-27", "2018-06-20")
TEST = ("2018-07-25", "2018-07-18", "2018-07-11", "2018-07-04")
"""First days of training."""
# Amounts over 220.00 are a scenario of their own: with 255 bins no threshold comes near enough to it (0.670 for 0.700).
PINNED = {"objective": "binary", "max_bin": 4095, "seed": 7, "deterministic": True, "force_row_wise": True,
          "num_threads": 2, "verbose": -1}  # fmt: skip
SETTINGS = tuple(
    ({"num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": 20, "feature_fraction": share, "lambda_l2": 0.1,
      "bagging_fraction": 0.7, "bagging_freq": 1}, rounds)
    for leaves, rate, share, rounds in ((15, 0.02, 0.7, 500), (15, 0.02, 0.4, 600), (8, 0.03, 0.5, 600))
)  # fmt: skip


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
    """The handbook's windows per card and terminal, one chain into the lake; `more`: and some of our own."""
    app = hr.App("handbook", version=name)
    transactions = app.stream(Transaction, disorder="0 s").select("*, cast(amount as float) as x")
    card = app.features("card", key="card", source=transactions, ttl="60 d")
    card = card.over("1 d", "7 d", "30 d", times=hr.count(), spent=hr.sum("amount"))
    if more:
        card = card.over("1 h", often=hr.count()).over("30 d", square=hr.avg("x * x")).last("at", "amount")
        card = card.over("28 d", delay="7 d", lost=hr.sum("fraud"))
    terminal = app.features("terminal", key="terminal", source=card.vectors, ttl="60 d")
    terminal = terminal.over("1 d", "7 d", "30 d", delay="7 d", uses=hr.count(), frauds=hr.sum("fraud"))
    if more:
        terminal = terminal.over("3 d", "14 d", "28 d", delay="7 d", uses=hr.count(), frauds=hr.sum("fraud"))
        terminal = terminal.over("1 h", "1 d", "7 d", near=hr.count(), taken=hr.sum("amount"))
    of_day = "*, extract(isodow from at) >= 6 as weekend, extract(hour from at) <= 6 as night"
    since = ", seconds_between(last_at, at) as since" if more else ""
    terminal.vectors.select(of_day + since).to(hr.lake(name))
    return app


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
    """The handbook's own fifteen, but for the amount: as they must be."""
    found = {"weekend": (data.at // DAY + 3) % 7 >= 5, "night": data.at % DAY // 3600 <= 6}
    for days in DAYS:
        found[f"spent_{days}d"], found[f"times_{days}d"] = over(data, data.card, data.cents, days)
        found[f"frauds_{days}d"], found[f"uses_{days}d"] = over(data, data.terminal, data.fraud, days, DELAY)
    return found


def streamed(home: Path, name: str, numbers: Any) -> dict[str, Any]:
    """The lake's vectors by column, in the order of these numbers; money in cents, times in seconds."""
    table = DeltaTable(str(home / "lake" / name)).to_pyarrow_table()
    order = np.argsort(table["number"].to_numpy())
    if not np.array_equal(table["number"].to_numpy()[order], numbers):
        raise SystemExit(f"{table.num_rows:,} vectors of {len(numbers):,} payments, or others")
    found = {}
    for name in table.column_names:
        column = table[name]
        if str(column.type).startswith("decimal"):
            column = column.cast("double")
            found[name] = np.rint(column.to_numpy(zero_copy_only=False)[order] * 100)
        elif not str(column.type).startswith(("timestamp", "string")):
            found[name] = column.to_numpy(zero_copy_only=False)[order]
    return found


def rate(part: Any, whole: Any) -> Any:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def fifteen(data: Data, told: dict[str, Any]) -> dict[str, Any]:
    """The handbook's features from windows: means and shares."""
    found = {"amount": data.cents / 100, "weekend": told["weekend"], "night": told["night"]}
    for days in DAYS:
        found[f"times_{days}d"] = told[f"times_{days}d"]
        found[f"mean_{days}d"] = told[f"spent_{days}d"] / 100 / told[f"times_{days}d"]
        uses = told[f"uses_{days}d"]
        found[f"uses_{days}d"], found[f"risk_{days}d"] = uses, rate(told[f"frauds_{days}d"], uses)
    return found


def stream_features(data: Data, told: dict[str, Any]) -> dict[str, Any]:
    """The fifteen and what else the stream tells."""
    found = fifteen(data, told)
    amount, mean = found["amount"], found["mean_30d"]
    spread = np.sqrt(np.maximum(told["square_30d"] - mean * mean, 0))
    more = {f"frauds_{days}d": np.nan_to_num(told[f"frauds_{days}d"].astype(float)) for days in (3, 14, 28)}
    more |= {f"risk_{days}d": rate(more[f"frauds_{days}d"], told[f"uses_{days}d"]) for days in (3, 14, 28)}
    more |= {f"spent_{days}d": told[f"spent_{days}d"] / 100 for days in DAYS}
    more |= {name: told[name] for name in ("often_1h", "since", "last_amount", "near_1h", "near_1d", "near_7d")}
    return found | more | {
        "against_mean": amount / mean,
        "week_against_month": found["mean_7d"] / mean,
        "day_against_month": found["mean_1d"] / mean,
        "spread": spread,
        "z": rate(amount - mean, spread),
        "lost_28d": np.nan_to_num(told["lost_28d"].astype(float)),
        "taken_7d": told["taken_7d"] / 100 / told["near_7d"],
    }  # fmt: skip


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


def protocol(data: Data, features: dict[str, Any]) -> tuple[float, float]:
    """Average precision, the mean over the test folds, and card precision of the first, where it cannot be more than
    0.397; with the settings that were best on the validation folds."""
    columns = np.stack([np.asarray(f, float) for f in features.values()], axis=1)
    best = max(SETTINGS, key=lambda one: np.mean([judged(data, columns, first, *one)[0] for first in VALIDATION]))
    found = [judged(data, columns, first, *best) for first in TEST]
    return float(np.mean([ap for ap, _ in found])), found[0][1]


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
    wanted = batch(data)
    for name, right in wanted.items():
        found = np.nan_to_num(np.asarray(told[name], float))
        wrong = int(np.count_nonzero(found != right))
        allowed = TIES if name.startswith(("times", "spent")) else 0
        table.add(
            Line(what=f"{name} equal to batch", figure=f"{wrong} differ", target=f"{allowed}", met=wrong <= allowed)
        )
    if given.rows or given.only_stream:
        return
    precision, cards = protocol(data, fifteen(data, told))
    table.add(
        Line(what="15 features: average precision", figure=f"{precision:.3f}", target="0.680", met=precision >= 0.68)
    )
    table.add(Line(what="15 features: card precision at 100", figure=f"{cards:.3f}"))
    precision, cards = protocol(data, stream_features(data, more))
    table.add(Line(what="stream's: average precision", figure=f"{precision:.3f}", target="0.700", met=precision >= 0.7))
    table.add(Line(what="stream's: card precision at 100", figure=f"{cards:.3f}", target="0.300", met=cards >= 0.3))


if __name__ == "__main__":
    main()
