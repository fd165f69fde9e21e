"""Jars are fetched once, resumed, verified at each start; a small Maven repository on disk stands for the registry."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.base.errors import ChecksumMismatch, DownloadInterrupted, UsageError
from headrace.stack import jars
from headrace.stack.ivy import MIRROR
from headrace.stack.jars import ROOTS, fetch, locked


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository with org.mill:wheel:1 and org.mill:race:2, and a lock of both."""
    root = tmp_path / "registry"
    lines = []
    for module, version in (("wheel", "1"), ("race", "2")):
        jar = root / "org" / "mill" / module / version / f"{module}-{version}.jar"
        jar.parent.mkdir(parents=True)
        jar.write_bytes(module.encode() * 1000)
        sha = hashlib.sha256(jar.read_bytes()).hexdigest()
        lines.append(f"mill org.mill:{module}:{version} {sha} {jar.stat().st_size}\n")
    (tmp_path / "test.lock").write_text("".join(lines))
    monkeypatch.setenv(MIRROR, root.as_uri())
    return root


def get(tmp_path: Path, **kwargs: object) -> list[Path]:
    return fetch("mill", tmp_path / "cache", lock=tmp_path / "test.lock", **kwargs)  # type: ignore[arg-type]


def test_fetching_tells_and_shows_progress_to_the_last_byte(registry: Path, tmp_path: Path) -> None:
    said: list[str] = []
    seen: list[tuple[int, int, str]] = []
    found = get(tmp_path, tell=said.append, progress=lambda *step: seen.append(step))
    assert [file.name for file in found] == ["wheel-1.jar", "race-2.jar"]
    assert said[0].startswith("fetching 2 jars of mill")
    assert seen[-1] == (9000, 9000, "2 of 2 jars")
    assert [step[0] for step in seen] == sorted(step[0] for step in seen)


def test_once_cached_the_registry_is_not_needed(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(tmp_path)
    monkeypatch.setenv(MIRROR, (tmp_path / "gone").as_uri())
    said: list[str] = []
    assert len(get(tmp_path, tell=said.append)) == 2
    assert said == []


def test_an_interrupted_download_keeps_what_arrived_and_goes_on(registry: Path, tmp_path: Path) -> None:
    late = registry / "org" / "mill" / "race"
    late.rename(tmp_path / "away")
    with pytest.raises(DownloadInterrupted, match=r"1 of 2 jars did not arrive.*race-2\.jar") as caught:
        get(tmp_path)
    assert "run again" in caught.value.fix
    (tmp_path / "away").rename(late)
    said: list[str] = []
    assert len(get(tmp_path, tell=said.append)) == 2
    assert said[0].startswith("fetching 1 jars")


def test_a_changed_byte_is_refused_with_both_sums(registry: Path, tmp_path: Path) -> None:
    wheel, _ = get(tmp_path)
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"!")
    wrong = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(ChecksumMismatch, match=r"wheel-1\.jar") as caught:
        get(tmp_path)
    assert f"expected {right}, found {wrong}" in caught.value.why
    wheel.unlink()
    assert len(get(tmp_path)) == 2


def test_a_registry_that_serves_something_else_is_refused(registry: Path, tmp_path: Path) -> None:
    (registry / "org" / "mill" / "race" / "2" / "race-2.jar").write_bytes(b"not the race")
    with pytest.raises(ChecksumMismatch, match=r"race-2\.jar"):
        get(tmp_path)


def test_two_processes_may_fetch_at_once(registry: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from headrace.stack.jars import fetch\n"
        "at = Path(sys.argv[1]); print(len(fetch('mill', at / 'cache', lock=at / 'test.lock')))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in both] == ["2", "2"]


def test_an_unknown_group_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        fetch("flume", tmp_path)
    assert "kafka" in caught.value.fix


@pytest.mark.parametrize("group", ROOTS)
def test_the_lock_holds_every_root_once(group: str) -> None:
    coordinates = [jar.coordinate for jar in locked(group)]
    assert set(ROOTS[group]) <= set(coordinates)
    assert len(coordinates) == len(set(coordinates))
    assert "://" not in jars.LOCK.read_text()
