"""A login here, and a purchase in another country within five minutes."""

from datetime import datetime

import headrace as hr


@hr.event(topic="logins", key="customer_id", time="at")
class Login:
    """An attempt to log in, as the web site saw it."""

    customer_id: str
    ok: bool
    country: str
    at: datetime


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    """A card payment as the terminal reported it."""

    payment_id: str
    card_id: str
    customer_id: str
    amount: hr.Money
    country: str
    at: datetime


bank = hr.App("bank")
logins = bank.stream(Login, disorder="30 s")
payments = bank.stream(Payment, disorder="30 s")
travel = (
    bank.pattern(
        "impossible-travel",
        key="customer_id",
        select="customer_id, login.country as here, buy.country as there, buy.payment_id, buy.at",
    )
    .first("login", logins.where("ok"))
    .then("buy", payments, where="buy.country <> login.country")
    .within("5 min")
)
travel.matches.to(bank.topic("alerts"))


def demo() -> None:
    """Ann pays at home, then somebody pays for her far away; Bob takes a plane."""
    with hr.testing.run(bank) as t:
        t.send(
            Login("ann", True, "CH", t.time("10:00")),
            Payment("p1", "c1", "ann", hr.money("4.50"), "CH", t.time("10:01")),
            Login("bob", True, "DE", t.time("10:01")),
            Payment("p2", "c1", "ann", hr.money("980.00"), "BR", t.time("10:02")),
            Login("cem", False, "TR", t.time("10:03")),  # he could not log in
            Payment("p3", "c3", "cem", hr.money("12.00"), "GR", t.time("10:04")),
            Payment("p4", "c2", "bob", hr.money("3.20"), "FR", t.time("11:30")),
        )
        t.end()
        print(t.read("alerts"))


if __name__ == "__main__":
    demo()
