"""The bank's patterns, declared once: what looks like somebody else with a customer's card.

In `decide` they find an act at the payment that completes it, in the order in which payments come; in `record` in the
order of time, for the lake and for whoever asks without the flow.
"""

from __future__ import annotations

import headrace as hr


def acts(app: hr.App, payments: hr.Stream) -> hr.Stream:
    """Suspicious acts: of whom, with which card, at which payment, and by which pattern they were found."""
    # Three wrong PINs, then the right one.
    guessing = (
        app.pattern("guessing", key="card_id", select=_told("guessing", "paid"))
        .first("miss", payments.where("not pin_ok"))
        .times(3)
        .then("paid", payments.where("pin_ok"))
        .within("5 min")
    )
    # A payment that the card cannot have travelled to from the one before it, at the speed of a plane; in whichever
    # order the two come.
    travel = (
        app.pattern("travel", key="card_id", select=_told("travel", "there"))
        .first("here", payments)
        .next(
            "there",
            where="distance_km(here.lat, here.lon, there.lat, there.lon) > "
            "50 + 900 * abs(seconds_between(here.at, there.at)) / 3600",
        )
        .within("1 d")
    )
    return guessing.matches.union(travel.matches).named("acts")


def _told(pattern: str, last: str) -> str:
    return f"{last}.customer_id, card_id, {last}.payment_id, '{pattern}' as pattern, {last}.at"
