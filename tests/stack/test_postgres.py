"""PostgreSQL: behind a password, readable by its owner alone, under directories that only root may enter, healed."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import psutil
import psycopg
import pytest

from headrace.base.errors import CorruptData
from headrace.stack import guard, postgres, stack
from headrace.stack.stack import Addresses


def test_it_asks_for_its_password(home: Path, running: Addresses) -> None:
    url = running.postgres
    password = (home / "postgres" / "password").read_text()
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url.replace(password, "guess"))
    assert stat.S_IMODE((home / "postgres" / "password").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has directories that PostgreSQL's own user cannot enter")
def test_root_may_keep_it_where_nobody_else_can_look(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given data and binaries below a directory that is root's alone
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    wheel = postgres._binaries().parents[1]
    shutil.copytree(wheel / "pginstall18", closed / wheel.name / "pginstall18")
    shutil.copytree(wheel.with_name(f"{wheel.name}.libs"), closed / f"{wheel.name}.libs")
    (closed / wheel.name / "__init__.py").touch()
    monkeypatch.syspath_prepend(closed)
    try:
        # then it works, not as root, and nothing was opened to others
        with psycopg.connect(stack.up(closed / "home", cache, parts=("postgres",)).postgres) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        server = psutil.Process(guard.notes(closed / "home")["postgres"].pid)
        assert server.exe().startswith(str(closed))
        assert server.uids().effective != 0
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    finally:
        stack.down(closed / "home")


def test_a_stale_lock_that_names_a_stranger_is_healed(stopped: Path, cache: Path) -> None:
    # given a crash, after which another process of the same user got the server's pid
    user = "nobody" if os.geteuid() == 0 else None
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=user)
    data = stopped / "postgres" / "data"
    (data / "postmaster.pid").write_text(f"{stranger.pid}\n{data}\n1700000000\n")
    # then it comes up all the same
    assert stack.up(stopped, cache, parts=("postgres",)).postgres
    assert stranger.poll() is None
    stranger.communicate()


def damage_control(data: Path) -> None:
    (data / "global" / "pg_control").write_bytes(b"x" * 296)


def lose_wal(data: Path) -> None:
    for segment in (data / "pg_wal").glob("0*"):
        segment.unlink()


def lose_version(data: Path) -> None:
    (data / "PG_VERSION").unlink()


def lose_database(data: Path) -> None:
    for file in (data / "base").iterdir():
        file.rename(data / file.name)


@pytest.mark.parametrize("damage", [damage_control, lose_wal, lose_version, lose_database])
def test_corrupted_data_are_named_with_a_way_on(stopped: Path, cache: Path, damage) -> None:  # type: ignore[no-untyped-def]
    damage(stopped / "postgres" / "data")
    with pytest.raises(CorruptData, match="the data of postgres cannot be used") as caught:
        stack.up(stopped, cache, parts=("postgres",))
    assert caught.value.why
    assert str(stopped / "postgres") in caught.value.fix


def test_a_lost_password_is_told_as_such(stopped: Path, cache: Path) -> None:
    (stopped / "postgres" / "password").unlink()
    with pytest.raises(CorruptData, match="cannot be used") as caught:
        stack.up(stopped, cache, parts=("postgres",))
    assert "password" in caught.value.why


def test_an_interrupted_first_start_is_begun_again(small: Path, cache: Path) -> None:
    (small / "postgres" / "data.new").mkdir(parents=True)
    (small / "postgres" / "data.new" / "PG_VERSION").write_text("18")
    assert stack.up(small, cache, parts=("postgres",)).postgres
