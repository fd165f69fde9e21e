"""The desk: takes an event, writes it to the log, waits for the flow's answer, and speaks itself when none comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import Any

import msgspec

from headrace.base.clock import SystemClock, rfc3339
from headrace.base.errors import Overloaded
from headrace.log.broker import Broker
from headrace.log.codec import ID, Encoded
from headrace.log.prompt import PromptProducer
from headrace.model.service import Answer, Service
from headrace.serve import LOGGER
from headrace.serve.figures import Figures
from headrace.serve.hearing import Hearing, content_of
from headrace.serve.known import Known
from headrace.serve.memory import Case, Memory, Row, came_before, told_of
from headrace.serve.reading import Reading

Speak = Callable[[Any], Answer]
"""The fallback, connected: from an event to an answer."""

_SPEAKERS = 4
_INSTANT = 1.0  # seconds that nobody wonders about


@dataclass(slots=True)
class Timings:
    """Where the time of a request went: instants of one clock, turned into milliseconds when told."""

    begun: float
    read: float = 0.0
    written: float = 0.0
    answered: float = 0.0

    def told(self) -> dict[str, float | None]:
        def since(start: float, end: float) -> float | None:
            return round((end - start) * 1000, 3) if end else None

        return {
            "validate": since(self.begun, self.read),
            "written": since(self.read, self.written),
            "answered": since(self.read, self.answered),
            "total": since(self.begun, perf_counter()),
        }


class Desk:
    """One service over one broker, all of it in the event loop."""

    def __init__(self, service: Service, broker: Broker, *, speak: Speak | None = None) -> None:
        self.service, self.figures = service, Figures()
        self._broker, self._speak, self.now = broker, speak, SystemClock().now
        self._reading = Reading(service, self.now)
        self._memory = Memory((service.memory + service.ahead).total_seconds())
        self._hearing = Hearing(service, self._memory, self.figures)
        self._known = Known(service)
        self._speakers = ThreadPoolExecutor(_SPEAKERS, thread_name_prefix="fallback")
        self._reachable = False

    async def start(self, tell: Callable[[str], None] = lambda _: None) -> None:
        """Connects, and reads back from the log what must be remembered; `tell` is told what is waited for. Whoever
        ends it meanwhile does not wait: a thread that reads has to be told, or the event loop would wait for it."""
        self._loop = asyncio.get_running_loop()
        self.producer = PromptProducer(self._broker)
        self._watching = asyncio.create_task(self._watch())
        try:
            with self._telling(tell, "what was asked and answered"):
                await self._hearing.start(self._broker, self.now() - self.service.memory)
            with self._telling(tell, "the keys that are known"):
                await self._known.start(self._broker)
        except BaseException:
            await self.stop()
            raise

    @contextmanager
    def _telling(self, tell: Callable[[str], None], what: str) -> Iterator[None]:
        """Says what is being read, if that takes more than an instant."""
        late = self._loop.call_later(_INSTANT, tell, f"reading {what} back from the log; nobody is answered before")
        try:
            yield
        finally:
            late.cancel()

    async def stop(self) -> int:
        """Ends after the last answer. Returns how many events the log still does not have."""
        self._watching.cancel()
        await self._hearing.stop()
        await self._known.stop()
        left = await asyncio.to_thread(self.producer.close)
        self._speakers.shutdown(wait=False, cancel_futures=True)
        return left

    @property
    def ready(self) -> dict[str, bool]:
        """The parts that must work for an answer of the flow."""
        return {"broker": self._reachable, "reader": self._hearing.alive and self._known.alive}

    @property
    def known(self) -> list[str]:
        """For each topic of keys how many are known, and what to do where that is none."""
        return self._known.told()

    async def decide(self, body: bytes, *, timings: bool = False) -> Row:
        """The answer for one event. Everything that can be refused is refused before it is written."""
        if self.figures.in_flight >= self.service.most:
            raise Overloaded(
                f"{self.service.most} events wait already",
                why="one more would only wait longer; nothing was written",
                fix="try again in a second",
            )
        clock = Timings(perf_counter())
        event = self._reading.event_of(body)
        record = self._reading.codec.encode(event)
        id, content = getattr(event, self.service.ask.id), content_of(record[1])
        case = self._memory.asked(id, content)
        if case.sent or case.recorded:
            self.figures.repeats += 1
            clock.read = perf_counter()
        else:
            if not case.told:  # an answer is not taken back
                self._known.check(event)
            clock.read = perf_counter()
            self._send(case, record, clock)
        self._memory.keep(id, case, content, monotonic())
        self.figures.in_flight += 1
        try:
            if case.outcome is not None:
                await asyncio.shield(case.outcome)  # somebody asked the same a moment ago
            elif not case.told:
                await self._settle(case, event, record[0])
            if not case.told:
                raise came_before()
            clock.answered = perf_counter()
        finally:
            self.figures.in_flight -= 1
            self.figures.took((perf_counter() - clock.begun) * 1000)
        answer: Row = {self.service.ask.id: id, **msgspec.json.decode(case.told), "degraded": case.degraded}
        if case.degraded:
            answer["recorded"] = case.recorded
        return answer | {"timings_ms": clock.told()} if timings else answer

    def _send(self, case: Case, record: Encoded, clock: Timings) -> None:
        def lost(_: str) -> None:
            case.sent = False  # refused for good: whoever asks again sends it again

        case.sent = True  # first: what became of it is told by another thread, maybe at once
        try:
            self.producer.send(self.service.ask.topic, record, lambda: self._written(case, clock), lost)
        except BaseException:  # the client's own errors too: it never left
            case.sent = False
            raise

    async def _settle(self, case: Case, event: Any, key: bytes | None) -> None:
        """Waits until something is to be told: what the flow says, or after the deadline somebody else. Nothing, if the
        flow says that the id came before: not sooner, since of what two services wrote at once one is answered."""
        case.outcome, case.first = self._loop.create_future(), self._loop.create_future()
        try:
            async with asyncio.timeout(self.service.deadline.total_seconds()):
                await case.first
        except TimeoutError:
            if not case.repeated:
                await self._speak_instead(case, event, key)
        finally:
            case.outcome.set_result(None)
            case.first = case.outcome = None

    async def _speak_instead(self, case: Case, event: Any, key: bytes | None) -> None:
        """A degraded answer, unless the flow is faster after all."""
        why = "deadline" if case.recorded else "not-recorded"
        answer, by = await self._fallback(event)
        if case.told:
            return
        case.degraded, case.told = True, msgspec.json.encode({**answer, "why": why, "by": by})
        self.figures.degraded[why, by] += 1
        id = getattr(event, self.service.ask.id)
        row = msgspec.json.encode({self.service.ask.id: id, **answer, "why": why, "by": by, "at": rfc3339(self.now())})
        with suppress(Overloaded):  # the event itself is on its way, and its answer must not be taken back
            self.producer.send(self.service.degraded.name, (key, row, [(ID, id.encode())], 0))

    async def _fallback(self, event: Any) -> tuple[Row, str]:
        """What the fallback says in its time, else the default; and who that was."""
        if self._speak is not None:
            try:
                async with asyncio.timeout(self.service.spare.total_seconds()):
                    return await self._loop.run_in_executor(self._speakers, self._spoken, event), "fallback"
            except TimeoutError:
                pass
            except Exception as broken:  # whatever a person's function does, the terminal gets an answer
                LOGGER.error("the fallback of %s failed: %s", self.service.name, type(broken).__name__)
        return told_of(self.service.default, self.service.tell), "default"

    def _spoken(self, event: Any) -> Row:
        """Called in a thread of its own. Through JSON, so that what cannot be told fails here."""
        assert self._speak is not None
        told = told_of(self._speak(event), self.service.tell)
        return {"decision": told["decision"], **msgspec.json.decode(msgspec.json.encode(told))}

    def _written(self, case: Case, clock: Timings) -> None:
        """Called in the producer's thread; two plain assignments need no lock."""
        clock.written = perf_counter()
        case.recorded = True

    async def _watch(self) -> None:
        """Looks every second whether the broker answers: a client that has nothing to do does not notice."""
        while True:
            self._reachable = await asyncio.to_thread(self.producer.answers, self.service.ask.topic, within="1 s")
            await asyncio.sleep(1)
