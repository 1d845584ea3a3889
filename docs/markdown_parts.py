"""Pieces of Markdown that the scripts of this folder share."""
# ruff: noqa: INP001 - imported by scripts beside it

from __future__ import annotations

import inspect


def table(head: list[str], rows: list[list[str]]) -> str:
    """Draw a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines)


def first_line(text: str | None) -> str:
    """Give a docstring's first paragraph on one line, with Markdown's code quotes."""
    paragraph = inspect.cleandoc(text or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).replace("``", "`")


def description(text: str | None) -> str:
    """Give a docstring as Markdown, one line per paragraph."""
    return "\n\n".join(first_line(paragraph) for paragraph in inspect.cleandoc(text or "").split("\n\n"))
