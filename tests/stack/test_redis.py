"""Redis: behind a password, and told apart when its file is damaged."""

from pathlib import Path

import pytest

from headrace.base.errors import CorruptData
from headrace.stack import answer, stack
from headrace.stack.answer import Answer


def test_it_asks_for_its_password(small: Path, cache: Path) -> None:
    url = stack.up(small, cache, parts=("redis",)).redis
    assert answer.redis(url) == Answer("running")
    found = answer.redis(f"redis://{url.rpartition('@')[2]}")
    assert (found.state, "uthenticat" in found.why) == ("refused", True)


def test_a_corrupted_file_is_named_with_a_way_on(small: Path, cache: Path) -> None:
    stack.up(small, cache, parts=("redis",))
    stack.down(small)
    (small / "redis" / "data" / "appendonly.aof").write_bytes(b"not a log of commands\r\n" * 10)
    with pytest.raises(CorruptData, match="the data of redis cannot be used") as caught:
        stack.up(small, cache, parts=("redis",))
    assert "Bad file format reading the append only file" in caught.value.why
    assert str(small / "redis") in caught.value.fix
