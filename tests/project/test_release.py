"""The files of a release: the workflow, the templates of issues, and the check of installed pages."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import forks
from support import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
JOBS = yaml.safe_load((ROOT / ".github/workflows/gate.yml").read_text(encoding="utf-8"))["jobs"]
FORMS = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
SCRIPT = ROOT / ".ci" / "installed_pages"


@pytest.mark.parametrize("job", JOBS)
def test_a_job_ends_with_a_script_of_the_repository(job):
    script = ROOT / JOBS[job]["steps"][-1]["run"]
    assert os.access(script, os.X_OK)


def test_the_classifiers_name_the_versions_of_python_that_are_tried():
    versions = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    (setup,) = [step for step in JOBS["release"]["steps"] if "setup-python" in step.get("uses", "")]
    assert setup["with"]["python-version"].split() == versions
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_the_addresses_of_the_project_are_in_its_repository():
    urls = PROJECT["urls"]
    assert [url for url in urls.values() if not url.startswith(urls["Repository"])] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_has_described_fields(form):
    body = yaml.safe_load(form.read_text(encoding="utf-8"))["body"]
    assert all(field["attributes"]["description"] for field in body)


@pytest.fixture
def check_pages(tmp_path):
    """Check pages by the script, with a command that lists them; gives its exit code and output."""

    def check(**pages: str) -> tuple[int, str]:
        for name, text in pages.items():
            (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
        command = tmp_path / "callboard"
        lines = "\n".join([f"{tmp_path}:", "", *(f"{name}  Title" for name in pages)])
        command.write_text(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\n", encoding="utf-8")
        command.chmod(0o700)
        done = forks.run([sys.executable, str(SCRIPT), str(command)], timeout=PATIENCE)
        return done.returncode, done.stdout

    return check


def test_installed_pages_may_link_to_each_other_and_to_the_web(check_pages):
    text = "[b](b.md#part) [site](https://example.org) `[code](c.md)`"
    assert check_pages(a=text, b="# Part") == (0, "2 pages, 1 links to files, 0 lost, 0 names of absent files\n")


def test_an_installed_page_with_a_lost_link_is_reported(check_pages):
    code, output = check_pages(a="![picture](../picture.png)")
    assert code == 1
    assert "callboard docs a: ../picture.png is not installed\n" in output


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tests, `tests/project/test_release.py`.", "tests/project/test_release.py"),
        ("```\npython examples/fleet/run.py\n```", "examples/fleet/run.py"),
        ("    callboard run examples/sales_report --yes", "examples/sales_report"),
        ("measured by `python -m benchmarks.shell`", "benchmarks/shell.py"),
        ("    pytest -m slow tests/fleet", "tests/fleet"),
        ("see CONTRIBUTING.md", "CONTRIBUTING.md"),
        ("[its page](../pyproject.toml) is `./pyproject.toml`", "pyproject.toml"),
    ],
)
def test_an_installed_page_that_names_an_absent_file_is_reported(check_pages, text, name):
    code, output = check_pages(a=text)
    assert code == 1
    assert f"callboard docs a: {name} is not installed\n" in output


def test_installed_pages_may_name_files_by_links_to_the_repository(check_pages):
    text = "[run.py](https://example.org/blob/main/examples/fleet/run.py), `callboard demo sales_report`, `b.md`"
    assert check_pages(a=text, b="https://example.org/tests/fleet")[0] == 0


def test_a_list_without_pages_is_reported(check_pages):
    assert check_pages() == (1, "0 pages, 0 links to files, 0 lost, 0 names of absent files\n")
