"""The moving average of a price: for each tick, the mean of the last ten minutes."""

from datetime import datetime

import headrace as hr


@hr.event(topic="ticks", key="symbol", time="at")
class Tick:
    """A price at a moment."""

    symbol: str
    price: hr.Money
    at: datetime


market = hr.App("market")
ticks = market.stream(Tick, disorder="5 s")
moving = ticks.window(hr.sliding("10 min"), lateness="5 min").agg(
    price=hr.last("price"),
    mean=hr.avg("price"),
    ticks=hr.count(),
)
moving.to(market.topic("moving-average"))
moving.late.to(market.topic("ticks-too-late"))


def demo() -> None:
    """Six ticks in the order in which they arrive; the fifth is four minutes behind."""
    arriving = [
        ("100.00", "10:00"),
        ("106.00", "10:04"),
        ("112.00", "10:09"),
        ("110.00", "10:10"),
        ("90.00", "10:06"),  # an exchange far away
        ("94.00", "10:12"),
    ]
    with hr.testing.run(market) as t:
        for price, at in arriving:
            t.send(Tick("ABC", hr.money(price), t.time(at)))
        t.end()
        print(t.read("moving-average", "symbol, window_end, kind, revision, price, mean, ticks"))


if __name__ == "__main__":
    demo()
