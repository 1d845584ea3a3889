"""Workbooks that tests write and change with openpyxl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openpyxl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


def workbook_of(rows: Iterable[Sequence[Any]], title: str = "Sheet") -> openpyxl.Workbook:
    """Make a workbook with one sheet of rows."""
    workbook = openpyxl.Workbook()
    workbook.active.title = title
    for row in rows:
        workbook.active.append(row)
    return workbook


def save_book(workbook: openpyxl.Workbook, path: Path, call: Callable[..., Any]) -> Path:
    """Save a workbook, and let the surface observe it."""
    workbook.save(path)
    call("get_controls", path.name)
    return path


def change_sheet(path: Path, call: Callable[..., Any], change: Callable[[Any], object]) -> None:
    """Change the first sheet of a workbook with another program."""
    workbook = openpyxl.load_workbook(path)
    change(workbook.worksheets[0])
    save_book(workbook, path, call)
