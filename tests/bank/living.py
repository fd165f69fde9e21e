"""The bank on Spark, lived through once for all that is asked of it: days of payments, half of them one by one, then
some over HTTP with card numbers planted beside them."""

from __future__ import annotations

import heapq
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import headrace as hr
from bank import people
from bank.decide import decide, vectors
from bank.decided import Decided
from bank.events import Act, Label, Payment
from bank.policy import policy
from bank.record import card, customers, record
from bank.tokens import token
from bank.traffic import Made, Traffic
from headrace.base.clock import EPOCH, rfc3339
from headrace.base.settings import Settings
from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.ops.run import run
from headrace.spark.session import Spark
from tests.serve.asking import Answer, Caller, write_bytes
from tests.spark.flowing import short_batches, until

ROOT = Path(__file__).parents[2]
DAYS = 3
KNOWN_AFTER = timedelta(hours=6)
PAST = 500
"""So many payments are on the log before the twins begin; those after them come as in life."""
AGAIN = 5
"""So many of the last payments of the past are sent twice."""
HALL = "market-hall"
"""The terminal of all that is paid over HTTP, and of nothing else: what has its name has seen these payments."""
WRONG: dict[str, dict[str, Any]] = {
    "no id": {"payment_id": ""},
    "a long id": {"payment_id": "p" * 101},
    "no terminal": {"terminal_id": ""},
    "no country": {"country": "Switzerland"},
    "less than nothing": {"amount": "-1.00"},
    "nothing": {"amount": "0"},
    "a million": {"amount": "1000000.00"},
    "an hour ahead": {"at": rfc3339(datetime.now(UTC) + timedelta(hours=1))},
    "last week": {"at": rfc3339(datetime.now(UTC) - timedelta(days=7))},
    "beyond the pole": {"lat": 90.5},
    "half a place": {"lon": None},
    "eight digits": {"last4": "12345678"},
    "letters": {"last4": "12a4"},
    "nobody's": {"customer_id": "customer-nobody"},
}
"""What the bank's own service refuses."""
TORN = b'{"payment_id": "torn", "terminal_id": "market-hall"'
"""A record that is no payment."""


@dataclass(slots=True, kw_only=True)
class Life:
    """What happened, and how to ask about it."""

    home: Settings
    folder: Path
    client: Any
    start: datetime
    made: list[Made]
    labels: list[Label]
    numbers: dict[str, str]
    """Card numbers by where they were: at the terminals of the traffic, and where they were planted."""
    refused: dict[str, Answer] = field(default_factory=dict)
    """Whatever was wrong with them; most have a card number where it should not be."""
    reviewed: dict[str, Any] = field(default_factory=dict)
    """A payment that waited for a person, and what was said of it."""
    paid: dict[str, Answer] = field(default_factory=dict)
    """Over HTTP, by their payments."""
    plans: list[str] = field(default_factory=list)
    """Of each twin, as Spark ran it."""

    @property
    def ids(self) -> list[str]:
        """Of all payments that the flow had to decide on."""
        return [*(one.payment.payment_id for one in self.made), *(id for id in self.paid if id != "late")]

    def told(self) -> dict[str, list[Decided]]:
        """What the twins said of each payment."""
        found = defaultdict(list)
        for one in self.client.read(Decided):
            found[one.event.payment_id].append(one.event)
        return found


