"""Texts in lines of a terminal's width."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from callboard.terminal._text import print_hanging


def test_a_word_that_is_wider_than_the_terminal_stays_whole() -> None:
    output = io.StringIO()
    console = Console(width=30, file=output)
    path = f"/{'folder/' * 9}result.xlsx"
    print_hanging(console, Text(f"because there is no file {path}: make one, or name another one"), 0, 4)
    told = output.getvalue().splitlines()
    assert told == ["because there is no file", f"    {path}:", "    make one, or name another", "    one"]
