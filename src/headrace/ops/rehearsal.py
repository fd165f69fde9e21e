"""The rehearsal: most kinds of steps at work once, over a broker of their own, before the first real start.

Java learns from it which classes drivers load, and which of their methods are busy and how, and keeps that
(spark/archive.py): later ones compile these while they start, not while payments wait.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from random import Random

import headrace as hr
from headrace.base.errors import HeadraceError
from headrace.base.settings import Settings, load
from headrace.log import topics
from headrace.ops import endpoints
from headrace.ops.run import AppRun, run
from headrace.ops.tied import tie
from headrace.plan.modes import Mode
from headrace.spark.session import Spark, begin
from headrace.stack import stack
from headrace.stack.java import plain

PATIENCE, GRACE = 600.0, 30.0
CARDS, SHOPS = 2_000, 100


@dataclass(frozen=True, slots=True)
class Act:
    """So many payments lie on the log when it begins; so many come one by one after that, at this rate a second."""

    mode: Mode
    interval: str  # short, so that the next one is planned several times
    out: str
    at_once: int
    singly: int
    rate: int


SWIFT = Act("realtime", "12 s", "decided", 6_000, 8_000, 400)
STEADY = Act("live", "0 s", "kept", 6_000, 1_000, 150)


@hr.event(topic="payments", key="card", time="at", id="id")
class Payment:
    """Made up."""

    id: str
    card: str
    owner: str
    shop: str
    amount: hr.Money
    lat: float
    lon: float
    right: bool
    at: datetime


@hr.event(topic="owners", key="owner", time="at")
class Owner:
    """Made up."""

    owner: str
    home: str
    at: datetime


def swift() -> hr.App:
    """What runs in real time: features, patterns, a table, a decision."""
    app = hr.App("swift")
    payments, owners = app.stream(Payment, disorder="10 s"), app.table(Owner)
    card = (
        app.features("card", key="card", source=payments, ttl="30 d", once="id")
        .over("1 h", "1 d", "30 d", spent=hr.sum("amount"), times=hr.count())
        .last("at", "lat", "lon")
        .seen()
    )
    guessed = (
        app.pattern("guessed", key="card", select="paid.owner, card, paid.id, paid.at")
        .first("miss", card.vectors.where("not right"))
        .times(2)
        .then("paid", card.vectors.where("right"))
        .within("5 min")
    )
    travel = (
        app.pattern("travel", key="card", select="there.owner, card, there.id, there.at")
        .first("here", card.vectors)
        .next("there", where="distance_km(here.lat, here.lon, there.lat, there.lon) > 9000")
        .within("1 d")
    )
    owner = (
        app.features("owner", key="owner", source=card.vectors, ttl="30 d")
        .over("7 d", of=guessed.matches.union(travel.matches).named("acts"), acts=hr.count())
        .seen()
    )
    known = owner.vectors.enrich(owners, on="owner", take="owner.*, owners.home, owners.at as since_when")
    shop = (
        app.features("shop", key="shop", source=known, ttl="30 d")
        .over("1 h", uses=hr.count(), cards=hr.distinct("card"))
        .seen()
    )
    vectors = shop.vectors.select(
        "*, seconds_between(last_at, at) as since, distance_km(last_lat, last_lon, lat, lon) as km, "
        "cast(spent_30d - amount as float) / nullif(times_30d - 1, 0) as usual"
    )
    vectors.decide("rules").to(app.topic("decided"), key="id")
    card.duplicates.to(app.topic("twice"))
    return app


def steady() -> hr.App:
    """What runs live: windows, a join, features that are kept, the lake."""
    app = hr.App("steady")
    payments, owners = app.stream(Payment, disorder="10 s"), app.table(Owner)
    first = payments.dedup("id", within="1 d").named("first")
    first.to(app.topic("kept"), key="id")
    first.to(hr.lake("kept", partition="day(at)"))
    first.enrich(owners, on="owner", take="first.id, first.card, owners.home, first.at").to(app.topic("homes"))
    for window in (hr.tumbling("1 min"), hr.hopping("1 h", every="5 min"), hr.session(gap="30 s")):
        spent = payments.key_by("card").window(window, lateness="10 s").agg(spent=hr.sum("amount"), times=hr.count())
        spent.to(app.topic("windows"))
    good, bad = payments.where("right").named("good"), payments.where("not right").named("bad")
    good.join(bad, on="card", within="1 min", take="good.id, bad.id as before").to(app.topic("pairs"))
    return app


RULES = hr.Policy(
    rules=(
        hr.Rule(name="wrong", when="not right", action="decline", final=True),
        hr.Rule(name="far", when="km > 100 and km * 3600 / greatest(since, 1.0) > 900", action="decline"),
        hr.Rule(name="much", when="times_30d > 5 and cast(amount as float) > 8 * usual", action="review"),
        hr.Rule(name="known", when="acts_7d > 0 or uses_1h > 1000", action="review"),
    )
)


def rehearse(settings: Settings, learned: Path) -> str:
    """What Java learned is in the file then; else the reason why not. In a process of its own: a process has one Spark,
    and whoever asks for this may want another. It ends with us, in order: its stdin is a pipe that only we hold."""
    with tempfile.TemporaryDirectory(prefix="headrace-rehearsal-", ignore_cleanup_errors=True) as home:
        said = Path(home, "said")
        words = [sys.executable, "-m", __name__, home, str(settings.cache), str(learned)]
        with said.open("wb") as out:
            child = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True, env=plain()
            )
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return f"it did not end within {PATIENCE:.0f} s"
        finally:
            _end(child)
        told = said.read_text(errors="replace").strip().rpartition("\n")[2]
    return "" if child.returncode == 0 else told or f"it ended with {child.returncode}"


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _perform(home: str, cache: str, learned: str) -> None:
    Path(home, "headrace.toml").touch()  # or that of a folder above would be read
    settings = load({"home": home, "cache": cache}, root=Path(home), env={})
    with ExitStack() as undo:
        coming = begin(settings, profile="realtime", app_name="rehearsal", learned=Path(learned))
        undo.callback(coming.give_up)
        undo.callback(stack.down, settings.home)
        stack.up(settings.home, settings.cache, parts=("kafka",), patience=timedelta(seconds=9), foreground=True)
        spark = undo.enter_context(coming.ready())
        made = _payments(datetime.now(UTC) - timedelta(days=1))
        _act(swift(), SWIFT, settings, spark, made, 0)
        _act(steady(), STEADY, settings, spark, made, SWIFT.at_once + SWIFT.singly)
        spark.stop(patience=PATIENCE)  # what Java has learned it writes when it ends


def _act(app: hr.App, act: Act, settings: Settings, spark: Spark, made: Iterator[Payment], before: int) -> None:
    """Until as many records have come out as payments went in, also `before` it: it reads from the beginning."""
    with hr.connect(app, settings) as client:
        client.send(*(Owner(f"owner-{n}", "BE", datetime.now(UTC)) for n in range(CARDS)))
        if act is SWIFT:
            client.policy("rules").publish(RULES)
        client.send(*islice(made, act.at_once))
        with run(app, settings, mode=act.mode, interval=act.interval, spark=spark) as running:
            _until(running, settings, act.out, before + act.at_once)
            with client.producer(Payment) as sending:
                for payment in islice(made, act.singly):
                    sending.send(payment)
                    time.sleep(1 / act.rate)
            _until(running, settings, act.out, before + act.at_once + act.singly)


def _until(running: AppRun, settings: Settings, topic: str, wanted: int) -> None:
    broker = endpoints.broker(settings)
    while topics.describe(broker, topic).records < wanted:
        for flow in running.flows:
            if flow.error:
                raise flow.error
        time.sleep(0.2)


def _payments(at: datetime) -> Iterator[Payment]:
    """Without end, a second apart; one in twenty at the other end of the world, one in five with a wrong PIN."""
    random = Random(1)  # noqa: S311 (made up)
    for number in count():
        card, at = random.randrange(CARDS), at + timedelta(seconds=1)
        yield Payment(
            id=f"payment-{number}",
            card=f"card-{card}",
            owner=f"owner-{card}",
            shop=f"shop-{random.randrange(SHOPS)}",
            amount=hr.money(f"{random.randint(100, 90_000) / 100:.2f}"),
            lat=random.uniform(50, 51),
            lon=random.uniform(4, 5) + (170 if random.random() < 0.05 else 0),
            right=random.random() > 0.2,
            at=at,
        )


if __name__ == "__main__":
    tie()
    try:
        _perform(*sys.argv[1:])
    except HeadraceError as broken:
        sys.exit(" ".join(f"{broken.what}: {broken.why}".split()))  # in a line
