"""What the service says when the flow does not answer in time: the rules alone, over what Redis has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from bank.events import Payment
from bank.record import card, customer, customers, terminal


def fallback(vectors: hr.Stream) -> Callable[[Any], Callable[[Payment], dict[str, Any]]]:
    """Follows the published rules over the row that the flow will have for a payment: its features and the customer's
    profile are what `record` has written by now. Redis is asked once a payment."""

    def connected(client: Any) -> Callable[[Payment], dict[str, Any]]:
        ahead = client.ahead(vectors, card, terminal, customer, customers)
        stands = client.policy("fraud").follow()

        def speak(payment: Payment) -> dict[str, Any]:
            said = stands().decide(ahead(payment), model=False)
            return {"decision": said.decision, "reasons": list(said.reasons), "rules_version": said.rules_version}

        return speak

    return connected
