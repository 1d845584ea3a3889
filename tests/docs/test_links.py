"""Links of the pages lead to installed files, to their headings, or to files of the repository."""

from __future__ import annotations

import ast
import functools
import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PROJECT["project"]["urls"]["Repository"]
TOOL = PROJECT["tool"]["setuptools"]
FOLDERS = {name: ROOT.joinpath(*name.split(".")[1:]) for name in TOOL["packages"]}
INSTALLED = {
    path
    for name, patterns in TOOL["package-data"].items()
    for pattern in patterns
    for path in FOLDERS[name].glob(pattern)
}
SOURCES = {path for folder in FOLDERS.values() for path in folder.glob("*.py")}
PACKAGED = INSTALLED | SOURCES
PACKAGED_FOLDERS = {folder for path in PACKAGED for folder in path.parents}
CHECK = runpy.run_path(str(ROOT / ".ci" / "installed_pages"))
FENCED = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
every_installed_page = pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
every_page = pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]), ids=lambda path: path.name
)


def prose_of(page: Path) -> str:
    """Give a page without its blocks of code."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def links_of(page: Path) -> list[tuple[str, str]]:
    """Give the addresses of a page's links and pictures, each as its path and its anchor."""
    addresses = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose_of(page)))
    return [(path, anchor) for path, _, anchor in (address.partition("#") for address in addresses)]


@functools.cache
def anchors_of(page: Path) -> set[str]:
    """Give the anchors that forges and the site make of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def absent_names(text: str, folder: Path = ROOT) -> list[str]:
    """List the named files that are not installed.

    Examples count as such, since only `callboard demo` reaches them.
    """
    names = [name for name in CHECK["names"](text) if folder / name not in PACKAGED]
    return [name for name in names if name.startswith("examples/") or ROOT / name not in PACKAGED | PACKAGED_FOLDERS]


@every_installed_page
def test_relative_links_lead_to_installed_files(page):
    local = {path for path, _ in links_of(page) if path and "://" not in path and not path.startswith("mailto:")}
    assert [path for path in local if (page.parent / path).resolve() not in INSTALLED] == []


@every_page
def test_anchors_are_those_of_a_heading(page):
    targets = [(page.parent / path if path else page, anchor) for path, anchor in links_of(page) if "://" not in path]
    anchors = [(target, anchor) for target, anchor in targets if anchor and target.suffix == ".md"]
    assert [(target.name, anchor) for target, anchor in anchors if anchor not in anchors_of(target.resolve())] == []


@every_page
def test_absolute_links_to_files_lead_to_the_project(page):
    files = [path for path, _ in links_of(page) if re.search(r"/(blob|raw)/main/", path)]
    assert [path for path in files if not path.startswith(f"{REPOSITORY}/")] == []
    paths = [re.sub(rf"^{re.escape(REPOSITORY)}/(blob|raw)/main/", "", path) for path in files]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_links_of_the_readme_work_on_an_index_page():
    assert [path for path, _ in links_of(ROOT / "README.md") if not path.startswith("https://")] == []


@every_installed_page
def test_a_page_names_no_file_that_is_not_installed(page):
    assert absent_names(page.read_text(encoding="utf-8"), page.parent) == []


def test_texts_of_the_program_name_no_file_that_is_not_installed():
    against = []
    for path in sorted(SOURCES):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr) and path.parent.name != "terminal"}
        constants = [node for node in nodes if isinstance(node, ast.Constant) and node not in docstrings]
        text = "\n".join(node.value for node in constants if isinstance(node.value, str))
        names = [*absent_names(text), *re.findall(r"\bexamples/", text)]
        against += [f"{path.relative_to(ROOT)}: {name}" for name in names]
    assert against == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/*.yaml")), ids=lambda path: path.parent.name)
def test_installed_examples_name_no_file_that_is_not_installed(path):
    assert absent_names(path.read_text(encoding="utf-8").replace("$schema=../../", ""), path.parent) == []
