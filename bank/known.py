"""What payments proved to be: the frauds that nobody took back, and since when each is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import headrace as hr

Ask = Callable[[str], Sequence[Mapping[str, Any]]]
"""The lake, in SQL."""

_FRAUDS = """
select payment_id, min(at) as at from lake.labels as said
where fraud = 1 and not exists (
    select 1 from lake.labels as later
    where later.payment_id = said.payment_id and later.fraud = 0 and later.at >= said.at
)
group by payment_id
"""


def frauds(ask: Ask) -> dict[str, datetime]:
    """By payment. The latest label of each counts: people correct themselves."""
    try:
        return {one["payment_id"]: one["at"] for one in ask(_FRAUDS)}
    except hr.HeadraceError as refused:
        if refused.code != "table-missing":
            raise
        return {}  # the first label makes the table
