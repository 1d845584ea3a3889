"""Windows that show the console, in which agents may not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSOLE_TITLE = " \N{MIDDLE DOT} Callboard"
"""The end of the titles of the console's pages; a browser's window has its own name behind it."""


def shows_console(titles: Iterable[str]) -> bool:
    """Return whether one of a program's windows shows the console."""
    return any(CONSOLE_TITLE in title for title in titles)


def refuse_console(titles: Iterable[str]) -> None:
    """Refuse work in a program that shows the console.

    Raises:
        ToolError: If one of its windows does.
    """
    if shows_console(titles):
        msg = "a window of this program shows Callboard's console, which is for people: agents may not use the program"
        raise ToolError(msg)
