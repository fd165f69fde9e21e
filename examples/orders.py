"""Orders and revenue per shop and five minutes."""

from datetime import datetime

import headrace as hr


@hr.event(topic="orders", key="shop", time="at", id="order_id")
class Order:
    """An order as the till wrote it."""

    order_id: str
    shop: str
    amount: hr.Money
    at: datetime


shops = hr.App("shops")
orders = shops.stream(Order, disorder="30 s")
paid = orders.dedup("order_id", within="1 h").where("amount > 0")
per_five = paid.window(hr.tumbling("5 min"), lateness="0 s").agg(
    orders=hr.count(),
    revenue=hr.sum("amount"),
    largest=hr.max("amount"),
)
per_five.to(shops.topic("orders-per-five-minutes"))
per_five.late.to(shops.topic("orders-too-late"))


def demo() -> None:
    """Seven orders of two shops; one is sent twice, one is for nothing."""
    arriving = [
        ("o1", "paris", "20.00", "10:00:10"),
        ("o2", "paris", "35.50", "10:02:00"),
        ("o3", "oslo", "12.00", "10:04:59"),
        ("o3", "oslo", "12.00", "10:04:59"),  # the till was not sure and sent it again
        ("o4", "paris", "0.00", "10:04:00"),  # a voucher
        ("o5", "paris", "9.90", "10:05:00"),
        ("o6", "oslo", "99.00", "10:04:40"),  # 20 s out of order: within the disorder
        ("o7", "paris", "5.00", "10:11:00"),
    ]
    with hr.testing.run(shops) as t:
        for order_id, shop, amount, at in arriving:
            t.send(Order(order_id, shop, hr.money(amount), t.time(at)))
        t.end()
        print(t.read("orders-per-five-minutes", "shop, window_start, orders, revenue, largest"))


if __name__ == "__main__":
    demo()
