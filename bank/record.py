"""What is kept of decisions, exactly once: headrace run record.

The twins of `decide` say everything twice; the first of both by its offset is the one that is kept. An id names a
payment of its card: two cards may have used the same, long after each other, and both were answered. Beside it acts
that are suspicious, and what is known for whoever asks without the flow.
"""

from __future__ import annotations

import headrace as hr
from bank import features, patterns
from bank.decided import Decided
from bank.events import Customer, Label, Payment

record = hr.App("record")
raw = record.stream(Decided, disorder="30 s")

first = raw.dedup("card_id, payment_id", within="1 d").named("first")
first.to(record.topic("decision-log"), key="payment_id")
first.to(hr.lake("decisions", partition="day(at)"))
first.select("payment_id, card_id, customer_id, amount, at, decision, reasons, score").to(
    record.topic("decisions"), key="payment_id"
)
first.where("decision <> 'allow'").to(record.topic("fraud-alerts"), key="payment_id")

labels = record.stream(Label, disorder="30 s")
labels.to(hr.lake("labels", partition="day(at)"))

payments = record.stream(Payment, disorder="5 s")

acts = patterns.acts(record, payments)
acts.to(record.topic("acts"), key="customer_id")
acts.to(hr.lake("acts"))

# What is known, for whoever asks without the flow: the service, if the flow does not answer in time. A payment that
# comes twice counts twice at its terminal and for the patterns here; `decide` sets it aside before. Customers are a
# flow of their own: the state of the others is as it was before they were kept.
card = features.card(record, payments).to(hr.redis("card:{card_id}"))
terminal = features.terminal(record, payments, labels).to(hr.redis("terminal:{terminal_id}"))
customer = features.customer(record, payments, acts).to(hr.redis("customer:{customer_id}"))
customers = record.table(Customer).to(hr.redis("profile:{customer_id}"))
