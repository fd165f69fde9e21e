"""Orders that nobody paid within half an hour."""

from datetime import datetime

import headrace as hr


@hr.event(topic="orders", key="order_id", time="at")
class Order:
    """An order as the shop took it."""

    order_id: str
    customer_id: str
    amount: hr.Money
    at: datetime


@hr.event(topic="payments", key="order_id", time="at")
class Payment:
    """A payment for an order."""

    order_id: str
    amount: hr.Money
    at: datetime


shop = hr.App("shop")
orders = shop.stream(Order, disorder="1 min")
payments = shop.stream(Payment, disorder="1 min")
unpaid = (
    shop.pattern("unpaid", key="order_id", select="order_id, ordered.customer_id, ordered.amount, ordered.at")
    .first("ordered", orders)
    .never("paid", payments, where="paid.amount >= ordered.amount")
    .within("30 min")
)
unpaid.matches.to(shop.topic("reminders"))


def demo() -> None:
    """Paid, not paid, paid in part, paid a moment too late, and two whose time is not up."""
    with hr.testing.run(shop) as t:
        t.send(
            Order("o1", "ann", hr.money("20.00"), t.time("10:00")),
            Order("o2", "bob", hr.money("35.50"), t.time("10:02")),
            Order("o3", "cem", hr.money("80.00"), t.time("10:03")),
            Payment("o1", hr.money("20.00"), t.time("10:04")),
            Payment("o3", hr.money("40.00"), t.time("10:05")),
            Order("o4", "dan", hr.money("5.00"), t.time("10:10")),
            Order("o5", "eva", hr.money("9.90"), t.time("10:20")),
            Payment("o4", hr.money("5.00"), t.time("10:40")),
            Order("o6", "ann", hr.money("1.00"), t.time("10:45")),
        )
        t.advance("10 s")  # nothing more comes: time runs on at the clock's speed
        print(t.read("reminders"))


if __name__ == "__main__":
    demo()
