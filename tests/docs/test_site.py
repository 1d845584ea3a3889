"""The documentation site: its check of links, and the pages that are written for it."""

from __future__ import annotations

import importlib
import json
import re
import sys
import tomllib
from pathlib import Path
from unittest import mock

import pytest

from generator import DOCS, GENERATE

with mock.patch.object(sys, "path", [str(DOCS), *sys.path]), mock.patch.dict(sys.modules, {"generate": GENERATE}):
    import build
    import site_links

START = '<a href="a.html#top">A</a>'
PAGES = {"index.html": START, "a.html": '<h1 id="top">A</h1><a href="b.html">B</a>', "b.html": ""}


@pytest.fixture
def site(tmp_path):
    """Write a site from pages by their names, and give its folder."""

    def write(**pages: str) -> Path:
        for name, text in {**PAGES, **pages}.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_links_of_a_sound_site_are_counted(site):
    assert str(site_links.report(site())) == "3 pages, 2 links, 0 faults"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('<a href="c.html">', "b.html: c.html leads nowhere"),
        ('<a href="a.html#end">', "b.html: a.html#end leads nowhere"),
        ('<a href="#end">', "b.html: #end leads nowhere"),
        ('<a href="../outside.html">', "b.html: ../outside.html leads nowhere"),
        ('<img src="picture.png">', "b.html: picture.png leads nowhere"),
        ('<script src="https://cdn.example/x.js"></script>', "b.html: loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "b.html: loads //cdn.example/x.css"),
    ],
)
def test_a_fault_of_a_page_is_reported(site, text, fault):
    (site().parent / "outside.html").touch()
    assert site_links.report(site(**{"b.html": text})).faults == [fault]


@pytest.mark.parametrize("text", ['<a href="https://example.org/">', '<a href="mailto:a@example.org">', '<a id="x">'])
def test_addresses_outside_the_site_are_no_faults(site, text):
    assert site_links.report(site(**{"b.html": text})).faults == []


def test_a_page_far_from_the_start_is_reported(site):
    pages = {"b.html": '<a href="c.html">C</a>', "c.html": ""}
    assert site_links.report(site(**pages)).faults == ["c.html: more than 2 clicks from the start"]


def test_the_navigation_has_every_page():
    navigation = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = [page for section in navigation for pages in section.values() for page in pages]
    own = {build.INDEX if path.name == "README.md" else path.name for path in DOCS.glob("*.md")}
    assert sorted(listed) == sorted({*own, *build.PAGES.values(), *(f"reference/{part}.md" for part in GENERATE.API)})


def test_links_of_the_readme_lead_to_pages_of_the_site():
    text = build.local((DOCS.parent / "README.md").read_text(encoding="utf-8"))
    assert "](tutorial.md)" in text
    assert "](overview.md)" in text
    assert "](contributing.md)" in text
    assert f"]({build.FILES}docs/" not in text
    assert f"]({build.RAW}" not in text


def test_names_of_the_api_lead_to_their_descriptions():
    page = build.linked((DOCS / "api.md").read_text(encoding="utf-8"))
    assert "| [`Supervisor.status()`][callboard.Supervisor.status] |" in page
    assert "[callboard.messages.Budget] |" in page
    assert len(re.findall(r"^\| `", page, re.MULTILINE)) == 0


@pytest.mark.parametrize("part", GENERATE.API)
def test_a_reference_page_has_every_public_name(part):
    module = "callboard" if part == "callboard" else f"callboard.{part}"
    page = build.reference(part)
    assert re.findall(r"^::: (.+)$", page, re.MULTILINE) == [f"{module}.{name}" for name in GENERATE.API[part]]


def test_public_packages_define_every_public_name():
    packages = build.public_packages()
    assert {"callboard", "callboard.messages", "callboard.actors.client"} <= packages
    assert {package.rpartition(".")[0] for package in packages} <= {*packages, ""}
    for part, names in GENERATE.API.items():
        module = importlib.import_module("callboard" if part == "callboard" else f"callboard.{part}")
        modules = [getattr(getattr(module, name), "__module__", "callboard.x") for name in names]
        own = {name.rpartition(".")[0] for name in modules if name.startswith("callboard.")}
        assert own <= packages


def test_the_theme_loads_its_scripts_from_the_site(tmp_path):
    (tmp_path / "assets").mkdir()
    page, script = tmp_path / "reference.html", tmp_path / "assets" / "theme.js"
    page.write_text('<script src="https://unpkg.com/iframe-worker/shim"></script>', encoding="utf-8")
    script.write_text('load("https://cdn.jsdelivr.net/pyodide/v1/full/")', encoding="utf-8")
    build.make_local(tmp_path)
    assert page.read_text(encoding="utf-8") == '<script src="vendor/iframe-worker/index.js"></script>'
    assert script.read_text(encoding="utf-8") == 'load("about:blank")'


def test_a_page_keeps_the_addresses_of_its_text(tmp_path):
    text = "<code>https://unpkg.com/mermaid</code>"
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    build.make_local(tmp_path)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", ["notes.txt", "index.html"])
def test_a_folder_with_other_files_is_not_replaced(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(SystemExit, match="has other files than a site"):
        build.build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("names", [[], ["sitemap.xml", "index.html"]])
def test_a_folder_that_is_empty_or_a_site_may_be_replaced(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    assert build.free(tmp_path) == tmp_path
    assert build.free(tmp_path / "new") == tmp_path / "new"


def test_the_newest_version_is_the_first_of_the_menu(tmp_path):
    for version in ("0.1", "0.2", "0.1"):
        build.add_version(tmp_path, version)
    versions = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [known["version"] for known in versions] == ["0.1", "0.2"]
    assert 'url=0.1/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")