@contextmanager
def lived(spark: Spark, broker: Broker, home: Settings, mine: dict[str, str]) -> Iterator[Life]:
    """`mine`: the settings that make the home."""
    numbers: dict[str, str] = {}
    start = datetime.now(UTC) - timedelta(days=DAYS)
    people.token = lambda number, secret: token(numbers.setdefault(f"terminal {len(numbers)}", number), secret)
    try:
        traffic = Traffic(3, cards=160, shops=60, harm=20)
    finally:
        people.token = token
    made = list(traffic.history(start, DAYS))
    known = [one for one in made if one.fraud and one.payment.at < datetime.now(UTC) - KNOWN_AFTER]
    labels = [one.label(one.payment.at + KNOWN_AFTER) for one in known]
    with hr.connect(decide, home) as client, hr.connect(record, home), serving(mine, home) as caller:
        life = Life(home=home, folder=home.home.parent, client=client, start=start, made=made, labels=labels,
                    numbers=numbers)  # fmt: skip
        client.send(*traffic.customers(start), *traffic.given_out(start))
        client.policy("fraud").publish(policy())
        turn = made[PAST].payment.at
        events = list(heapq.merge((one.payment for one in made), labels, key=lambda event: event.at))
        client.send(
            *(event for event in events if event.at < turn), *(one.payment for one in made[PAST - AGAIN : PAST])
        )
        write_bytes(broker, "payments", TORN)
        with (
            closing(Answers(broker)) as answers,
            short_batches(spark),
            run(decide, home, mode="realtime", twins=2, interval="3 s", spark=spark) as twins,
        ):
            answers.wait(life.ids[:PAST])
            _one_by_one(client, (event for event in events if event.at >= turn), answers)
            answers.wait(life.ids)
            _plant(caller, life)
            answers.wait(life.ids)
            _safe([flow.job.checkpoint.spark / "commits" for flow in twins.flows])
            for query in spark.session.streams.active:
                life.plans.append(query._jsq.streamingQuery().lastExecution().executedPlan().toString())
        with run(record, home, spark=spark):
            life.paid["late"] = caller.decide(_asked(life, "late"))  # nobody decides any more
            until(lambda: _rows(client, "decisions") >= len(life.ids), every=0.5, within=300)
            life.reviewed = _review(caller)
            until(lambda: _rows(client, "labels") > len(labels), every=0.5, within=100)
            until(lambda: client.features(card).get(card_id=made[-1].payment.card_id)["times_30d"] > 0, every=0.5)
            until(lambda: {one.event.pattern for one in client.read(Act)} == {"guessing", "travel"}, every=0.5)
            until(lambda: profile(client, made[-1].payment) is not None, every=0.5)
        yield life


def profile(client: Any, payment: Payment) -> Any:
    """What the customer may spend in a day, as Redis has it."""
    return client.ahead(vectors, customers)(payment)["day_limit"]


@contextmanager
def serving(mine: dict[str, str], home: Settings) -> Iterator[Caller]:
    """`headrace serve decide` until the block ends, and with it the pipe; all that it says is in its log."""
    said = [word for name, value in mine.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "headrace", "--tied", *said, "serve", "decide", "--port", "0"]
    log = home.home.parent / "service.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=out, stderr=out) as process,
    ):
        until(lambda: "ready" in log.read_text() or process.poll() is not None, every=0.1)
        assert process.poll() is None, log.read_text()
        address, _, key = next(word for word in log.read_text().split() if "/#key=" in word).partition("/#key=")
        yield Keyed(address, key)


class Keyed(Caller):
    """With the key of this service."""

    def __init__(self, address: str, key: str) -> None:
        super().__init__(address)
        self.key = key

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return super().call(method, path, body, **({"X_Api_Key": self.key} | headers))


def _asked(life: Life, id: str, **other: Any) -> dict[str, Any]:
    """A payment of a card of the traffic, dated now. Its PIN is wrong, so that there is an alert as well."""
    usual = msgspec.to_builtins(life.made[-1].payment) | {"amount": "20.00", "terminal_id": HALL, "pin_ok": False}
    return usual | {"payment_id": id, "at": rfc3339(datetime.now(UTC))} | other


