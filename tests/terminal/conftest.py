"""The command line in an empty folder, and folders to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from support import command_line


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty working folder of the command line."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def call(here: Path) -> Callable[..., Result]:
    """Call the command line there: ``call("run", "example")``."""
    return command_line


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Make a folder to run: the host's answers, other files, settings."""

    def make(*answers: dict[str, Any], files: dict[str, str] | None = None, **settings: Any) -> Path:
        place = tmp_path / "job"
        (place / "workspace").mkdir(parents=True)
        models = {"host": "scripted:script.yaml"}
        written = {
            "callboard.yaml": yaml.safe_dump({"models": models, "documents": {"workspace": "workspace"}, **settings}),
            "task.yaml": "request: do it\n",
            "script.yaml": yaml.safe_dump({"host": list(answers)}),
            **(files or {}),
        }
        for name, text in written.items():
            (place / name).write_text(text, encoding="utf-8")
        return place

    return make
