"""Settings: who wins, where a value came from, and secrets that stay secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.base.errors import BadSetting
from headrace.base.settings import load


def test_flags_win_over_environment_over_file_over_default(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text('[kafka]\nbootstrap = "file:9092"\npartitions = 6\n')
    env = {"HEADRACE__KAFKA__BOOTSTRAP": "env:9092"}

    by_file = load(root=tmp_path, env={})
    by_env = load(root=tmp_path, env=env)
    by_flag = load({"kafka.bootstrap": "flag:9092"}, root=tmp_path, env=env)

    assert [s.text("kafka.bootstrap") for s in (by_file, by_env, by_flag)] == ["file:9092", "env:9092", "flag:9092"]
    assert by_file.values["kafka.bootstrap"].origin.endswith("headrace.toml")
    assert by_env.values["kafka.bootstrap"].origin == "HEADRACE__KAFKA__BOOTSTRAP"
    assert by_flag.values["kafka.bootstrap"].origin == "flag"
    assert by_flag.values["redis.url"].origin == "default"
    assert by_flag.number("kafka.partitions") == 6


def test_the_file_is_found_from_below_and_relative_paths_start_there(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text('home = "data"\n[apps]\nbank = "bank.app:bank"\n')
    (tmp_path / "a" / "b").mkdir(parents=True)
    found = load(root=tmp_path / "a" / "b", env={})
    assert found.home == tmp_path / "data"
    assert found.apps == {"bank": "bank.app:bank"}


def test_an_unknown_setting_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text('[kafka]\nbootstap = "x:1"\n')
    with pytest.raises(BadSetting) as caught:
        load(root=tmp_path, env={})
    assert "kafka.bootstrap" in caught.value.fix


def test_broken_toml_says_where(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("[kafka\n")
    with pytest.raises(BadSetting, match="cannot be read") as caught:
        load(root=tmp_path, env={})
    assert "line 1" in caught.value.why


def test_secrets_are_resolved_by_reference_and_masked_when_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pw").write_text("from-file\n")
    monkeypatch.setenv("KAFKA_PW", "from-env")
    by_env = load({"kafka.password": "${env:KAFKA_PW}"}, root=tmp_path, env={})
    by_file = load({"kafka.password": f"${{file:{tmp_path / 'pw'}}}"}, root=tmp_path, env={})
    plain = load({"kafka.password": "hunter2"}, root=tmp_path, env={})

    assert by_env.text("kafka.password") == "from-env"
    assert by_file.text("kafka.password") == "from-file"
    assert by_env.values["kafka.password"].shown == "${env:KAFKA_PW}"
    assert plain.values["kafka.password"].shown == "********"
    assert "hunter2" not in repr(plain)


def test_a_missing_reference_says_which(tmp_path: Path) -> None:
    found = load({"kafka.password": "${env:NOT_SET_ANYWHERE}"}, root=tmp_path, env={})
    with pytest.raises(BadSetting, match="NOT_SET_ANYWHERE"):
        found.text("kafka.password")


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="not a number"):
        load({"kafka.partitions": "many"}, root=tmp_path, env={}).number("kafka.partitions")


def test_the_lake_and_files_lie_in_the_home_unless_told_otherwise(tmp_path: Path) -> None:
    default = load({"home": "here"}, root=tmp_path, env={})
    assert (default.lake, default.files) == (tmp_path / "here" / "lake", tmp_path / "here" / "files")
    told = load({"lake.path": "wide", "files.path": "/srv/files"}, root=tmp_path, env={})
    assert (told.lake, told.files) == (tmp_path / "wide", Path("/srv/files"))
