"""The web side of a service: paths, the API key, errors as JSON, the live page and its events."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from headrace.base.errors import (
    DataError,
    DeliveryFailed,
    HeadraceError,
    KeyRefused,
    MethodRefused,
    NotFound,
    NotReady,
    RequestError,
    Undecodable,
)
from headrace.log.codec import Encoded
from headrace.serve import LOGGER
from headrace.serve.desk import Desk
from headrace.serve.live import Live
from headrace.serve.reading import body_of, row_of

STATIC = Path(__file__).parent / "static"
KEY_HEADER = "X-Api-Key"
_WRITE_WAIT = 10.0  # seconds in which the log must have taken a person's word
_BODY_WAIT = 5.0  # seconds in which a body must have come

_PAGE_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'",  # nothing from elsewhere, and nothing to elsewhere
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Endpoint = Callable[[Request], Awaitable[Response]]


class Web:
    """The paths of one service."""

    def __init__(self, desk: Desk, live: Live, *, key: str, stopping: Callable[[], bool]) -> None:
        self._desk, self._live, self._key, self._stopping = desk, live, key.encode(), stopping

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route(f"/{self._desk.service.name}", self._told(self._decide), methods=["POST"]),
                Route("/reviews", self._told(self._reviews)),
                Route("/reviews/{id:path}/label", self._told(self._label), methods=["POST"]),
                Route("/reviews/{id:path}/snooze", self._told(self._snooze), methods=["POST"]),
                Route("/live", self._told(self._events)),
                Route("/health", self._health),
                Route("/metrics", self._metrics),
                Route("/", self._page),
                Mount("/static", StaticFiles(directory=STATIC)),
            ],
            exception_handlers={HTTPException: self._unrouted},
        )

    def _told(self, endpoint: Endpoint) -> Endpoint:
        """With the key, and with every error told as JSON; of a fault of ours nothing but that it is one."""

        @wraps(endpoint)
        async def call(request: Request) -> Response:
            try:
                self._check_key(request)
                response = await endpoint(request)
            except HeadraceError as refused:
                response = refusal(refused)
            except Exception as fault:
                LOGGER.exception("a request failed")
                response = refusal(HeadraceError("something went wrong inside Headrace", why=type(fault).__name__))
            self._desk.figures.requests[response.status_code] += 1
            return response

        return call

    def _check_key(self, request: Request) -> None:
        given = request.headers.get(KEY_HEADER, "").encode()
        if not hmac.compare_digest(given, self._key):
            raise KeyRefused("the API key is wrong" if given else "there is no API key", fix=f"send {KEY_HEADER}: ...")

    async def _decide(self, request: Request) -> Response:
        answer = await self._desk.decide(await _body(request), timings=request.query_params.get("timings") == "1")
        return _json(answer)

    async def _reviews(self, request: Request) -> Response:
        asked, reviews = request.query_params, self._live.reviews
        found = (
            reviews.done()
            if asked.get("labelled") == "1"
            else reviews.due(self._live.now(), snoozed=asked.get("snoozed") == "1")
        )
        listed = [one.as_dict() for one in found]
        return _json({"waiting": len(reviews), "fallen": reviews.fallen, "reviews": listed})

    async def _label(self, request: Request) -> Response:
        id, said = request.path_params["id"], row_of(await _body(request))
        record = self._live.reviews.label(id, fraud=said.get("fraud"), by=said.get("by"), now=self._live.now())
        label = self._desk.service.label
        assert label is not None
        await self._write(label.topic, record)
        self._live.reviews.labelled(id, record[1])  # at once: the record itself comes round a moment later
        return _json({self._desk.service.ask.id: id, "fraud": said["fraud"]})

    async def _snooze(self, request: Request) -> Response:
        id, said = request.path_params["id"], row_of(await _body(request))
        record = self._live.reviews.snooze(id, until=said.get("until"), by=said.get("by"), now=self._live.now())
        await self._write(self._desk.service.notes.name, record)
        self._live.reviews.noted(record[1])
        return _json({self._desk.service.ask.id: id, "until": said["until"]})

    async def _write(self, topic: str, record: Encoded) -> None:
        """Returns once the log has it."""
        loop, done = asyncio.get_running_loop(), asyncio.Queue[str]()

        def tell(refused: str = "") -> None:
            loop.call_soon_threadsafe(done.put_nowait, refused)

        self._desk.producer.send(topic, record, tell, tell)
        try:
            async with asyncio.timeout(_WRITE_WAIT):
                refused = await done.get()
        except TimeoutError:
            raise NotReady("the broker does not answer", why="it is written as soon as it does") from None
        if refused:
            raise DeliveryFailed(
                f"the broker refused a record for {topic}", why=refused, fix="see the topic's settings"
            )

    async def _events(self, request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            yield _event("history", self._live.history())
            yield _event("second", self._live.snapshot())
            while not self._stopping():
                yield _event("second", await self._live.next())

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def _health(self, request: Request) -> Response:
        parts = self._desk.ready
        return _json({"ready": all(parts.values()), **parts}, status=200 if all(parts.values()) else 503)

    async def _metrics(self, request: Request) -> Response:
        return Response(self._desk.figures.prometheus(), media_type="text/plain; version=0.0.4")

    async def _unrouted(self, request: Request, unrouted: Exception) -> Response:
        assert isinstance(unrouted, HTTPException)
        self._desk.figures.requests[unrouted.status_code] += 1
        if unrouted.status_code == 405:
            allowed = (unrouted.headers or {}).get("Allow", "")
            return refusal(MethodRefused("this path is for another method", fix=f"use {allowed}"))
        return refusal(NotFound("there is nothing at this path", fix="docs/serving.md lists them"))

    async def _page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers=_PAGE_HEADERS)


def refusal(error: HeadraceError) -> Response:
    """An error as the caller sees it."""
    if isinstance(error, RequestError):
        status = error.status
    elif isinstance(error, DataError):
        status = 400 if isinstance(error, Undecodable) else 422
    else:
        status = 500
    told = {"code": error.code, "what": error.what, "why": error.why, "fix": error.fix}
    return _json({"error": told}, status=status, headers={"Retry-After": "1"} if status == 503 else None)


async def _body(request: Request) -> bytes:
    headers = request.headers
    try:
        async with asyncio.timeout(_BODY_WAIT):
            return await body_of(headers.get("Content-Type", ""), headers.get("Content-Length"), request.stream())
    except TimeoutError:
        raise RequestError("the body did not come", why=f"waited {_BODY_WAIT:g} s for it") from None


def _json(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, headers=headers, media_type="application/json")


def _event(name: str, value: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"
