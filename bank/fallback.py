"""What the service says when the flow does not answer in time: the rules alone, over what Redis has of the card."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import asin, cos, radians, sin, sqrt
from typing import Any

import headrace as hr
from bank.events import Payment
from bank.record import card

FRESH = 5.0
"""Seconds after which it looks whether other rules were published."""
EARTH_KM = 6371.0088
_SIZES = ("1h", "1d", "7d", "30d")


def fallback(client: Any) -> Callable[[Payment], dict[str, Any]]:
    """Of the connected app `decide`: reads the card online, and follows the published rules."""
    known, published = client.features(card), client.policy("fraud")
    judge, looked = None, 0.0

    def speak(payment: Payment) -> dict[str, Any]:
        nonlocal judge, looked
        if judge is None or time.monotonic() - looked > FRESH:
            stands, looked = published.current().active, time.monotonic()
            judge = published.judge(hr.Policy(rules=stands.policy.rules if stands else ()))
        said = judge.decide(row(payment, known.get(card_id=payment.card_id)))
        return {"decision": said.decision, "reasons": list(said.reasons), "rules_version": said.rules_version}

    return speak


def row(payment: Payment, known: dict[str, Any]) -> dict[str, Any]:
    """The columns of bank/decided.py as far as they are known here, this payment counted in; rules over the others do
    not hold."""
    found: dict[str, Any] = {name: getattr(payment, name) for name in ("amount", "country", "at", "pin_ok")}
    for size in _SIZES:
        found[f"spent_{size}"] = (known[f"spent_{size}"] or 0) + payment.amount
        found[f"times_{size}"] = known[f"times_{size}"] + 1
    for size in ("5min", "1d"):
        found[f"misses_{size}"] = (known[f"misses_{size}"] or 0) + (not payment.pin_ok)
    if known["times_30d"]:
        found["usual"] = float(known["spent_30d"]) / known["times_30d"]
        found["ratio"] = float(payment.amount) / found["usual"] if found["usual"] else None
    if known["last_at"] is not None:
        found["since"] = (payment.at - known["last_at"]).total_seconds()
        places = known["last_lat"], known["last_lon"], payment.lat, payment.lon
        if None not in places:
            found["km"] = _km(*places)
            found["speed_kmh"] = found["km"] * 3600 / max(found["since"], 1.0)
    return found


def _km(lat: float, lon: float, lat2: float, lon2: float) -> float:
    """The way of a bird."""
    a, b = radians(lat), radians(lat2)
    half = sin((b - a) / 2) ** 2 + cos(a) * cos(b) * sin(radians(lon2 - lon) / 2) ** 2
    return 2 * EARTH_KM * asin(sqrt(half))
