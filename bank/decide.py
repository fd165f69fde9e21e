"""The decision on every payment, while the terminal waits: headrace run decide --realtime --twins 2.

One chain, three shuffles: by card what is known of it, and the acts that patterns find; by customer how many of these
there were, and the profile; by terminal the frauds there. Then the figures made of it, and what the published policy
says. A payment is never decided twice by one twin.
"""

from __future__ import annotations

import headrace as hr
from bank import features, patterns
from bank.events import Card, Customer, Label, Payment
from bank.fallback import fallback

decide = hr.App("decide")
payments = decide.stream(Payment, disorder="30 s")
labels = decide.stream(Label, disorder="30 s")
customers = decide.table(Customer)

card = features.card(decide, payments)
acts = patterns.acts(decide, card.vectors)  # a payment that comes again is none of them
customer = features.customer(decide, card.vectors, acts)
profiled = customer.vectors.enrich(
    customers,
    on="customer_id",
    take="customer.*, customers.home, customers.day_limit, customers.at as seen_profile",
)
terminal = features.terminal(decide, profiled, labels)

# How far from the payment before and how soon after it; what the card usually pays, this payment aside.
measured = terminal.vectors.select(
    "*, seconds_between(last_at, at) as since, distance_km(last_lat, last_lon, lat, lon) as km, "
    "cast(spent_30d - amount as float) / nullif(times_30d - 1, 0) as usual, "
    "(squares_30d - tenths * tenths) / 100.0 / nullif(times_30d - 1, 0) as square"
)
vectors = measured.select(
    "payment_id, card_id, customer_id, terminal_id, amount, country, at, lat, lon, last4, pin_ok, "
    "cast(spent_1h as money) as spent_1h, cast(spent_1d as money) as spent_1d, cast(spent_7d as money) as spent_7d, "
    "cast(spent_30d as money) as spent_30d, times_1h, times_1d, times_7d, times_30d, misses_5min, misses_1d, "
    "since, km, km * 3600 / greatest(since, 1.0) as speed_kmh, "
    "usual, cast(amount as float) / nullif(usual, 0) as ratio, "
    "(cast(amount as float) - usual) / nullif(sqrt(greatest(square - usual * usual, 0.0)), 0) as z, "
    "uses_1h, uses_1d, frauds_28d, acts_7d, home, country <> home as abroad, day_limit, "
    "seen_card, seen_terminal, seen_customer, seen_profile"
)
decisions = vectors.decide("fraud", default="review")
raw = decide.topic("decisions.raw")
decisions.to(raw, key="payment_id")
twice = decide.topic("payments.twice")
card.duplicates.to(twice)
card.late.to(decide.topic("payments.late"))  # more than an hour behind: nobody waits for a decision any more

# headrace serve decide: the terminal asks over HTTP, and the first twin's answer is told. Only about customers and
# cards of the bank: the table of cards is the service's own, and no part of the flow.
decide.service(
    "decide",
    ask=Payment,
    answer=raw,
    default={"decision": "review", "reasons": ["no answer in time"]},
    deadline="80 ms",
    fallback=fallback(vectors),
    checks={
        "length(payment_id) between 1 and 100": "a payment has an id, of 100 letters at most",
        "length(terminal_id) between 1 and 100": "a terminal has an id, of 100 letters at most",
        "country like '__'": "a country is two letters",
        "amount > 0 and amount < 1000000": "an amount is more than 0 and less than a million",
        "coalesce(abs(lat) <= 90 and abs(lon) <= 180, lat is null and lon is null)": "a terminal stands on the earth: "
        "lat from -90 to 90 and lon from -180 to 180, or neither",
        "coalesce(length(last4) = 4 and cast(last4 as int) >= 0, last4 is null)": "last4 has four digits, if any",
    },
    known={"card_id": decide.table(Card), "customer_id": customers},
    alerts=decide.topic("fraud-alerts"),
    label=Label,
    batch=decide.topic("batch-flags"),
    repeats=twice,
)
