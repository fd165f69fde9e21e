"""An app whose features are kept: what the reference writes to its stores is put into a real Redis and a real lake."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

import headrace as hr
from headrace.base.clock import micros
from headrace.base.ids import random_id
from headrace.features.reader import FeatureReader
from headrace.model.features import Features
from headrace.model.target import EVENT_TIME, GONE, ID, FeatureRows, LakeTable, RedisKeys
from headrace.stores import arrow
from headrace.stores.redis import RedisStore
from headrace.stores.redis_sets import RedisSets
from headrace.stores.store import Batch


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: hr.Money
    country: str | None
    fraud: int
    at: datetime


@hr.event(topic="labels", key="card_id", time="at")
class Label:
    card_id: str
    fraud: int
    at: datetime


class Keeping:
    """A bank with one set of features, its stores filled as a flow would."""

    def __init__(self, folder: Path, redis: str) -> None:
        self.folder, self.redis = folder, redis
        self.prefix = f"t{random_id()[:12]}"
        self.app = hr.App("bank")
        self.payments = self.app.stream(Payment, disorder="0 s")
        self.payments.to(hr.lake("payments"))
        self.labels = self.app.stream(Label, disorder="0 s")
        self.labels.to(hr.lake("labels"))
        self.batches = 0

    def keep(self, card: Features) -> FeatureReader:
        """Declares where they are kept, and reads them."""
        card.to(hr.redis(f"{self.prefix}:{{card_id}}"))
        card.vectors.to(self.app.topic("vectors"))
        return self.reader(card)

    def reader(self, card: Features) -> FeatureReader:
        return FeatureReader(card.node, self.app.outputs, redis=lambda: self.redis, lake=self.folder / "lake")

    def run(self, events: list[Any]) -> list[Any]:
        """The vectors that the reference tells of payments, one by one; stores are filled on the way."""
        with hr.testing.run(self.app, now=max(event.at for event in events)) as t:
            for event in events:
                t.send(event)
            fill(self.app, t, self.redis, self.folder / "lake", self.batches)
            self.batches += 1
            self.kit = t
            return list(t.read("vectors"))


def fill(app: hr.App, t: Any, redis: str, lake: Path, batch: int = 0) -> None:
    """Puts into Redis and the lake what a run of the app wrote there."""
    for output in app.outputs:
        if not isinstance(output.target, RedisKeys | LakeTable):
            continue
        label, columns, features = output.target.label, output.of.columns, isinstance(output.target, FeatureRows)
        rows, records = t.read(label), t.records(label)
        made = {f.name: pa.array([getattr(row, f.name) for row in rows], f.type) for f in arrow.fields(columns)}
        if isinstance(output.target, LakeTable):
            write_deltalake(str(lake / output.target.name), pa.table(made), mode="append")
            continue
        made[EVENT_TIME] = pa.array([micros(record.time) for record in records], pa.int64())
        if features:
            made[ID] = pa.array([record.id for record in records], pa.string())
        else:
            needed = [column.name for column in columns if not column.nullable]
            made[GONE] = pa.array([any(row[name] is None for name in needed) for row in rows])
        file = lake.parent / f"{random_id()}.parquet"
        pq.write_table(pa.table(made), file)
        store = (RedisSets if features else RedisStore)(redis, output.target, columns)
        store.open("bank/v1/payments")
        store.commit(Batch(flow="bank/v1/payments/q", number=batch, files=(file,)))
        store.close()
