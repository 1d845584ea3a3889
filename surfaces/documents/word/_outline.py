"""The controls of a Word document: headings, paragraphs and tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from callboard.messages import Control
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import nearest, short
from callboard.surfaces.documents.word._document import visible_text
from callboard.surfaces.documents.word._document_tables import cell_text, cells_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.word._document import Block, WordFile

_MAX_OUTLINE = 30
_FIRST_ROWS = 3
_FIRST_COLUMNS = 8
_LONGEST_CELL = 24
"""Limits of the content that an observation shows: headings, rows, columns, characters of a cell."""


@dataclass(frozen=True)
class WordControl:
    """A control and its block."""

    control: Control
    block: Block

    @property
    def paragraph(self) -> Paragraph:
        """The paragraph or heading.

        Raises:
            ToolError: If the control is a table.
        """
        if isinstance(self.block, Paragraph):
            return self.block
        msg = f"{self.control.id!r} is a table; this needs a heading or a paragraph"
        raise ToolError(msg)

    @property
    def table(self) -> Table:
        """The table.

        Raises:
            ToolError: If the control is a heading or a paragraph.
        """
        if isinstance(self.block, Table):
            return self.block
        msg = f"{self.control.id!r} is a {self.control.kind}; this needs a table"
        raise ToolError(msg)


def find_all(file: WordFile) -> list[WordControl]:
    """List the controls, as `iter_controls` yields them."""
    return list(iter_controls(file))


def iter_controls(file: WordFile) -> Iterator[WordControl]:
    """Yield the controls in order, numbered by kind.

    The ids are ``heading-1``, ``paragraph-1``, ``table-1`` and so on. Empty paragraphs are counted but not listed, so
    that the numbers stay the same when text is written into one.
    """
    counts = {"heading": 0, "paragraph": 0, "table": 0}
    heading, chapters = "", list[tuple[int, str]]()
    for block in file.blocks():
        if isinstance(block, Table):
            kind, name = "table", short(" | ".join(header_of(block)))
            detail: dict[str, JsonValue] = {
                "rows": len(rows_of(block)),
                "columns": len(list(block._tbl.iterfind(f"{qn('w:tblGrid')}/{qn('w:gridCol')}"))),
                "first_rows": {
                    str(number): [short(text, _LONGEST_CELL) for text in row[:_FIRST_COLUMNS]]
                    for number, row in enumerate(_texts_of(block, 1, 1 + _FIRST_ROWS), start=2)
                },
            }
            detail |= {"below": heading} if heading else {}
        else:
            text, level = visible_text(block._p), file.heading_level(block)
            kind, name = "paragraph" if level is None else "heading", short(text)
            detail = {"characters": len(text)} if level is None else {"level": level}
            chapters = [chapter for chapter in chapters if level is None or chapter[0] < level]
        place = chapters[-1][1] if chapters else ""
        if kind == "heading":
            heading = name
            chapters.append((int(str(detail["level"])), name))
        counts[kind] += 1
        if name or kind == "table":
            control = Control(id=f"{kind}-{counts[kind]}", name=name, kind=kind, place=place, detail=detail)
            yield WordControl(control, block)


def find(file: WordFile, control_id: str, control_name: str = "") -> WordControl:
    """Find a control by its id, and check a passed name.

    Raises:
        ToolError: If the control does not exist, or has another name now.
    """
    controls = find_all(file)
    for word_control in controls:
        if word_control.control.id == control_id:
            name = word_control.control.name
            if control_name and name != control_name:
                msg = f"{control_id!r} is now called {name!r}, not {control_name!r}; observe it again"
                raise ToolError(msg)
            return word_control
    msg = f"there is no control {control_id!r} in the document; observe it again to see its controls"
    msg += nearest(
        control_id, [name for word_control in controls for name in (word_control.control.id, word_control.control.name)]
    )
    raise ToolError(msg)


def tree(file: WordFile, name: str) -> Answer:
    """Arrange the controls in a tree, below their headings.

    A heading holds the controls up to the next heading of its level or a higher one.
    """
    top: list[JsonValue] = []
    open_lists: list[tuple[int, list[JsonValue]]] = [(-1, top)]
    for word_control in find_all(file):
        control = word_control.control
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
    """List the headings, indented, with the numbers of paragraphs and tables."""
    lines: list[tuple[str, Counter[str]]] = []
    for control in controls:
        if control.kind == "heading":
            lines.append((f"{'  ' * (int(str(control.detail['level'])) - 1)}{control.name}", Counter()))
        elif lines:
            lines[-1][1][control.kind] += 1
    summaries = (
        (line, ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items()))
        for line, counts in lines[:_MAX_OUTLINE]
    )
    headings: list[JsonValue] = [f"{line} ({summary})" if summary else line for line, summary in summaries]
    return [*headings, f"({len(lines) - _MAX_OUTLINE} more headings)"] if len(lines) > _MAX_OUTLINE else headings


def header_of(table: Table) -> list[str]:
    """Read the texts of a table's first row."""
    return next(_texts_of(table, 0, 1), [])


def _texts_of(table: Table, start: int, end: int) -> Iterator[list[str]]:
    """Read the texts of some rows, without laying out the table."""
    for row in rows_of(table)[start:end]:
        yield [cell_text(cell) for cell in cells_of(row)]
