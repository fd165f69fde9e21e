"""The wheel gives every entry once, in the first batch whose time has reached it, and stays small."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from headrace.spark.session import Spark

DAY = 86_400_000


def turned(spark: Spark, batches: list[dict[str, Any]]) -> list[Any]:
    found: list[Any] = json.loads(spark.jvm.Pure.turned(json.dumps(batches)))
    return found


def test_entries_near_and_far_come_up_in_their_time(spark: Spark) -> None:
    random = Random(3)
    now, slot, waiting = 1_700_000_000_000, 0, []
    batches, expected = [], []
    for _ in range(300):
        add = []
        for _ in range(random.choice((0, 1, 30))):
            slot += 1
            add.append(
                [
                    now
                    + 1
                    + random.choice((random.randint(0, 900), random.randint(0, 90_000), random.randint(0, 9 * DAY))),
                    slot,
                ]
            )
        batches.append({"now": now, "add": add})
        up = sorted(entry for entry in waiting if entry[0] <= now)
        waiting = [entry for entry in waiting if entry[0] > now] + add
        expected.append(up)
        now += random.choice((0, 1, 100, 3_000, 600_000, DAY))
    batches.append({"now": now + 20 * DAY, "add": []})
    expected.append(sorted(waiting))
    told = turned(spark, batches)
    assert [sorted(batch["up"]) for batch in told] == expected
    assert told[-1]["kept"] == 0


def test_nothing_comes_up_before_there_is_a_watermark(spark: Spark) -> None:
    told = turned(spark, [{"now": None, "add": [[-5, 1], [5, 2]]}, {"now": None, "add": []}, {"now": 5, "add": []}])
    assert [batch["up"] for batch in told] == [[], [], [[-5, 1], [5, 2]]]


def test_many_entries_of_one_moment_are_kept_in_parts_and_far_moments_in_few_lists(spark: Spark) -> None:
    same = [[1_000_000, n] for n in range(20_000)]
    told = turned(spark, [{"now": 1, "add": same}, {"now": 1_000_000, "add": []}])
    assert 2 < told[0]["kept"] < 10  # parts of 64 kB and the index
    assert [n for _, n in told[1]["up"]] == list(range(20_000))
    spread = [[n * 997, n] for n in range(1, 50_000)]  # over half a day, one a second
    assert turned(spark, [{"now": 1, "add": spread}])[0]["kept"] < 64 * 4
