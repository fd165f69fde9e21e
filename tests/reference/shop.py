"""Orders that point to users, and users who point to their friends: tables to make views of."""

from __future__ import annotations

from datetime import datetime

import headrace as hr
from headrace.testing import Run


@hr.event(topic="orders", key="order_id", time="at")
class Order:
    order_id: str
    user_id: str | None
    amount: int
    at: datetime


@hr.event(topic="users", key="user_id", time="since")
class User:
    user_id: str
    name: str
    city: str | None
    friend_id: str | None
    since: datetime


def shop(how: str = "inner") -> tuple[hr.App, hr.View]:
    """The view of orders with their users, to "view"."""
    app = hr.App("shop")
    view = app.table(Order).join(app.table(User), on="orders.user_id = users.user_id", how=how).named("seen")
    view.to(app.topic("view", compact=True))
    return app, view


def order(t: Run, at: str, key: str = "o1", user: str | None = "u1", amount: int = 10) -> Order:
    return Order(key, user, amount, t.time(at))


def user(
    t: Run, at: str, key: str = "u1", name: str = "Ann", city: str | None = "Rome", friend: str | None = None
) -> User:
    return User(key, name, city, friend, t.time(at))
