"""HTTP services: decisions while somebody waits, the live page, the review queue; no Spark in this process."""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("headrace.serve")
LOGGER.addHandler(logging.NullHandler())
