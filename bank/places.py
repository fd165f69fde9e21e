"""Where the bank's customers live and pay: cities, and the terminals around them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

CITIES = (
    ("DE", 52.52, 13.40), ("DE", 48.14, 11.58), ("DE", 53.55, 9.99), ("FR", 48.86, 2.35), ("FR", 45.76, 4.84),
    ("IT", 41.90, 12.50), ("IT", 45.46, 9.19), ("NL", 52.37, 4.90), ("PL", 52.23, 21.01), ("PL", 50.06, 19.94),
    ("ES", 40.42, -3.70), ("ES", 41.39, 2.17), ("SE", 59.33, 18.07), ("PT", 38.72, -9.14), ("AT", 48.21, 16.37),
    ("CH", 47.38, 8.54), ("BR", -23.55, -46.63), ("US", 40.71, -74.01), ("ID", -6.21, 106.85), ("ZA", -26.20, 28.05),
)  # fmt: skip
"""Country, latitude, longitude."""
HOMES = 16
"""So many of them are homes; the others are far away from all of those."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal in a shop."""

    id: str
    city: int
    country: str
    lat: float
    lon: float


def terminals(random: Random, count: int) -> list[list[Terminal]]:
    """That many terminals, by city."""
    found: list[list[Terminal]] = [[] for _ in CITIES]
    for number in range(count):
        city = number % len(CITIES)
        country, lat, lon = CITIES[city]
        place = round(lat + random.gauss(0, 0.1), 5), round(lon + random.gauss(0, 0.1), 5)
        found[city].append(Terminal(f"{country.lower()}-{number:05}", city, country, *place))
    return found
