"""Redis alone, and a lake that is empty: features need no broker to be asked for."""

from __future__ import annotations

from tests.stores.conftest import redis_url as redis_url
