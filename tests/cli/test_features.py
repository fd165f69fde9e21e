"""`headrace features`: what an app's features are, what they say of a key, and whether logged ones are right."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import headrace as hr
from headrace.base.ids import random_id
from headrace.base.settings import Settings
from headrace.ops import apps
from headrace.stack import stack as embedded
from tests.cli.conftest import Headrace
from tests.features.keeping import fill

APP = """
from datetime import datetime

import headrace as hr


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: hr.Money
    at: datetime


bank = hr.App("bank")
payments = bank.stream(Payment, disorder="30 s")
payments.to(hr.lake("payments"))
card = (
    bank.features("card", key="card_id", source=payments, ttl="30 d")
    .over("1 h", spent=hr.sum("amount"), times=hr.count())
    .over("7 d", delay="1 d", before=hr.count())
    .over("1 d", tiles=True, times=hr.count())
    .last("at")
)
card.to(hr.redis("{prefix}:{{card_id}}"))
card.vectors.to(hr.lake("decision_log"))
"""


@pytest.fixture
def bank(headrace: Headrace, settings: Settings, tmp_path: Path) -> Headrace:
    """The command in the directory of a bank that has run: three payments of a card, one logged wrongly."""
    url = embedded.up(settings.home, settings.cache, parts=("redis",), foreground=True).redis
    module = f"bank_{random_id()[:12]}"
    (tmp_path / f"{module}.py").write_text(APP.format(prefix=module))
    (tmp_path / "headrace.toml").write_text(f'[apps]\nbank = "{module}"\n')
    app = apps.find(module, settings)
    payment = app.events[0].cls
    with hr.testing.run(app) as t:
        for number in range(3):
            at = t.time("10:00") + timedelta(minutes=20 * number)
            t.send(payment(f"p{number}", "c17", hr.money(number + 1), at))
        fill(app, t, url, tmp_path / "lake")
    return lambda *arguments, **options: headrace("--set", f"lake.path={tmp_path / 'lake'}", *arguments, **options)


def test_the_features_of_an_app_are_shown(bank: Headrace) -> None:
    (row,) = bank("features", "show", "bank", "--json").json
    assert row["online"].startswith("redis:bank_")
    assert row | {"online": ""} == {
        "features": "card", "key": "card_id", "columns": 5, "ttl": 2_592_000.0, "online": "", "lake": "lake.payments",
    }  # fmt: skip
    assert bank("features", "show", "bank", "card").out.splitlines() == [
        "feature    type            what",
        "spent_1h   decimal(28, 2)  sum(amount) over 1 h",
        "times_1h   int             count() over 1 h",
        "before_7d  int             count() over 7 d until 1 d ago",
        "times_1d   int             count() over 1 d in tiles of 1 h",
        "last_at    time            at of the row before",
    ]
    said = bank("features", "show", "bank", "cart")
    assert (said.code, "did you mean 'card'?" in said.err) == (2, True)


def test_the_features_of_a_key_are_told_as_of_a_time(bank: Headrace) -> None:
    assert bank("features", "get", "bank", "card", "card_id=c17", "--at", "2026-11-03T10:59Z", "--json").json == {
        "spent_1h": "6.00", "times_1h": 3, "before_7d": 0, "times_1d": 3, "last_at": "2026-11-03T10:40:00.000000Z",
    }  # fmt: skip
    told = bank("features", "get", "bank", "card", "card_id=c17", "--at", "2026-11-03T11:00Z")
    assert told.out.splitlines()[:2] == ["spent_1h   5.00", "times_1h   2"]
    assert bank("features", "get", "bank", "card", "card_id=other", "--json").json["times_1h"] == 0
    assert bank("features", "get", "bank", "card", "card=c17").code == 2


def test_another_app_of_the_project_may_keep_the_rows(bank: Headrace, tmp_path: Path) -> None:
    """One that decides in real time writes no store itself."""
    (text,) = (file.read_text() for file in tmp_path.glob("bank_*.py"))
    kept = ("payments.to(", "card.to(", "card.vectors.to(")
    lines = [line for line in text.splitlines() if not line.startswith(kept)]
    name = f"decide_{random_id()[:12]}"
    (tmp_path / f"{name}.py").write_text("\n".join([*lines, 'card.vectors.to(bank.topic("vectors"))']))
    with (tmp_path / "headrace.toml").open("a") as file:
        file.write(f'decide = "{name}"\n')
    (row,) = bank("features", "show", "decide", "--json").json
    assert (row["online"][:11], row["lake"]) == ("redis:bank_", "lake.payments")
    told = bank("features", "get", "decide", "card", "card_id=c17", "--at", "2026-11-03T10:59Z", "--json").json
    assert told["times_1h"] == 3
    assert bank("features", "check", "decide", "card", "--table", "decision_log", "--json").json["exact"]


def test_logged_vectors_are_checked(bank: Headrace) -> None:
    said = bank("features", "check", "bank", "card", "--table", "lake.decision_log")
    assert said.out.splitlines()[:2] == ["feature    rows  equal  match", "spent_1h      3      3  100.0000%"]
    assert said.err == ""
    told = bank("features", "check", "bank", "card", "--table", "decision_log", "--json").json
    assert (told["rows"], told["missing"], told["exact"], len(told["features"])) == (3, 0, True, 5)
    assert bank("features", "check", "bank", "card", "--table", "nothing").code == 1


def test_a_vector_that_is_not_what_the_lake_gives_is_shown(bank: Headrace, tmp_path: Path) -> None:
    table = str(tmp_path / "lake" / "decision_log")
    rows = DeltaTable(table).to_pyarrow_table()
    place, (_, *others) = rows.schema.get_field_index("times_1h"), rows["times_1h"].to_pylist()
    write_deltalake(table, rows.set_column(place, rows.field(place), pa.array([9, *others])), mode="overwrite")
    check = ("features", "check", "bank", "card", "--table", "decision_log")
    said = bank(*check)
    assert (said.code, "times_1h was 9, and is " in said.err) == (1, True)
    assert bank(*check, "--json").code == 1
    assert bank(*check, "--at-least", "66").code == 0


def test_the_logged_rows_themselves_may_be_the_source(bank: Headrace, tmp_path: Path) -> None:
    """Where the bank keeps no payments by themselves."""
    (text,) = (file for file in tmp_path.glob("bank_*.py"))
    name = f"log_{random_id()[:12]}"
    (tmp_path / f"{name}.py").write_text(text.read_text().replace('payments.to(hr.lake("payments"))', ""))
    (tmp_path / "headrace.toml").write_text(f'[apps]\nlog = "{name}"\n')
    check = ("features", "check", "log", "card", "--table", "decision_log")
    assert "the lake does not keep the rows of payments" in bank(*check).err
    told = bank(*check, "--source", "decision_log", "--json").json
    assert (told["rows"], told["missing"], told["exact"]) == (3, 0, True)
