"""Three failed logins of a customer within five minutes."""

from datetime import datetime

import headrace as hr


@hr.event(topic="logins", key="customer_id", time="at")
class Login:
    """An attempt to log in, as the web site saw it."""

    customer_id: str
    ok: bool
    country: str
    at: datetime


bank = hr.App("bank")
logins = bank.stream(Login, disorder="30 s")
guessing = (
    bank.pattern("guessing", key="customer_id", select="customer_id, count(miss) as misses, first(miss.at) as since")
    .first("miss", logins, where="not ok")
    .times(3)
    .consecutive()
    .within("5 min")
)
guessing.matches.to(bank.topic("alerts"))


def demo() -> None:
    """Ann forgot her password, Bob is being tried, Cem is slow."""
    arriving = [
        ("ann", False, "10:00:00"),
        ("bob", False, "10:00:10"),
        ("ann", False, "10:00:30"),
        ("bob", False, "10:00:31"),
        ("ann", True, "10:01:00"),  # she remembered it
        ("cem", False, "10:01:00"),
        ("bob", False, "10:00:50"),  # 10 s out of order: within the disorder
        ("ann", False, "10:02:00"),
        ("cem", False, "10:03:00"),
        ("cem", False, "10:06:00"),  # five minutes after his first: not within five minutes
    ]
    with hr.testing.run(bank) as t:
        for customer, ok, at in arriving:
            t.send(Login(customer, ok, "CH", t.time(at)))
        t.end()
        print(t.read("alerts"))


if __name__ == "__main__":
    demo()
