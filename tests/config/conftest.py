"""A settings file, in an environment without our variables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_variables_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("CALLBOARD_", "MCPSERVERS")):
            monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a settings file; returns its path."""

    def write_text(text: str) -> Path:
        file = tmp_path / "callboard.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return write_text
