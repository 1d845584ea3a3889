"""The shipped files: the lists of pyproject.toml against the tree, and the installed package."""

from __future__ import annotations

import importlib
import re
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import callboard
from callboard.terminal import demo_names

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOL = PROJECT["tool"]["setuptools"]
BESIDE = {"tests", "docs", "examples", "benchmarks", "build", "dist", "runs"}
"""Folders at the root that are no part of the package."""


def folders() -> list[Path]:
    """Give the folders of the package, the root included."""
    below = (
        path
        for path in ROOT.rglob("*")
        if path.is_dir() and not any(part.startswith((".", "__")) for part in path.relative_to(ROOT).parts)
    )
    return [ROOT, *(p for p in below if p.relative_to(ROOT).parts[0] not in BESIDE and p.suffix != ".egg-info")]


def dotted(folder: Path) -> str:
    return ".".join(("callboard", *folder.relative_to(ROOT).parts))


def test_the_packages_that_are_listed_are_those_of_the_tree():
    there = {dotted(folder) for folder in folders() if any(folder.glob("*.py"))}
    assert set(TOOL["packages"]) == there


def test_the_list_of_packages_is_sorted_and_names_each_once():
    assert TOOL["packages"] == sorted(set(TOOL["packages"]))


def test_every_listed_package_has_its_init_file():
    files = {name: ROOT.joinpath(*name.split(".")[1:], "__init__.py") for name in TOOL["packages"]}
    assert [name for name, file in files.items() if not file.is_file()] == []


def test_only_what_belongs_to_the_root_of_a_package_stands_there():
    # Every Python file at the root is shipped: no conftest, no set-up script, no scratch file.
    facades = {"answers.py", "errors.py", "events.py", "kinds.py", "observe.py", "surface.py"}
    allowed = {"__init__.py", "__main__.py", "_lazy_names.py", "supervisor.py", *facades}
    assert {path.name for path in ROOT.glob("*.py")} <= allowed


def shipped_data() -> set[Path]:
    found = set()
    for package, patterns in TOOL["package-data"].items():
        folder = ROOT.joinpath(*package.split(".")[1:])
        found |= {path for pattern in patterns for path in folder.glob(pattern)}
    return found


def test_every_data_file_in_a_package_is_shipped():
    inside = {
        path
        for folder in folders()
        if folder != ROOT
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    assert inside - shipped_data() == set()


@pytest.mark.parametrize("name", demo_names())
def test_all_files_of_a_demo_are_shipped(name):
    files = {path for path in (ROOT / "examples" / name).rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert files - shipped_data() == set()


def test_all_pages_and_pictures_of_the_documentation_are_shipped():
    pages = {path for path in (ROOT / "docs").iterdir() if path.suffix in {".md", ".png", ".svg"}}
    assert {path for path in shipped_data() if path.parent == ROOT / "docs"} == pages


@pytest.mark.parametrize("kind", ["host", "app", "mobile", "linux"])
def test_the_prompt_of_each_kind_of_agent_is_readable_as_package_data(kind):
    prompt = resources.files("callboard.config").joinpath("prompts", f"{kind}.md")
    assert ROOT / "config" / "prompts" / f"{kind}.md" in shipped_data()
    assert prompt.read_text(encoding="utf-8").startswith("# ")


def test_package_is_marked_as_typed():
    assert ROOT / "py.typed" in shipped_data()
    assert resources.files("callboard").joinpath("py.typed").is_file()


def test_no_folder_of_ours_lands_in_site_packages_under_its_bare_name():
    assert TOOL["package-dir"] == {"callboard": "."}
    assert {name.split(".")[0] for name in TOOL["packages"]} == {"callboard"}


def test_the_installed_version_is_that_of_the_project():
    assert metadata.version("callboard") == PROJECT["project"]["version"]


def test_the_newest_release_of_the_changelog_is_that_of_the_project():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(.+)\] - (?:\d{4}-\d\d-\d\d|not yet released)$", text, re.MULTILINE)
    assert releases[0] == PROJECT["project"]["version"]
    assert len(releases) == text.count("\n## ")


def test_the_version_stands_in_one_place():
    modules = [path for folder in folders() for path in folder.glob("*.py")]
    assert [path for path in modules if "__version__" in path.read_text(encoding="utf-8")] == []


def test_every_command_of_the_project_can_be_called():
    for target in PROJECT["project"]["scripts"].values():
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("name", callboard.__all__)
def test_every_public_name_is_there_and_has_a_docstring_of_its_own(name):
    assert getattr(callboard, name).__doc__


def test_the_files_that_the_project_names_exist_and_are_not_empty():
    named = [PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]]
    assert [name for name in named if not (ROOT / name).is_file() or not (ROOT / name).stat().st_size] == []
