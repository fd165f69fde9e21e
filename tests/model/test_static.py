"""Static tables as declared: rows of a list and of files, and every mistake told where it stands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import BadApp, DataError, DeclarationError
from headrace.model.static import LIMIT
from tests.reference.ads import Click, User


@hr.event(key="code")
class Country:
    code: str
    region: str | None
    tax: hr.Money
    members: int = 0
    since: datetime | None = None
    tags: list[str] | None = None


@hr.event(key="city, floor")
class OpeningHour:
    city: str
    floor: int


SWISS = Country("CH", "Europe", hr.money("8.1"), 26, datetime(1848, 9, 12, tzinfo=UTC), ["alps", "é"])
SOUTH = Country("AQ", None, hr.money("0"))


@pytest.fixture
def app() -> hr.App:
    return hr.App("shop")


def test_rows_stand_in_the_order_of_their_keys(app: hr.App) -> None:
    assert app.static(Country, [SWISS, SOUTH]).rows == app.static(Country, (SOUTH, SWISS)).rows == (SOUTH, SWISS)


def test_its_name_is_that_of_its_class_unless_another_is_said(app: hr.App) -> None:
    hours = app.static(OpeningHour, [])

    assert (hours.called, app.static(Country, [], name="big-lands").called) == ("opening_hour", "big_lands")
    assert repr(hours) == "<static table of city, floor by city, floor: 0 rows>"


CSV = """\ufeffcode,region,tax,members,since,tags
CH,Europe,8.1,26,1848-09-12T00:00:00Z,"[""alps"", ""é""]"

AQ,,0,0,,
"""
JSONL = """
{"code":"CH", "region":"Europe", "tax":"8.10", "members":26, "since":"1848-09-12T01:00:00+01:00", "tags":["alps", "é"]}
{"code": "AQ", "region": null, "tax": 0}
"""


@pytest.mark.parametrize(("name", "text"), [("countries.csv", CSV), ("countries.jsonl", JSONL)])
def test_rows_of_a_file_are_typed_by_the_event(app: hr.App, tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")

    assert app.static(Country, file).rows == app.static(Country, str(file)).rows == (SOUTH, SWISS)


@pytest.mark.parametrize(
    ("name", "text", "line", "what"),
    [
        ("a.csv", "code,region,tax\nCH,Europe\n", 2, "the line has 2 cells"),
        ("a.csv", "code,region,tax\nCH,Europe,much\n", 2, "Country.tax"),
        ("a.csv", "code,region,tax\n\nCH,Europe,1.234\n", 3, "more than two digits"),
        ("a.csv", "code,region,tax,members\nCH,Europe,1,many\n", 2, "Country.members: expected `int`, got `str`"),
        ("a.csv", "code,region,tax,since\nCH,Europe,1,1848-09-12T00:00:00\n", 2, "Country.since"),
        ("a.csv", "code,regions,tax\nCH,Europe,1\n", 2, "Country has no field 'regions'"),
        ("a.csv", "code,region\nCH,Europe\n", 2, "Country needs the field 'tax'"),
        ("a.csv", 'code,region,tax\nAQ,,1\nCH,"Europe,1\nFR,Europe,1\n', 3, "is no CSV"),
        ("a.csv", "code,region,tax\nCH,Europe,1\nCH,Africa,1\n", 3, "two rows of Country have the key CH"),
        ("a.jsonl", '\n{"code": "CH"\n', 2, "the line is no JSON"),
        ("a.jsonl", "[1]\n", 1, "the line is no JSON object"),
        ("a.jsonl", '{"code": "CH", "region": 7, "tax": 1}\n', 1, "Country.region: expected `str | null`, got `int`"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line(
    app: hr.App, tmp_path: Path, name: str, text: str, line: int, what: str
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")

    with pytest.raises((DataError, BadApp)) as refused:
        app.static(Country, file)

    assert what in refused.value.what
    assert refused.value.where is not None
    assert (refused.value.where.file, refused.value.where.line) == (str(file), line)


def mistakes() -> dict[str, tuple[Callable[[hr.App], Any], str]]:
    @hr.event
    class Keyless:
        name: str

    def enriched(**how: Any) -> Callable[[hr.App], Any]:
        return lambda app: app.stream(Click, disorder="0 s").enrich(
            app.static(Country, [SWISS]), **({"on": "clicks.ad_id = country.code"} | how)
        )

    many = (Country(str(n), None, hr.money(0)) for n in range(LIMIT + 1))
    return {
        "no key": (lambda app: app.static(Keyless, []), "Keyless has no key"),
        "no event": (lambda app: app.static(str, []), "str is no event"),
        "too many rows": (lambda app: app.static(Country, many), "more than 10,000 rows of Country"),
        "two rows of a key": (lambda app: app.static(Country, [SWISS, SOUTH, SWISS]), "have the key CH"),
        "a row of another event": (lambda app: app.static(Country, [SWISS, ("CH", "Europe")]), "row 2 is no Country"),
        "no rows": (lambda app: app.static(Country, 7), "7 is no list of rows"),
        "no call": (lambda app: app.static(Country), "missing a required argument: 'rows'"),
        "a time to live": (lambda app: app.static(Country, [SWISS], ttl="1 d"), "unexpected keyword argument 'ttl'"),
        "a file that is not there": (lambda app: app.static(Country, "nowhere.csv"), "nowhere.csv cannot be read"),
        "a file of another kind": (lambda app: app.static(Country, "rows.xls"), "rows.xls is no file of rows"),
        "as of a time": (enriched(as_of="at"), "country is static"),
        "a wait": (enriched(wait="0 s"), "wait without as_of"),
        "not its key": (enriched(on="clicks.ad_id = country.region"), "country is not asked by its key"),
        "a key of another type": (
            lambda app: app.stream(Click, disorder="0 s").enrich(
                app.static(OpeningHour, []), on="clicks.ad_id = opening_hour.city and clicks.at = opening_hour.floor"
            ),
            "is time, floor of opening_hour is int",
        ),
        "another app": (
            lambda app: app.stream(Click, disorder="0 s").enrich(hr.App("other").static(Country, []), on="code"),
            "belongs to App('shop')",
        ),
        "a join": (
            lambda app: app.stream(Click, disorder="0 s").join(app.static(Country, []), on="code", within="1 s"),
            "country is a table",
        ),
        "a view": (lambda app: app.table(User).join(app.static(Country, []), on="code"), "country is static"),
        "its rows as a stream": (lambda app: app.static(Country, []).where("tax > 0"), "a static table has no .where"),
    }


@pytest.mark.parametrize("mistake", mistakes())
def test_a_mistake_is_refused_at_the_users_line(app: hr.App, mistake: str) -> None:
    declare, what = mistakes()[mistake]

    with pytest.raises(DeclarationError) as refused:
        declare(app)

    assert what in refused.value.what
    assert refused.value.where is not None
    assert refused.value.where.file.endswith("test_static.py")
