"""The JSON form: stable, complete, and different for different trees."""

from __future__ import annotations

import json
from random import Random

from headrace.expr import parse, to_json
from headrace.expr.types import MONEY, TIME, Column
from tests.expr.trees import Trees


def test_the_form_is_stable() -> None:
    columns = (Column("amount", MONEY), Column("at", TIME, nullable=True))
    tree = parse("amount > 1.5 and buy.at + interval '5 min' < '1970-01-01T00:00:01Z'", columns, names={"buy": columns})
    assert to_json(tree) == {
        "call": "and",
        "args": [
            {
                "call": ">",
                "args": [
                    {"ref": "amount", "type": "money"},
                    {"cast": {"literal": "1.5", "type": "decimal(2, 1)"}, "type": "money"},
                ],
                "type": "bool",
            },
            {
                "call": "<",
                "args": [
                    {
                        "call": "+",
                        "args": [
                            {"ref": "at", "of": "buy", "type": "time"},
                            {"literal": 300_000, "type": "duration"},
                        ],
                        "type": "time",
                    },
                    {"literal": 1_000_000, "type": "time"},
                ],
                "type": "bool",
            },
        ],
        "type": "bool",
    }


def test_different_trees_have_different_forms() -> None:
    trees = {str(tree): tree for tree in (Trees(Random(seed)).expr(2) for seed in range(500))}
    assert len({json.dumps(to_json(tree)) for tree in trees.values()}) == len(trees)
