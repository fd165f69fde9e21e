"""`headrace rebuild`: it says what it would do, and which stores there are."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Headrace


def test_a_store_that_nobody_has_written_is_left_alone(headrace: Headrace, orders: str, tmp_path: Path) -> None:
    (module,) = tmp_path.glob("shop_*.py")
    module.write_text(f'{module.read_text()}orders.to(hr.lake("orders"))\norders.to(hr.files("orders"))\n')

    said = headrace("rebuild", "lake:orders", "--yes")
    assert (said.code, said.out, said.err) == (0, "", "no flow has written to lake:orders yet\n")
    assert headrace("rebuild", "lake:orders", "--json").json == {"store": "lake:orders", "done": False, "reads": []}
    said = headrace("rebuild", "orders")
    assert said.code == 2
    assert "'orders' names 2 stores of shop" in said.err
    assert "lake:orders, files:orders" in said.err


def test_which_app_must_be_clear(headrace: Headrace) -> None:
    said = headrace("rebuild", "lake:orders")
    assert said.code == 2
    assert "say --app NAME" in said.err
