"""Finding an app (rule F4): by its name in headrace.toml, by its directory, or by module and variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.base.errors import AppNotFound
from headrace.base.ids import random_id
from headrace.base.settings import Settings, load
from headrace.ops import apps

ONE = 'import headrace as hr\napp = hr.App("{name}")\n'

TWO = """
import headrace as hr


@hr.event(topic="a", key="x")
class A:
    x: str


@hr.event(topic="b", key="x")
class B:
    x: str


one, two = hr.App("one"), hr.App("two")
one.stream(A, disorder="0 s").to(one.topic("b"))
two.stream(B, disorder="0 s").to(two.topic("c"))
"""


@pytest.fixture
def unique() -> str:
    """A module name that no other test has imported."""
    return f"m{random_id()[:10]}"


def at(root: Path) -> Settings:
    return load(root=root, env={})


def test_f4_headrace_toml_names_module_and_variable(tmp_path: Path, unique: str) -> None:
    (tmp_path / f"{unique}.py").write_text(ONE.format(name="one") + 'other = hr.App("other")\n')
    (tmp_path / "headrace.toml").write_text(f'[apps]\nshop = "{unique}:other"\n')
    assert apps.find("shop", at(tmp_path)).name == "other"


def test_f4_a_module_in_a_package_is_found_from_the_directory_of_headrace_toml(tmp_path: Path, unique: str) -> None:
    (tmp_path / unique).mkdir()
    (tmp_path / unique / "__init__.py").write_text('"""A package."""\n')
    (tmp_path / unique / "app.py").write_text(ONE.format(name="one"))
    (tmp_path / "headrace.toml").write_text(f'[apps]\nshop = "{unique}.app:app"\n')
    assert apps.find("shop", at(tmp_path)).name == "one"


def test_f4_a_directory_with_app_py_needs_no_setting(tmp_path: Path, unique: str) -> None:
    (tmp_path / unique).mkdir()
    (tmp_path / unique / "app.py").write_text(ONE.format(name="one"))
    assert apps.find(unique, at(tmp_path)).name == "one"


def test_f4_two_apps_in_one_module_need_a_name(tmp_path: Path, unique: str) -> None:
    (tmp_path / f"{unique}.py").write_text(ONE.format(name="one") + 'other = hr.App("other")\n')
    with pytest.raises(AppNotFound, match="holds 2 apps"):
        apps.find(unique, at(tmp_path))
    assert apps.find(f"{unique}:other", at(tmp_path)).name == "other"


def test_an_app_that_is_not_there_is_named_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text('[apps]\nbank = "x:y"\n')
    with pytest.raises(AppNotFound, match="there is no app 'bnk'") as refused:
        apps.find("bnk", at(tmp_path))
    assert refused.value.fix == "did you mean 'bank'?"


def test_the_only_app_is_the_default_and_of_several_one_must_be_said(tmp_path: Path, unique: str) -> None:
    assert apps.chosen(None, at(tmp_path)) is None
    (tmp_path / f"{unique}.py").write_text(ONE.format(name="one"))
    (tmp_path / "headrace.toml").write_text(f'[apps]\nshop = "{unique}:app"\n')
    chosen = apps.chosen(None, at(tmp_path))
    assert chosen is not None
    assert chosen.name == "one"
    (tmp_path / "headrace.toml").write_text(f'[apps]\nshop = "{unique}:app"\nstall = "{unique}:app"\n')
    with pytest.raises(AppNotFound, match="which app is not clear"):
        apps.chosen(None, at(tmp_path))


def test_a_topic_is_typed_by_the_app_that_reads_it_before_one_that_writes_it(tmp_path: Path, unique: str) -> None:
    (tmp_path / f"{unique}.py").write_text(TWO)
    (tmp_path / "headrace.toml").write_text(f'[apps]\none = "{unique}:one"\ntwo = "{unique}:two"\n')
    named = {topic: apps.knowing(topic, None, at(tmp_path)) for topic in ("a", "b", "c", "d")}
    assert {topic: app and app.name for topic, app in named.items()} == {"a": "one", "b": "two", "c": "two", "d": None}
    assert getattr(apps.knowing("a", "two", at(tmp_path)), "name", None) == "two"


@pytest.mark.parametrize(("path", "rename"), [("site.py", "the file"), ("queue/app.py", "the directory")])
def test_an_app_named_like_a_module_of_pythons_own_is_refused(tmp_path: Path, path: str, rename: str) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(ONE.format(name="one"))
    with pytest.raises(AppNotFound, match="is named like a module of Python's own") as refused:
        apps.find(path.split("/")[0].removesuffix(".py"), at(tmp_path))
    assert refused.value.fix == f"rename {rename}"
