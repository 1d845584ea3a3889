"""The pages of the documentation on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from callboard.terminal import page_names

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
