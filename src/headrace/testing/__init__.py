"""The test kit: run an app without a JVM, one row per batch, with time in the test's hand.

>>> from datetime import datetime
>>> import headrace as hr
>>> @hr.event(topic="payments", key="card", time="at")
... class Payment:
...     card: str
...     amount: hr.Money
...     at: datetime
>>> bank = hr.App("bank")
>>> windows = bank.stream(Payment, disorder="0 s").window(hr.tumbling("5 min"), lateness="0 s")
>>> _ = windows.agg(spent=hr.sum("amount")).to(bank.topic("spend"))
>>> with run(bank) as t:
...     t.send(Payment("c1", hr.money("10.50"), t.time("10:01")))
...     t.send(Payment("c1", hr.money("2.00"), t.time("10:04")))
...     t.end()
...     t.read("spend", "card, kind, spent")
card | kind  | spent
-----+-------+------
c1   | final | 12.50
"""

from headrace.testing.rows import Row, Rows
from headrace.testing.run import Run, run

__all__ = ["Row", "Rows", "Run", "run"]
