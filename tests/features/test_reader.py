"""Features when they are asked for: online and as of any time they are what the stream told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.base.errors import BadStore, BadTime, StoreUnreachable, TableMissing, UsageError
from headrace.features import history
from headrace.features.reader import FeatureReader
from tests.features.keeping import Keeping, Label, Payment
from tests.properties import DEPTH

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)


@pytest.fixture
def bank(tmp_path: Path, redis_url: str) -> Keeping:
    return Keeping(tmp_path, redis_url)


def features(bank: Keeping, **more: Any) -> Any:
    given: dict[str, Any] = {"key": "card_id", "source": bank.payments, "ttl": "2 h", "lateness": "10 min"}
    return (
        bank.app.features("card", **given | more)
        .over("10 min", "1 h", spent=hr.sum("amount"), times=hr.count(), mean=hr.avg("amount"))
        .over("1 h", delay="30 min", frauds=hr.sum("fraud"), places=hr.distinct("country"))
        .over("30 min", big=hr.max("amount * 2"), rough=hr.avg("cast(amount as float)"))
        .last("at", "country")
        .last("amount", n=2)
        .over("1 h", "2 h", tiles=True, tiled=hr.sum("amount"), tiled_rough=hr.avg("cast(amount as float)"))
    )


def paid(number: int, at: datetime, card: str = "c1", amount: str = "1.00", country: str | None = "CH") -> Any:
    return Payment(f"p{number:04}", card, hr.money(amount), country, number % 2, at)


def of(row: Any, reader: FeatureReader) -> dict[str, Any]:
    """The features of a row that the stream told."""
    return {name: getattr(row, name) for name in reader.get(card_id="nobody", at=NOON)}


def random_payments(seed: int, *, ties: bool) -> list[Any]:
    chance, at, found = Random(seed), NOON, []
    for number in range(60):
        at += timedelta(seconds=chance.choice((0 if ties else 1, 7, 60, 400, 1_800, 8_000 if number % 9 == 0 else 90)))
        amount = f"{chance.randrange(-500, 10_000) / 100:.2f}"
        found.append(paid(number, at, chance.choice(("c1", "c2", "c:3")), amount, chance.choice(("CH", "FR", None))))
    return found


@pytest.mark.parametrize("seed", range(4 * DEPTH))
def test_online_they_are_what_a_row_is_told_at_its_time(bank: Keeping, seed: int) -> None:
    """Windows are those of a row at that very time; the row before is the one that the next row is told of."""
    reader = bank.keep(features(bank))
    vectors = bank.run(random_payments(seed, ties=False))
    newest = {row.card_id: row.at for row in vectors}
    late = [row for row in vectors if row.at >= newest[row.card_id] - timedelta(minutes=10)]  # others' rows may be gone
    for row in late:
        told = of(row, reader)
        now = reader.get(card_id=row.card_id, at=row.at)
        before = reader.get(card_id=row.card_id, at=row.at - INSTANT)
        assert {name: (before if "last" in name else now)[name] for name in told} == told
    assert len(late) > len(newest) == 3


@pytest.mark.parametrize("seed", range(4 * DEPTH))
def test_as_of_they_are_what_the_stream_told_if_rows_came_in_order(bank: Keeping, seed: int) -> None:
    reader = bank.keep(features(bank))
    vectors = bank.run(random_payments(seed, ties=True))
    rows = [{"payment_id": row.payment_id, "card_id": row.card_id, "at": row.at} for row in vectors]
    found = reader.as_of(pa.Table.from_pylist(rows), time="at", id="payment_id").to_pylist()
    names = [name for name in found[0] if name not in rows[0]]
    assert [[row[name] for name in names] for row in found] == [
        [getattr(row, name) for name in names] for row in vectors
    ]


def test_as_of_and_online_agree_at_any_moment(bank: Keeping) -> None:
    reader = bank.keep(features(bank, lateness="10 d"))
    bank.run(random_payments(7, ties=False))
    asked = [
        {"card_id": card, "at": NOON + timedelta(minutes=5 * n)} for n in range(60) for card in ("c1", "c:3", "new")
    ]
    offline = reader.as_of(asked, time="at").drop_columns(["card_id", "at"]).to_pylist()
    assert offline == [reader.get(card_id=row["card_id"], at=row["at"]) for row in asked]


def test_an_event_is_told_before_it_is_there_what_the_stream_tells_it(bank: Keeping) -> None:
    source = bank.payments.where("amount > 2").select("*, amount * 2 as double")
    card = features(bank, source=source, once="payment_id").over("1 h", doubles=hr.sum("double"))
    reader = bank.keep(card)
    events = [paid(n, NOON + timedelta(minutes=3 * n), amount=f"{n}.00") for n in range(9)]
    bank.run(events[:8])
    ahead = reader.tell(events[8])
    assert reader.tell(events[2]) is None  # filtered
    told = {row.payment_id: of(row, reader) for row in bank.run(events)}
    assert ahead == told["p0008"] == reader.tell(events[8])  # also when it is there
    with pytest.raises(UsageError, match="is no Payment"):
        reader.tell(Label("c1", 0, NOON))


def test_the_last_hour_is_right_while_the_card_is_quiet(bank: Keeping) -> None:
    reader = bank.keep(features(bank))
    bank.run([paid(1, NOON, amount="20.00"), paid(2, NOON + timedelta(minutes=30), amount="5.00")])
    at = lambda minutes: reader.get(card_id="c1", at=NOON + timedelta(minutes=minutes))  # noqa: E731
    assert [at(m)["spent_1h"] for m in (31, 59, 60, 90)] == [
        hr.money("25.00"),
        hr.money("25.00"),
        hr.money("5.00"),
        None,
    ]
    assert [at(m)["times_1h"] for m in (31, 60, 90)] == [2, 1, 0]
    assert [at(m)["last_country"] for m in (31, 149, 150)] == ["CH", "CH", None]  # after two hours it begins anew


def test_a_key_that_nothing_is_known_of_has_zero_and_null(bank: Keeping) -> None:
    reader = bank.keep(features(bank))
    bank.run([paid(1, NOON)])
    for told in (reader.get(card_id="nobody"), *reader.get_many([{"card_id": "no"}, {"card_id": "body"}])):
        assert told["times_1h"] == told["places_1h"] == 0
        assert told["spent_1h"] is told["last_at"] is None
        assert told["last_amount"] == []
    assert reader.get_many([]) == []


def test_many_keys_are_one_answer(bank: Keeping) -> None:
    reader = bank.keep(features(bank))
    bank.run([paid(n, NOON + timedelta(seconds=n), f"c{n % 3}") for n in range(9)])
    keys = [{"card_id": f"c{n}"} for n in (2, 0, 1)]
    at = NOON + timedelta(minutes=1)
    assert reader.get_many(keys, at=at) == [reader.get(**key, at=at) for key in keys]
    assert reader.get_many(keys * 40, at=at) == reader.get_many(keys, at=at) * 40


def test_nothing_later_than_the_moment_is_told(bank: Keeping) -> None:
    reader = bank.keep(features(bank))
    bank.run([paid(n, NOON + timedelta(minutes=n), amount=f"{n}.00") for n in range(1, 6)])
    asked = [{"card_id": "c1", "at": NOON + timedelta(minutes=3), "note": "mine"}]
    (row,) = reader.as_of(asked, time="at").to_pylist()
    assert (row["note"], row["spent_1h"], row["last_amount"]) == ("mine", hr.money(6), [hr.money(3), hr.money(2)])
    assert reader.as_of([], time="at").num_rows == 0


def test_a_table_may_have_what_is_written_to_the_topic(bank: Keeping) -> None:
    marks = bank.payments.where("fraud = 1").select("card_id, fraud, at").key_by("card_id")
    marks.to(bank.app.topic("labels"))
    marks.to(hr.lake("marks"))
    other = hr.App("other").stream(Label, disorder="0 s")
    assert history.find(other.node, bank.app.outputs[2:]).table == "marks"
    marks.where("card_id <> 'c1'").to(bank.app.topic("labels"))  # by a way that the table does not know
    with pytest.raises(BadStore, match="does not keep"):
        history.find(other.node, bank.app.outputs[2:])


def test_a_key_may_be_made_of_columns(bank: Keeping) -> None:
    """Then rows are told apart when their key is known, and not before."""
    key = "coalesce(country, '?') as country"
    place = bank.app.features("place", key=key, source=bank.payments, ttl="1 d").over("1 h", times=hr.count())
    place.vectors.to(bank.app.topic("vectors"))
    bank.run([paid(n, NOON + timedelta(minutes=n), country=("CH", None)[n % 2]) for n in range(5)])
    asked = [{"country": country, "at": NOON + timedelta(minutes=9)} for country in ("CH", "?", "FR")]
    assert bank.reader(place).as_of(asked, time="at")["times_1h"].to_pylist() == [3, 2, 0]


def test_the_source_may_be_filtered_and_chosen_on_its_way(bank: Keeping) -> None:
    source = bank.payments.where("amount > 2").select("payment_id, card_id, amount * 2 as double, at")
    card = bank.app.features("card", key="card_id", source=source, ttl="1 d").over("1 h", spent=hr.sum("double"))
    reader = bank.keep(card)
    bank.run([paid(n, NOON + timedelta(minutes=n), amount=f"{n}.00") for n in range(1, 6)])
    (row,) = reader.as_of([{"card_id": "c1", "at": NOON + timedelta(minutes=4)}], time="at").to_pylist()
    assert row["spent_1h"] == hr.money(14) == reader.get(card_id="c1", at=NOON + timedelta(minutes=4))["spent_1h"]


@pytest.mark.parametrize("seed", range(2 * DEPTH))
def test_rows_of_another_stream_and_rows_that_come_twice(bank: Keeping, seed: int) -> None:
    card = features(bank, once="payment_id").over("40 min", of=bank.labels, known=hr.sum("fraud"), n=hr.count()).seen()
    card = card.over("1 h", of=bank.labels, tiles=True, some=hr.count())
    reader = bank.keep(card)
    chance, events = Random(seed), []
    for payment in random_payments(seed, ties=False):
        if chance.random() < 0.4:
            events.append(Label(payment.card_id, chance.randrange(2), payment.at))
        events += [payment] * chance.choice((1, 1, 2))
        if chance.random() < 0.2:  # the same id with other content: the first counts
            events.append(Payment(payment.payment_id, payment.card_id, hr.money(999), "XX", 1, payment.at + INSTANT))
    vectors = bank.run(events)
    assert len(vectors) == 60 < len([event for event in events if isinstance(event, Payment)])

    rows = [{"payment_id": row.payment_id, "card_id": row.card_id, "at": row.at} for row in vectors]
    offline = reader.as_of(rows, time="at", id="payment_id").to_pylist()
    assert [{name: row[name] for name in of(vectors[0], reader)} for row in offline] == [of(r, reader) for r in vectors]
    end = max(row.at for row in vectors)
    asked = [{"card_id": row.card_id, "at": end} for row in vectors]
    now = reader.as_of(asked, time="at").drop_columns(["card_id", "at"]).to_pylist()
    assert now == reader.get_many([{"card_id": row["card_id"]} for row in asked], at=end)
    assert now[:5] == [bank.kit.features(card).get(card_id=row["card_id"], at=end) for row in asked[:5]]
    assert "seen_card" not in now[0]
    assert any(row["n_40min"] for row in now)


def test_logged_vectors_are_compared_feature_by_feature(bank: Keeping) -> None:
    reader = bank.keep(features(bank))
    vectors = bank.run(random_payments(3, ties=False))
    names = list(reader.get(card_id="c1"))
    logged = [{n: getattr(row, n) for n in ("payment_id", "card_id", "at", *names)} for row in vectors]
    checked = reader.check(logged)
    assert (checked.rows, checked.missing, checked.exact) == (60, 0, True)
    assert [match.feature for match in checked.features] == names

    logged[5]["times_1h"] += 1
    logged.append({**logged[0], "payment_id": "not there yet"})
    checked = reader.check(logged)
    assert (checked.rows, checked.missing, checked.exact) == (61, 1, False)
    (wrong,) = (match for match in checked.features if match.equal < match.rows)
    assert (wrong.feature, wrong.rows, wrong.equal, f"{wrong.rate:.3f}") == ("times_1h", 60, 59, "0.983")
    (example,) = wrong.examples
    assert example.row["payment_id"] == logged[5]["payment_id"]
    assert example.logged == example.recomputed + 1


def test_a_table_may_have_the_rows_beside_what_was_told_of_them(bank: Keeping) -> None:
    card = features(bank)
    card.vectors.to(hr.lake("vectors"))
    bank.keep(card)
    bank.run(random_payments(3, ties=False))
    reader = FeatureReader(card.node, (), redis=lambda: bank.redis, lake=bank.folder / "lake")
    with pytest.raises(BadStore, match="lake does not keep the rows of payments"):
        reader.check("lake.vectors")
    checked = reader.check("lake.vectors", source="lake.vectors")
    assert (checked.rows, checked.missing, checked.exact) == (60, 0, True)
    with pytest.raises(BadStore, match=r"lake\.labels has no column"):
        reader.check("lake.vectors", source="labels")


def test_questions_that_make_no_sense_are_refused(bank: Keeping) -> None:
    reader = bank.keep(features(bank))
    bank.run([paid(1, NOON)])
    with pytest.raises(UsageError, match="is asked for by card") as refused:
        reader.get(card="c1")
    assert refused.value.fix == ".get(card_id=...)"
    with pytest.raises(UsageError, match="have no column card_id"):
        reader.as_of([{"at": NOON}], time="at")
    with pytest.raises(BadTime, match="not an instant"):
        reader.as_of([{"card_id": "c1", "at": NOON.replace(tzinfo=None)}], time="at")
    with pytest.raises(BadTime, match="at is null in some rows"):
        reader.as_of([{"card_id": "c1", "at": NOON}, {"card_id": "c1", "at": None}], time="at")
    with pytest.raises(UsageError, match="no feature of card"):
        reader.check([{"payment_id": "p1", "card_id": "c1", "at": NOON}])
    with pytest.raises(TableMissing, match="no table decisions"):
        reader.check("lake.decisions")


def test_where_nothing_is_kept_the_fix_is_told(bank: Keeping) -> None:
    elsewhere = hr.App("other")
    payments = elsewhere.stream(Payment, disorder="0 s")
    card = elsewhere.features("card", key="card_id", source=payments, ttl="1 d").over("1 h", times=hr.count())
    reader = FeatureReader(card.node, elsewhere.outputs, redis=lambda: bank.redis, lake=bank.folder)
    with pytest.raises(BadStore, match="not kept online") as refused:
        reader.get(card_id="c1")
    assert refused.value.fix == '.to(hr.redis("card:{card_id}"))'
    with pytest.raises(BadStore, match="lake does not keep the rows of payments"):
        reader.as_of([{"card_id": "c1", "at": NOON}], time="at")
    bank.keep(features(bank))
    with pytest.raises(BadStore, match="keeps other rows"):
        FeatureReader(card.node, bank.app.outputs, redis=lambda: bank.redis, lake=bank.folder).get(card_id="c1")


def test_a_redis_that_is_away_is_told(bank: Keeping) -> None:
    bank.keep(features(bank))
    node = next(output.remembers for output in bank.app.outputs if output.remembers)
    reader = FeatureReader(node, bank.app.outputs, redis=lambda: "redis://127.0.0.1:1/0", lake=bank.folder)
    with pytest.raises(StoreUnreachable, match="does not answer"):
        reader.get(card_id="c1")
    reader.close()
