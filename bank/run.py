"""`make run`: the whole bank on one machine until Ctrl-C, with people who pay and thieves among them."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import headrace as hr
from bank import guest, jobs
from bank import past as days_before
from bank.batch import Hourly
from bank.decide import decide
from bank.events import Payment
from bank.policy import policy
from bank.progress import Say
from bank.sample import events
from bank.terminals import Terminal, Terminals
from bank.traffic import SEED, Traffic

HOUR = timedelta(minutes=1)
"""The hour of the batch job where somebody watches: the frauds there last seconds."""
WARM = 20
"""So many decisions in time, one after the other, and the bank opens."""
TWINS = 2
"""Each in a process of its own: one that is killed, or busy making its state safe, does not slow down the other."""
DECIDE = ("run", "decide", "--realtime", "--interval", "2 min", "--twins", str(TWINS), "--standby")
"""Whoever is started takes the place of a twin that nobody has; one more of them waits for the first that ends."""
RECORD = ("run", "record", "--interval", "5 s")
"""At low priority: nobody waits for it, and its start would take the processors for itself."""


def run(rate: float, past: int, standby: bool, say: Say) -> None:
    """Starts all of it, and waits for Ctrl-C. What ran before goes on running. `past`: so many payments of the days
    before are decided before it first opens; cards have a past then, and the processes have been at work. `standby`:
    one more driver waits for one of the twins to end."""
    # Ctrl-C, which a script's background job would ignore; and the terminal is closed, or all would run on.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    home = Path(next(one["value"] for one in jobs.headrace("config", "--json") if one["setting"] == "home"))
    with ExitStack() as undo:
        undo.enter_context(jobs.alone(home))
        if not any(part["state"] == "running" for part in jobs.headrace("status", "--json")):
            undo.callback(jobs.headrace, "down", "--json")
        say("starting Kafka, PostgreSQL and Redis")
        jobs.headrace("up", "--json")
        (home / "logs").mkdir(exist_ok=True)
        client = undo.enter_context(hr.connect(decide))
        people, now = Traffic(SEED), datetime.now(UTC)
        client.send(*people.customers(now), *people.given_out(now), *guest.known(now))
        before = deque[Payment]()
        if client.policy("fraud").current().active is None:
            client.policy("fraud").publish(policy(), note="the bank's first")
            say("published the rules and the model")
            before = days_before.send(client, past)
        started: list[jobs.Job] = []
        undo.callback(jobs.stop, started)

        def begin(name: str, words: Sequence[str], *, yields: bool = False) -> jobs.Job:
            say(f"starting {' '.join(words)}")
            job = jobs.Job(name, words, home / "logs" / f"{name}.log", yields=yields)
            started.append(job)
            return job

        twins = [begin(f"decide-{number}", DECIDE) for number in range(1, TWINS + 1)]
        needed = [*twins, begin("record", RECORD, yields=True)]
        for twin in twins:
            twin.until(": running")
        third = begin(f"decide-{TWINS + 1}", DECIDE) if standby else None
        if before:
            days_before.take_in(client, before, needed, TWINS, say)
        if third is not None:
            _until_ready(third, say)
        service = begin("service", ("serve", "decide"))
        undo.callback(service.stop)  # before those that it asks
        page = service.until("page ").split()[-1]
        service.until("ready")
        at, key = urlsplit(page), page.rpartition("key=")[2]
        place = (at.hostname or "", at.port or 80, key)
        say("waiting for the first decisions")
        _first_decisions(Terminal(*place), [*needed, service])
        say(_welcome(page, home, rate))
        stop = threading.Event()
        terminals = Terminals(*place)
        undo.callback(terminals.close)
        for what, work in (
            ("traffic", lambda: terminals.pay(events(SEED, lambda: datetime.now(UTC)), rate, client, stop)),
            ("the hourly job", lambda: _batch(client, stop, say)),
        ):
            thread = threading.Thread(target=_told, args=(what, work, say), daemon=True)
            thread.start()
            undo.callback(thread.join, jobs.GRACE)
        undo.callback(stop.set)
        try:
            while not stop.wait(0.2):
                jobs.keep(started, say)
        except KeyboardInterrupt:
            say("\nstopping")
    say("stopped; the data stays, and `make run` goes on where this left off")


def _told(what: str, work: Callable[[], object], say: Say) -> None:
    """What ends it, if anything does: on a thread nobody else would say it."""
    try:
        work()
    except Exception as broken:
        say(f"the bank goes on without {what}: {broken!r}")


def _until_ready(third: jobs.Job, say: Say) -> None:
    """The bank opens without it, too: it is a machine's memory that it may lack, or time."""
    say("waiting for the driver that stands by")
    try:
        third.until("stands by", ": running")
    except hr.HeadraceError as trouble:
        say(f"opens without it: {trouble.what}; see {third.log}")


def _first_decisions(terminal: Terminal, started: Collection[jobs.Job]) -> None:
    """Until the flow answers in time, and again and again, and both twins do."""
    in_a_row, before = 0, terminal.answered_twice()
    while in_a_row < WARM or not _both_answer(before, terminal.answered_twice()):
        if in_a_row in (0, WARM):
            in_a_row, before = 0, terminal.answered_twice()
        told = terminal.ask(guest.hello(datetime.now(UTC)))
        in_a_row = in_a_row + 1 if told.get("degraded") is False else 0
        for job in started:
            job.check()
        time.sleep(0.1 if in_a_row else 1)
    terminal.close()


def _both_answer(before: int | None, now: int | None) -> bool:
    """By how many were answered twice before and after some payments, if both are known."""
    return before is not None and now is not None and now - before >= WARM // 2


def _batch(client: Any, stop: threading.Event, say: Say) -> None:
    """The hourly job, once in each of its hours; first at once, to begin where the log is now."""
    job, over = None, False
    while not over:
        try:
            job = job or Hourly(client, HOUR)
            job.run()
        except hr.HeadraceError as broken:  # no topic before the first batch of `record`, or a broker that is away
            say(f"the batch job takes these payments in its next hour: {broken.what}")
        over = stop.wait(HOUR.total_seconds())


def _welcome(page: str, home: Path, rate: float) -> str:
    """What to look at. The payment to try is made in Brazil, with a card that has just paid at home."""
    address = page.partition("/#")[0]
    body = (
        f'{{"payment_id": "mine-\'$(date +%s)\'", "card_id": "{guest.CARD}", "customer_id": "{guest.CUSTOMER}", '
        f'"terminal_id": "br-00016", "amount": "950.00", "country": "BR", "lat": -23.55, "lon": -46.63, '
        f'"at": "\'$(date -u +%FT%TZ)\'"}}'
    )
    return f"""
The bank is open: about {rate:g} payments a second, a fraud every few seconds, and a batch job whose hour is a minute.

  the page         {page}
  one payment      curl -s {address}/decide -H "X-Api-Key: $(cat {home}/serve/api-key)" \\
                     -H 'Content-Type: application/json' -d '{body}'

In another terminal (the commands lie in {Path(sys.executable).parent}):
  headrace tail fraud-alerts --follow                    what was stopped, and why
  headrace query "select decision, count(*), sum(amount) from lake.decisions group by 1"
  headrace reviews list decide                           payments that wait for a person
  bank replay-decision PAYMENT_ID                        one decision once more, to the last bit
  bank rules test bank/rules.toml                        rules on trial over what was decided
  headrace policy show decide fraud                      rules and model that stand, replaced while it runs
More: docs/bank.md

Logs: {home}/logs. Ctrl-C stops all of it; the data stays.
"""  # noqa: S608 (what to type)
