"""Feast's Python SDK on a Redis, in an interpreter of its own: filled with vectors, then asked a lap for each line.

    python feast_reader.py CONNECTION KEYS < laps

CONNECTION is what Feast calls it: "localhost:6379,password=...". A line on stdin is how many keys to ask for, one after
the other; the answer is a line of JSON with the seconds of each. Feast keeps vectors as they were computed: the last
hour of a quiet card is that of its last payment.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
from feast import Entity, FeatureStore, FeatureView, Field, FileSource, RepoConfig
from feast.types import Float64, Int64, String, UnixTimestamp, ValueType

FIELDS = {
    **{f"spent_{size}": Float64 for size in ("1h", "1d", "7d", "30d")},
    **{f"times_{size}": Int64 for size in ("1h", "1d", "7d", "30d")},
    "misses_1d": Int64,
    "squares_30d": Int64,
    "last_at": UnixTimestamp,
    "last_lat": Float64,
    "last_lon": Float64,
    "last_country": String,
}


def filled(connection: str, keys: int, folder: Path) -> FeatureStore:
    store = FeatureStore(
        config=RepoConfig(
            project="bench",
            provider="local",
            registry=str(folder / "registry.db"),
            online_store={"type": "redis", "connection_string": connection},
            entity_key_serialization_version=3,
        )
    )
    now = datetime.now(UTC)
    rows = pd.DataFrame({"card_id": [f"c{n}" for n in range(keys)], "at": now})
    for name, kind in FIELDS.items():
        rows[name] = {Float64: 12.5, Int64: 3, String: "CH", UnixTimestamp: now}[kind]
    rows.to_parquet(folder / "rows.parquet")
    card = Entity(name="card", join_keys=["card_id"], value_type=ValueType.STRING)
    view = FeatureView(
        name="card",
        entities=[card],
        ttl=timedelta(days=30),
        schema=[Field(name=name, dtype=kind) for name, kind in FIELDS.items()],
        source=FileSource(path=str(folder / "rows.parquet"), timestamp_field="at"),
    )
    store.apply([card, view])
    store.write_to_online_store("card", rows)
    return store


def main() -> None:
    keys = int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        store = filled(sys.argv[1], keys, Path(folder))
        features = [f"card:{name}" for name in FIELDS]
        chance = random.Random(1)
        print("ready", flush=True)
        for line in sys.stdin:
            took = []
            for _ in range(int(line)):
                key = {"card_id": f"c{chance.randrange(keys)}"}
                start = time.perf_counter()
                found = store.get_online_features(features=features, entity_rows=[key]).to_dict()
                took.append(time.perf_counter() - start)
                assert found["times_1h"] == [3]
            print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