def _plant(caller: Caller, life: Life) -> None:
    """A card number of its own wherever somebody might put one: each such request is refused, or what has the number
    is no part of the payment."""
    random = Random(5)

    def number(place: str) -> str:
        return life.numbers.setdefault(place, card_number(random))

    def refused(place: str, body: Any, path: str = "/decide", **headers: str) -> None:
        life.refused[place] = caller.decide(body, path, **headers)

    for name in ("payment_id", "card_id", "customer_id", "terminal_id", "country", "last4", "note"):
        refused(name, _asked(life, f"no {name}", **{name: number(name)}))
    spaced = number("spaced")
    refused("spaced", _asked(life, "no spaced", terminal_id=" ".join(spaced[n : n + 4] for n in range(0, 16, 4))))
    refused("amount", _asked(life, "no amount", amount=int(number("amount"))))
    refused("a name", _asked(life, "no name") | {number("a name"): 1})
    refused("torn", f'{{"card_id": "{number("torn")}", '.encode())
    refused("key", _asked(life, "no key"), X_Api_Key=number("key"))
    refused("path", _asked(life, "no path"), f"/decide/{number('path')}")
    for verb in ("label", "snooze"):
        said = {"fraud": True, "until": rfc3339(datetime.now(UTC)), "by": "ann"}
        refused(verb, said, f"/reviews/{number(verb)}/{verb}")
        refused(f"{verb} by", said | {"by": number(f"{verb} by")}, f"/reviews/paid/{verb}")
    refused("stranger", _asked(life, "no stranger", card_id="card-nobody"))
    refused("query", b"{}", f"/decide?card={number('query')}")
    for place, wrong in WRONG.items():
        refused(place, _asked(life, f"no {place}", **wrong))
    life.paid["paid"] = caller.decide(_asked(life, "paid"))
    refused("paid with other content", _asked(life, "paid", amount="21.00"))
    life.paid["asked"] = caller.decide(_asked(life, "asked"), f"/decide?card={number('query of a payment')}")
    life.paid["headed"] = caller.decide(_asked(life, "headed"), X_Card=number("header"), User_Agent=number("agent"))


def _review(caller: Caller) -> dict[str, Any]:
    """Somebody looks at the payment that has waited for longest, and says that it was a fraud."""
    until(lambda: _waiting(caller), every=0.5)
    oldest: dict[str, Any] = _waiting(caller)[0]
    answer = caller.call("POST", f"/reviews/{oldest['payment_id']}/label", {"fraud": True, "by": "ann"})
    assert answer.status == 200, answer
    return oldest


def _waiting(caller: Caller) -> Any:
    answer = caller.call("GET", "/reviews")  # 503 until it is read from the log
    return answer.body["reviews"] if answer.status == 200 else []


def card_number(random: Random) -> str:
    """16 digits, the last of which checks the others."""
    digits = [4, *(random.randrange(10) for _ in range(14))]
    total = sum(digit if place % 2 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(digits))
    return "".join(map(str, [*digits, -total % 10]))


class Answers:
    """What both twins have answered, as it comes."""

    def __init__(self, broker: Broker) -> None:
        self._told: Counter[str] = Counter()
        self._changed = threading.Condition()
        self.close = Arrivals(broker, ["decisions.raw"], self._take, since=EPOCH).close

    def _take(self, messages: list[Any]) -> None:
        with self._changed:
            self._told.update(msgspec.json.decode(message.value())["payment_id"] for message in messages)
            self._changed.notify_all()

    def wait(self, ids: Collection[str]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: all(self._told[id] >= 2 for id in ids), 300), "no answer in time"


def _one_by_one(client: Any, events: Iterable[Payment | Label], answers: Answers) -> None:
    """As in life: nobody pays, and no terminal takes a payment, before the one before it is answered."""
    before: dict[str, str] = {}
    with client.producer(Payment) as paid, client.producer(Label) as known:
        for event in events:
            if isinstance(event, Label):
                known.send(event)
                continue
            who = (event.terminal_id, event.customer_id)
            answers.wait({before[one] for one in who if one in before})
            paid.send(event)
            before |= dict.fromkeys(who, event.payment_id)


def _safe(folders: list[Path]) -> None:
    """Until the state of each twin is safe once more, and has all that was decided: a file, and its checksum."""
    count = lambda: [sum(1 for _ in folder.iterdir()) for folder in folders]  # noqa: E731
    before = count()
    until(lambda: all(now >= then + 2 for now, then in zip(count(), before, strict=True)), every=0.1)


def _rows(client: Any, table: str) -> int:
    try:
        return int(client.query(f"select count(*) as n from lake.{table}")[0]["n"])
    except hr.HeadraceError:  # the first batch makes the table
        return 0
