"""The stores of the bank as their readers find them: PostgreSQL by SQL, Redis by key, the lake by DuckDB."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import redis

from headrace.chaos.books import Window
from headrace.stores import lake_sql


@dataclass(slots=True)
class Stored:
    """What stands in every store at one moment."""

    spend: dict[Window, tuple[int, int]] = field(default_factory=dict)
    """PostgreSQL: transfers and cents of each window."""
    balances: dict[str, tuple[int, int]] = field(default_factory=dict)
    """PostgreSQL: cents and moves of each account."""
    branches: dict[str, tuple[int, int]] = field(default_factory=dict)
    """PostgreSQL: accounts and cents of each branch."""
    cached: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Redis: cents and moves of each account."""
    ledger: list[int] = field(default_factory=list)
    """The lake: every transfer."""
    notes: list[tuple[str, str, int]] = field(default_factory=list)
    """PostgreSQL's ledger: store, flow, the last batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Where the stores are."""

    postgres: str = field(repr=False)
    redis: str = field(repr=False)
    lake: Path

    def sum(self) -> int:
        """Of all balances, in one question."""
        with psycopg.connect(self.postgres, connect_timeout=2) as connection:
            found = connection.execute("SELECT coalesce(sum(cents), 0) FROM chaos_balances").fetchone()
        return int(found[0]) if found is not None else 0

    def read(self) -> Stored:
        stored = Stored()
        with psycopg.connect(self.postgres, connect_timeout=5) as connection:
            spend = connection.execute("SELECT card, window_start, times, cents FROM chaos_spend")
            stored.spend = {(card, start): (times, int(cents)) for card, start, times, cents in spend}
            balances = connection.execute("SELECT account, cents, moves FROM chaos_balances")
            stored.balances = {account: (int(cents), moves) for account, cents, moves in balances}
            branches = connection.execute("SELECT branch, accounts, cents FROM chaos_branches")
            stored.branches = {branch: (accounts, int(cents)) for branch, accounts, cents in branches}
            stored.notes = connection.execute("SELECT store, flow, batch FROM headrace_ledger").fetchall()
        with redis.Redis.from_url(self.redis) as client:
            rows = [json.loads(client.get(key) or b"") for key in client.scan_iter(match="chaos-balance:*", count=1000)]
        stored.cached = {row["account"]: (row["cents"], row["moves"]) for row in rows}
        transfers = lake_sql.ask(self.lake, "select transfer from lake.chaos_ledger").rows
        stored.ledger = [row["transfer"] for row in transfers]
        return stored
