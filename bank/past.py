"""The bank's past: payments of the days before it first opens, decided and recorded as later ones are. Cards are known
then, and the processes have been at work."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from bank import jobs
from bank.batch import stopped_by_the_hour
from bank.decide import raw
from bank.events import Label, Payment
from bank.progress import Say
from bank.sample import KNOWN_AFTER
from bank.traffic import SEED, Traffic

DAYS = 2
"""Before the bank opens."""
HARM = 4.0
"""So many times as many frauds as usual are among them: what only frauds set to work has been at work as well. Where it
is not, Java throws away what it has compiled at the first fraud, in both twins at once."""
SINGLY, PACE = 0.6, 150
"""So large a part of them comes one by one, so many a second, as later: what that takes is compiled before it opens."""
_OFTEN = 5.0
"""Seconds from one look at the topics to the next, which takes a process, where all others are starting."""


def send(client: Any, count: int) -> deque[Payment]:
    """The last `count` payments of these days, and what became known of them. Returns those that are to come singly."""
    days = Traffic(SEED, harm=HARM).history(datetime.now(UTC) - timedelta(days=DAYS), DAYS)
    payments = deque[Payment]()
    labels: list[Label] = []
    for made in deque(days, maxlen=count):
        payments.append(made.payment)
        if made.fraud and made.payment.pin_ok:  # as in bank/sample.py
            labels.append(made.label(made.payment.at + KNOWN_AFTER))
    client.send(*labels)
    client.send(*(payments.popleft() for _ in range(int((1 - SINGLY) * len(payments)))))
    return payments


def take_in(client: Any, rest: deque[Payment], needed: Collection[jobs.Job], twins: int, say: Say) -> None:
    """Until what is on the log, and this rest of it, is decided by both twins, and recorded; or until that stands still
    for long: a payment that somebody sent twice before is decided once. Then the hourly job has its say: it knew these
    days, too."""
    past = _records().get("payments", 0) + len(rest)
    told, recorded, moved = 0, 0, time.monotonic()
    with client.producer(Payment) as payments:
        while recorded < past:
            records = _records()
            if records.get("decisions", 0) > recorded or rest:
                moved = time.monotonic()
            elif time.monotonic() - moved > jobs.PATIENCE:
                say(f"opens although {past - recorded:,} of them are not recorded: headrace doctor")
                break
            known, recorded = min(past, records.get(raw.name, 0) // twins), records.get("decisions", 0)
            if known > told:
                told, moved = known, time.monotonic()
                say(f"deciding on payments of the days before: {known:,} of {past:,}")
                if known == past:
                    say("recording what was decided")
            for job in needed:
                job.check()
            ask = time.monotonic() + _OFTEN
            while (left := ask - time.monotonic()) > 0:
                if rest:
                    payments.send(rest.popleft())
                time.sleep(min(left, 1 / PACE) if rest else left)
    stopped_by_the_hour(client)


def _records() -> dict[str, int]:
    """How many there are, by topic."""
    return {one["topic"]: one["records"] for one in jobs.headrace("topics", "--json")}
