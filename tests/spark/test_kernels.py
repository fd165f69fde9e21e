"""Kernels are compiled once per content, whoever asks first; a compiler's complaint is shown as it is."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from headrace.base.errors import KernelBroken
from headrace.base.settings import Settings
from headrace.spark import kernels
from headrace.spark.kernels import kernels_jar

GOOD = "package mill\nobject Wheel { def turns(n: Int): Int = n * 2 }\n"


@pytest.fixture
def cache(tmp_path: Path, settings: Settings) -> Path:
    """An own cache for kernels that shares the jars with the user's."""
    own = tmp_path / "cache"
    own.mkdir()
    (own / "ivy").symlink_to(settings.cache / "ivy")
    return own


def test_the_repository_has_kernels_and_their_jar_holds_their_classes(settings: Settings) -> None:
    assert any(file.name == "NioLocalFileSystem.scala" for file in kernels.sources())
    with ZipFile(kernels_jar(settings.cache)) as jar:
        assert "headrace/NioLocalFileSystem.class" in jar.namelist()


def test_a_second_call_compiles_nothing_and_a_changed_source_does(cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "Wheel.scala"
    source.write_text(GOOD)
    said: list[str] = []
    first = kernels_jar(cache, files=[source], tell=said.append)
    assert kernels_jar(cache, files=[source], tell=said.append) == first
    assert said == ["compiling 1 Scala files, once"]
    source.write_text(GOOD.replace("* 2", "* 3"))
    assert kernels_jar(cache, files=[source], tell=said.append) != first
    assert len(said) == 2


def test_a_compile_error_shows_the_compilers_text_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "Broken.scala"
    source.write_text("object Broken { val n: Int = nowhere }\n")
    with pytest.raises(KernelBroken, match="do not compile") as caught:
        kernels_jar(cache, files=[source])
    assert "Broken.scala:1" in caught.value.why
    assert "nowhere" in caught.value.why
    assert list((cache / "kernels").glob("*.jar")) == []


def test_two_processes_compile_once(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "Wheel.scala").write_text(GOOD)
    code = (
        "import sys; from pathlib import Path; from headrace.spark.kernels import kernels_jar\n"
        "kernels_jar(Path(sys.argv[1]), files=[Path(sys.argv[2])], tell=print)"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, cache, tmp_path / "Wheel.scala"], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = "".join(process.communicate()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert said.count("compiling") == 1
