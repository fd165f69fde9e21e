"""Terminals that ask the decision service: payments over HTTP at a pace, several at once, and the labels of frauds."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterable
from queue import Queue
from typing import Any

import msgspec

from bank.events import Label, Payment

AT_ONCE = 8


class Terminals:
    """Threads with a connection each. `answers` counts by decision, or by HTTP status where there was none."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self.answers: Counter[str] = Counter()
        self._address = (host, port)
        self._headers = {"X-Api-Key": key, "Content-Type": "application/json"}
        self._asked: Queue[Payment | None] = Queue(maxsize=4 * AT_ONCE)
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(AT_ONCE)]
        for thread in self._threads:
            thread.start()

    def pay(self, events: Iterable[Payment | Label], rate: float, client: Any, stop: threading.Event) -> None:
        """So many payments a second, until told to stop."""
        due = time.monotonic()
        labels = client.producer(Label)
        for event in events:
            if stop.is_set():
                break
            if isinstance(event, Label):
                labels.send(event)
                continue
            self._asked.put(event)
            due = max(due + 1 / rate, time.monotonic() - 1)  # a stall of more than a second is not made up for
            stop.wait(max(0.0, due - time.monotonic()))

    def close(self) -> None:
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=5)
        while (payment := self._asked.get()) is not None:
            try:
                connection.request("POST", "/decide", msgspec.json.encode(payment), self._headers)
                with connection.getresponse() as answer:
                    body = answer.read()
                    told = msgspec.json.decode(body)["decision"] if answer.status == 200 else str(answer.status)
            except (OSError, http.client.HTTPException):  # the service stops before its terminals do
                connection.close()
                told = "nobody"
            self.answers[told] += 1
        connection.close()
