"""Response times per endpoint over the last hour, told every half hour."""

from datetime import datetime

import headrace as hr


@hr.event(topic="requests", key="endpoint", time="at")
class Request:
    """A request that was answered: `millis` is how long it took."""

    endpoint: str
    millis: int
    at: datetime


api = hr.App("api")
requests = api.stream(Request, disorder="10 s")
last_hour = requests.window(hr.hopping("1 h", every="30 min"), lateness="0 s").agg(
    calls=hr.count(),
    mean=hr.avg("millis"),
    slowest=hr.max("millis"),
)
last_hour.to(api.topic("response-times"))
last_hour.where("calls >= 2 and mean > 500").to(api.topic("slow-endpoints"))
last_hour.late.to(api.topic("requests-too-late"))


def demo() -> None:
    """Six requests to two endpoints; one of them gets slow."""
    arriving = [
        ("/search", 120, "10:05"),
        ("/search", 180, "10:20"),
        ("/pay", 200, "10:25"),
        ("/pay", 900, "10:40"),
        ("/search", 300, "10:50"),
        ("/pay", 700, "10:55"),
    ]
    with hr.testing.run(api) as t:
        for endpoint, millis, at in arriving:
            t.send(Request(endpoint, millis, t.time(at)))
        t.end()
        print(t.read("response-times", "endpoint, window_start, window_end, calls, mean, slowest"))
        print()
        print(t.read("slow-endpoints", "endpoint, window_end, calls, mean"))


if __name__ == "__main__":
    demo()
