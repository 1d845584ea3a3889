"""What there is in a Word document: headings, paragraphs and tables, each with an id."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._tables import nearest, short
from callboard.actors.servers.documents._word_file import visible_text
from callboard.messages import Control

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

    from callboard.actors.servers.documents._tables import Answer
    from callboard.actors.servers.documents._word_file import Block, WordFile

_MAX_OUTLINE = 30
_FIRST_ROWS = 3
_FIRST_COLUMNS = 8
_LONGEST_CELL = 24
"""How much of a table's content its control shows."""


@dataclass(frozen=True)
class Found:
    """A control and the block behind it."""

    control: Control
    block: Block

    @property
    def paragraph(self) -> Paragraph:
        """The paragraph or heading.

        Raises:
            ToolError: If it is a table.
        """
        if isinstance(self.block, Paragraph):
            return self.block
        msg = f"{self.control.id!r} is a table; this needs a heading or a paragraph"
        raise ToolError(msg)

    @property
    def table(self) -> Table:
        """The table.

        Raises:
            ToolError: If it is a heading or a paragraph.
        """
        if isinstance(self.block, Table):
            return self.block
        msg = f"{self.control.id!r} is a {self.control.kind}; this needs a table"
        raise ToolError(msg)


def find_all(file: WordFile) -> list[Found]:
    """List the controls in order: ``heading-1``, ``paragraph-1``, ``table-1`` …, counted by kind.

    Empty paragraphs count, so that a number stays while text is written into one, but are not listed.
    """
    counts = {"heading": 0, "paragraph": 0, "table": 0}
    found: list[Found] = []
    heading = ""
    for block in file.blocks():
        if isinstance(block, Table):
            kind, name = "table", short(" | ".join(header_of(block)))
            detail: dict[str, JsonValue] = {
                "rows": len(block._tbl.tr_lst),
                "columns": len(block._tbl.tblGrid.gridCol_lst),
                "first_rows": _first_rows(block),
            }
            detail |= {"below": heading} if heading else {}
        else:
            text, level = visible_text(block._p), file.heading_level(block)
            kind, name = "paragraph" if level is None else "heading", short(text)
            detail = {"characters": len(text)} if level is None else {"level": level}
            heading = heading if level is None else name
        counts[kind] += 1
        if name or kind == "table":
            found.append(Found(Control(id=f"{kind}-{counts[kind]}", name=name, kind=kind, detail=detail), block))
    return found


def find(file: WordFile, control_id: str, control_name: str = "") -> Found:
    """Find a control by its id, and check its name where one is given.

    Raises:
        ToolError: If it is not there, or is called something else now.
    """
    controls = find_all(file)
    for found in controls:
        if found.control.id == control_id:
            if control_name and found.control.name != control_name:
                msg = f"{control_id!r} is now called {found.control.name!r}, not {control_name!r}; look again"
                raise ToolError(msg)
            return found
    msg = f"there is no control {control_id!r} in the document; look again to see what there is"
    msg += nearest(control_id, [name for found in controls for name in (found.control.id, found.control.name)])
    raise ToolError(msg)


def tree(file: WordFile, name: str) -> Answer:
    """Order the controls by headings: each holds what follows it, down to the next of its level."""
    top: list[JsonValue] = []
    open_lists: list[tuple[int, list[JsonValue]]] = [(-1, top)]
    for found in find_all(file):
        control = found.control
        children: list[JsonValue] = []
        node: dict[str, JsonValue] = {"id": control.id, "name": control.name, "kind": control.kind}
        if control.kind == "heading":
            level = int(str(control.detail["level"]))
            while open_lists[-1][0] >= level:
                open_lists.pop()
            node["children"] = children
            open_lists[-1][1].append(node)
            open_lists.append((level, children))
        else:
            open_lists[-1][1].append(node)
    return {"id": "document", "name": name, "kind": "document", "children": top}


def outline(controls: Iterable[Control]) -> list[JsonValue]:
    """List the headings, indented by level, each with the number of paragraphs and tables right below it."""
    lines: list[tuple[str, Counter[str]]] = []
    for control in controls:
        if control.kind == "heading":
            lines.append((f"{'  ' * (int(str(control.detail['level'])) - 1)}{control.name}", Counter()))
        elif lines:
            lines[-1][1][control.kind] += 1
    counted = (
        (line, ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in below.items()))
        for line, below in lines[:_MAX_OUTLINE]
    )
    shown: list[JsonValue] = [f"{line} ({below})" if below else line for line, below in counted]
    return [*shown, f"({len(lines) - _MAX_OUTLINE} more headings)"] if len(lines) > _MAX_OUTLINE else shown


def header_of(table: Table) -> list[str]:
    """Read the texts of a table's first row."""
    return next(_rows_of(table, 0, 1), [])


def _rows_of(table: Table, start: int, end: int) -> Iterator[list[str]]:
    """Read some rows without measuring the whole table."""
    for row in table._tbl.tr_lst[start:end]:
        yield [visible_text(cell) for cell in row.iterchildren(qn("w:tc"))]


def _first_rows(table: Table) -> list[JsonValue]:
    """Read the rows after the first one, long texts and wide rows cut."""
    rows = _rows_of(table, 1, 1 + _FIRST_ROWS)
    return [[short(text, _LONGEST_CELL) for text in row[:_FIRST_COLUMNS]] for row in rows]
