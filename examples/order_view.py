"""Orders with the customer's name of today, and what each city has ordered."""

from datetime import datetime

import headrace as hr


@hr.event(topic="shop-orders", key="order_id", time="changed")
class Order:
    """An order as it stands since `changed`."""

    order_id: str
    customer_id: str
    amount: hr.Money
    changed: datetime


@hr.event(topic="shop-customers", key="customer_id", time="since")
class Customer:
    """A customer as known since `since`."""

    customer_id: str
    name: str
    city: str
    since: datetime


shop = hr.App("shop")
orders = shop.table(Order, name="orders")
customers = shop.table(Customer, name="customers")
view = orders.join(customers, on="orders.customer_id = customers.customer_id").named("view")
view.select("order_id, amount, name, city").to(shop.topic("order-view", compact=True))
cities = view.group_by("city").agg(orders=hr.count(), ordered=hr.sum("amount"))
cities.to(shop.topic("orders-by-city", compact=True))


def demo() -> None:
    """Two customers, three orders; one moves and takes another name, one order is given away, one cancelled."""
    with hr.testing.run(shop) as t:
        t.send(Customer("c1", "Ann Lind", "Rome", t.time("09:00")))
        t.send(Customer("c2", "Bob Berg", "Oslo", t.time("09:00")))
        t.send(Order("o1", "c1", hr.money("50.00"), t.time("10:00")))
        t.send(Order("o2", "c1", hr.money("20.00"), t.time("10:01")))
        t.send(Order("o3", "c2", hr.money("7.50"), t.time("10:02")))
        t.send(Customer("c1", "Ann Moretti", "Milan", t.time("10:03")))
        t.send(Order("o2", "c2", hr.money("20.00"), t.time("10:04")))
        t.delete(Order, "o3", at=t.time("10:05"))
        print(t.read("order-view"))
        print()
        print(t.table("order-view"))
        print()
        print(t.table("orders-by-city"))


if __name__ == "__main__":
    demo()
