"""A driver in a process of its own: opens a store, commits batches, and says what became of it."""

from __future__ import annotations

import pickle
import sys

from headrace.base.errors import HeadraceError


def main() -> str:
    make, owner, batches = pickle.load(sys.stdin.buffer)
    store = make()
    try:
        store.open(owner)
        for batch in batches:
            store.commit(batch)
        return "ok"
    except HeadraceError as failed:
        return failed.code


if __name__ == "__main__":
    sys.stdout.write(main())
