"""The bank's books: what each card spent in the last hour, and every payment for the questions of later."""

from __future__ import annotations

import headrace as hr
from bank.events import Payment

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
