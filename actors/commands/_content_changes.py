"""Counts of the changes between two versions of a document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from callboard.actors.commands._file_contents import FORMULA, Contents
from callboard.config import text

if TYPE_CHECKING:
    from collections.abc import Iterable


def described_changes(old: Contents | None, new: Contents | None) -> str:
    """Describe the differences, such as `12 cells, 1 new chart`.

    Without contents before, all that there is counts. Empty if nothing can be counted.
    """
    if new is None:
        return ""
    if old is None:
        return ", ".join(_totals(new))
    return ", ".join(_differences(old, new)) or text("no_values_changed")


def _totals(contents: Contents) -> Iterable[str]:
    yield from _counted(len(contents.cells), "count_cell")
    for kind, texts in contents.texts.items():
        yield from _counted(texts.total(), f"count_{kind}")
    for kind, some in contents.parts.items():
        yield from _counted(some.total(), f"count_{kind}")


def _differences(old_contents: Contents, new_contents: Contents) -> Iterable[str]:
    cells = old_contents.cells.keys() | new_contents.cells.keys()
    yield from _counted(sum(_differ(old_contents, new_contents, cell) for cell in cells), "count_cell")
    for kind in old_contents.texts | new_contents.texts:
        old, new = old_contents.texts.get(kind, Counter()), new_contents.texts.get(kind, Counter())
        yield from _counted(max((new - old).total(), (old - new).total()), f"count_{kind}")
    for kind in old_contents.parts | new_contents.parts:
        old_parts, new_parts = old_contents.parts.get(kind, Counter()), new_contents.parts.get(kind, Counter())
        more = new_parts.total() - old_parts.total()
        yield from _counted(more, f"new_{kind}")
        yield from _counted(-more, f"removed_{kind}")
        yield from _counted((new_parts - old_parts).total() - max(more, 0), f"changed_{kind}")
    renamed = sum(new_contents.sheets.get(key, title) != title for key, title in old_contents.sheets.items())
    yield from _counted(len(new_contents.sheets.keys() - old_contents.sheets), "new_sheet")
    yield from _counted(len(old_contents.sheets.keys() - new_contents.sheets), "removed_sheet")
    yield from _counted(renamed, "renamed_sheet")


def _differ(old_contents: Contents, new_contents: Contents, cell: tuple[str, str]) -> bool:
    old, new = old_contents.cells.get(cell, ""), new_contents.cells.get(cell, "")
    repeated = FORMULA in {old, new} and old.startswith(FORMULA) and new.startswith(FORMULA)
    return old != new and not repeated


def _counted(number: int, name: str) -> Iterable[str]:
    """Format a number of things by their text; empty for none."""
    if number > 0:
        yield text(name, count=number)
