"""Card features: at each payment, what is known of its card, and which payments are unlike it."""

from datetime import datetime

import headrace as hr


@hr.event(topic="payments", key="card_id", time="at")
class Payment:
    """A card payment as the terminal reported it."""

    card_id: str
    amount: hr.Money
    country: str
    at: datetime


bank = hr.App("bank")
payments = bank.stream(Payment, disorder="30 s")
card = (
    bank.features("card", key="card_id", source=payments, ttl="30 d")
    .over("1 h", times=hr.count(), countries=hr.distinct("country"))
    .over("7 d", mean=hr.avg("amount"), most=hr.max("amount"))
    .last("at", "country")
)
card.vectors.to(bank.topic("card-features"))
unusual = card.vectors.where("amount > 3 * mean_7d or (country <> last_country and at - last_at < interval '1 h')")
unusual.to(bank.topic("unusual"))


def demo() -> None:
    """Five payments of one card on a day."""
    arriving = [
        ("20.00", "CH", "08:00"),
        ("35.00", "CH", "12:30"),
        ("30.00", "FR", "18:00"),
        ("12.00", "CH", "18:20"),  # in two countries within twenty minutes
        ("500.00", "CH", "20:00"),  # far more than it usually is
    ]
    with hr.testing.run(bank) as t:
        for amount, country, at in arriving:
            t.send(Payment("c1", hr.money(amount), country, t.time(at)))
        print(t.read("unusual", "card_id, at, amount, mean_7d, country, last_country, countries_1h"))


if __name__ == "__main__":
    demo()
