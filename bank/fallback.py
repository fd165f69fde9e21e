"""What the service says when the flow does not answer in time: the rules alone, over what Redis has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from bank.events import Payment
from bank.record import card, customer, terminal


def fallback(vectors: hr.Stream) -> Callable[[Any], Callable[[Payment], dict[str, Any]]]:
    """Follows the published rules over the row that the flow will have for a payment, as far as it is known here: rules
    over what tables tell do not hold. Redis is asked once a payment."""

    def connected(client: Any) -> Callable[[Payment], dict[str, Any]]:
        ahead, stands = client.ahead(vectors, card, terminal, customer), client.policy("fraud").follow()

        def speak(payment: Payment) -> dict[str, Any]:
            said = stands().decide(ahead(payment), model=False)
            return {"decision": said.decision, "reasons": list(said.reasons), "rules_version": said.rules_version}

        return speak

    return connected
