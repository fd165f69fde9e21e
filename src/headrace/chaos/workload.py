"""The bank that the harness torments: transfers between accounts; all its results can be computed anew from the log.

Everything that outlives a batch is in it: a copy of each row, windows with late rows, running balances, a view with
retractions, a Python function in workers, and every kind of store. It is an app as any other:
`headrace run headrace.chaos.workload:bank`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import headrace as hr

WINDOW = "10 s"
DISORDER = "5 s"


@hr.event(topic="chaos-transfers", key="card", time="at", id="transfer")
class Transfer:
    """Money from one account to another."""

    transfer: int
    card: str
    payer: str
    payee: str
    cents: int
    at: datetime


@hr.event(topic="chaos-accounts", key="account", time="changed")
class Account:
    """An account as its branch keeps it."""

    account: str
    branch: str
    cents: int
    changed: datetime


def real(transfer: Any) -> bool:
    """Transfers of nothing are made, and are to be filtered."""
    return bool(transfer.cents > 0)


bank = hr.App("chaos")
transfers = bank.stream(Transfer, disorder=DISORDER, name="transfers")
made = transfers.where(real)
ledger = made.select("transfer, card, cents, at")
ledger.to(bank.topic("chaos-ledger", partitions=1))
ledger.to(hr.lake("chaos_ledger"))
spend = made.window(hr.tumbling(WINDOW), lateness="0 s").agg(times=hr.count(), cents=hr.sum("cents"))
spend.to(bank.topic("chaos-spend", partitions=1))
spend.to(hr.postgres("chaos_spend", key="card, window_start"))
spend.late.to(bank.topic("chaos-late", partitions=1))
# Both legs of a transfer are in one batch, for they come of one row: each batch leaves the sum of balances at zero.
paid = made.select("payer as account, -cents as cents, at")
received = made.select("payee as account, cents, at")
moves = paid.union(received).key_by("account")
balances = moves.window(hr.forever(), emit=hr.on_change()).agg(cents=hr.sum("cents"), moves=hr.count())
balances.to(bank.topic("chaos-balances", partitions=1))
balances.to(hr.postgres("chaos_balances", key="account"))
balances.to(hr.redis("chaos-balance:{account}"))

accounts = bank.table(Account, name="accounts")
branches = accounts.group_by("branch").agg(accounts=hr.count(), cents=hr.sum("cents"))
branches.to(bank.topic("chaos-branches", partitions=1), as_changes=True)
branches.to(hr.postgres("chaos_branches"))
