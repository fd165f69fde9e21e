"""A checkpoint that was copied or moved: Spark writes whole paths into its state, and they are made to fit again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from headrace.spark import checksum


def settle(spark: Path) -> None:
    """Lets the state name the schemas that lie beside it, and not those where it was made: they may be gone, or belong
    to another driver. A damaged file is left alone: with a new checksum it would seem whole."""
    for file in spark.absolute().glob("state/*/_metadata/v2/*"):
        place = f"file:{file.parents[2]}"
        if file.name.isdigit() and checksum.check(file) != "bad" and f'"{place}/' not in file.read_text():
            checksum.edit(file, partial(_moved, place))


def _moved(place: str, told: dict[str, Any]) -> dict[str, Any]:
    stores = [
        store | {"stateSchemaFilePaths": [_here(place, path) for path in store["stateSchemaFilePaths"]]}
        for store in told["stateStoreInfo"]
    ]
    return told | {"stateStoreInfo": stores}


def _here(place: str, path: str) -> str:
    """.../_stateSchema/<store>/<file>"""
    return "/".join((place, *path.split("/")[-3:]))
