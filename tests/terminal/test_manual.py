"""The pages of the documentation on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import Result

from callboard.terminal import _manual, page_names

Call = Callable[..., Result]
DOCS = Path(__file__).parents[2] / "docs"


def test_each_page_is_listed_with_its_title(call: Call) -> None:
    lines = call("docs").stdout.splitlines()
    assert lines[0] == f"{DOCS}:"
    assert "README           Documentation" in lines
    assert "troubleshooting  Troubleshooting" in lines
    assert page_names() == sorted(path.stem for path in DOCS.glob("*.md"))


@pytest.mark.parametrize("name", ["models", "models.md", "docs/models.md"])
def test_a_page_is_printed(call: Call, name: str) -> None:
    result = call("docs", name)
    assert (result.exit_code, result.stdout) == (0, (DOCS / "models.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", ["modles", "../README", "docs/../../README.md", str(DOCS / "models.md"), "", "\x1b[2J", "a\0b", "x" * 9000]
)
def test_a_page_that_is_not_listed_is_refused(call: Call, name: str) -> None:
    result = call("docs", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no page" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_terminal_wraps_a_page_and_keeps_its_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = f"    {'word ' * 20}end\n"
    (tmp_path / "page.md").write_text(
        f"# A page\n\n{'word ' * 30}\n\n| key | meaning |\n|---|---|\n| a | [b](c.md) |\n\n{code}", encoding="utf-8"
    )
    monkeypatch.setattr(_manual, "_FOLDER", tmp_path)
    screen = Console(width=40, file=StringIO(), force_terminal=True, color_system=None)
    _manual.print_page(screen, "page")
    assert isinstance(screen.file, StringIO)
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", screen.file.getvalue()).splitlines()]
    assert lines[0] == "A page"
    assert code.strip() in lines
    assert all(len(line) <= 40 for line in lines if line != code.strip())
    assert any("b (c.md)" in line and "|" not in line for line in lines)
