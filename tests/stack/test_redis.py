"""Redis: behind a password, and told apart when its file is damaged."""

from pathlib import Path

import pytest
import redis

from headrace.base.errors import CorruptData
from headrace.stack import stack


def test_it_asks_for_its_password(small: Path, cache: Path) -> None:
    url = stack.up(small, cache, parts=("redis",)).redis
    with (
        redis.Redis(port=int(url.rsplit(":", 1)[1].split("/")[0])) as client,
        pytest.raises(redis.AuthenticationError, match="authenticat"),
    ):
        client.ping()


def test_a_corrupted_file_is_named_with_a_way_on(small: Path, cache: Path) -> None:
    stack.up(small, cache, parts=("redis",))
    stack.down(small)
    (small / "redis" / "data" / "appendonly.aof").write_bytes(b"not a log of commands\r\n" * 10)
    with pytest.raises(CorruptData, match="the data of redis cannot be used") as caught:
        stack.up(small, cache, parts=("redis",))
    assert "Bad file format reading the append only file" in caught.value.why
    assert str(small / "redis") in caught.value.fix
