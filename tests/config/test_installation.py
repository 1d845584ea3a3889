"""The command that installs an extra names the place that the package was installed from."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

from callboard.config import install_command

ROOT = Path(__file__).resolve().parents[2]
WHEEL = "https://example.org/callboard-0.1.0-py3-none-any.whl"


class Distribution:
    def __init__(self, record):
        self._record = record

    def read_text(self, name):
        assert name == "direct_url.json"
        return self._record


@pytest.fixture(autouse=True)
def _fresh():
    install_command.cache_clear()
    yield
    install_command.cache_clear()


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (None, "pip install 'callboard[models]'"),
        ("{broken", "pip install 'callboard[models]'"),
        ("[]", "pip install 'callboard[models]'"),
        ({"url": "file:///nowhere/at/all", "dir_info": {}}, "pip install 'callboard[models]'"),
        ({"url": WHEEL, "archive_info": {}}, f"pip install 'callboard[models] @ {WHEEL}'"),
        (
            {"url": "https://example.org/callboard.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'callboard[models] @ git+https://example.org/callboard.git'",
        ),
    ],
)
def test_command_names_the_origin(monkeypatch, record, command):
    text = record if isinstance(record, str | None) else json.dumps(record)
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: [Distribution(None), Distribution(text)])
    assert install_command("models") == command


@pytest.mark.parametrize(("editable", "option"), [(True, "-e "), (False, "")])
def test_command_names_the_folder_of_a_clone(monkeypatch, tmp_path, editable, option):
    clone = tmp_path / "my clone"
    clone.mkdir()
    record = json.dumps({"url": clone.as_uri(), "dir_info": {"editable": editable}})
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: [Distribution(record)])
    assert install_command("ssh") == f"pip install {option}'{clone}[ssh]'"


def test_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: [])
    assert install_command("models") == "pip install 'callboard[models]'"


def test_no_text_names_a_package_of_an_index():
    pages = [*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    modules = [path for path in ROOT.rglob("*.py") if not {"tests", "build"} & set(path.relative_to(ROOT).parts)]
    named = re.compile(r"pip install [^\n`]*callboard\[[\w,-]+\](?! @)")
    against = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in (*pages, *modules)
        for line in path.read_text(encoding="utf-8").splitlines()
        if named.search(line) and "does not work" not in line
    ]
    assert against == []
