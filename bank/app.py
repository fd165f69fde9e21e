"""What the bank declares: its events, and the streams it reads them as."""

from __future__ import annotations

from datetime import datetime

import headrace as hr


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    """A card payment as the terminal reported it."""

    payment_id: str
    card_id: str
    customer_id: str
    terminal_id: str
    amount: hr.Money
    country: str
    at: datetime


bank = hr.App("bank")
payments = bank.stream(Payment, disorder="30 s")

# What each card spent in the last hour, every five minutes. A payment that comes up to ten minutes after its window
# closed corrects it; one that comes later is set aside, with the watermark it met.
spend = (
    payments.where("amount > 0")
    .key_by("card_id")
    .window(hr.hopping("1 h", every="5 min"), lateness="10 min")
    .agg(spent=hr.sum("amount"), times=hr.count(), terminals=hr.distinct("terminal_id"))
)
spend.to(bank.topic("card-spend"))
spend.to(hr.postgres("card_spend", key="card_id, window_start"))
spend.late.to(bank.topic("card-spend-late"))

# Every payment, for the questions of later: headrace query "select country, sum(amount) from lake.payments group by 1"
payments.to(hr.lake("payments", partition="day(at)"))
