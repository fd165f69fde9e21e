"""Terminals that ask the decision service: payments over HTTP at a pace, several at once, and the labels of frauds."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterable
from queue import Queue
from typing import Any

import msgspec

from bank.events import Label, Payment

AT_ONCE = 8


class Terminal:
    """One connection to the service."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=5)
        self._headers = {"X-Api-Key": key, "Content-Type": "application/json"}

    def ask(self, payment: Payment) -> dict[str, Any]:
        """What was decided; an HTTP status in its place where nothing was."""
        try:
            self._connection.request("POST", "/decide", msgspec.json.encode(payment), self._headers)
            with self._connection.getresponse() as answer:
                body = answer.read()
                return msgspec.json.decode(body) if answer.status == 200 else {"decision": str(answer.status)}
        except (OSError, http.client.HTTPException):  # the service stops before its terminals do
            self._connection.close()
            return {"decision": "nobody answers"}

    def answered_twice(self) -> int | None:
        """How many payments the second twin has answered too, as the service counts; None: it is too busy to say."""
        try:
            self._connection.request("GET", "/metrics")
            with self._connection.getresponse() as answer:
                lines = answer.read().decode().splitlines()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return None
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith("headrace_twin_answers_total"))

    def close(self) -> None:
        self._connection.close()


class Terminals:
    """Threads with a terminal each."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._place = (host, port, key)
        self._asked: Queue[Payment | None] = Queue(maxsize=4 * AT_ONCE)
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(AT_ONCE)]
        for thread in self._threads:
            thread.start()

    def pay(self, events: Iterable[Payment | Label], rate: float, client: Any, stop: threading.Event) -> None:
        """So many payments a second, until told to stop; none at 0."""
        if not rate:
            return
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
        terminal = Terminal(*self._place)
        while (payment := self._asked.get()) is not None:
            terminal.ask(payment)
        terminal.close()
