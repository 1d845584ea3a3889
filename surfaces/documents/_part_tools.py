"""The tool that reads parts of documents for checks."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, assert_never

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents import _formats as formats
from callboard.surfaces.documents import _pdf as pdf
from callboard.surfaces.documents import _text_parts as texts
from callboard.surfaces.documents import excel, powerpoint
from callboard.surfaces.documents._csv import CsvTools, Delimiter
from callboard.surfaces.documents._encodings import Encoding
from callboard.surfaces.documents._grids import answer_of
from callboard.surfaces.documents._picture_tools import Language, text_in
from callboard.surfaces.documents._tables import Document, has_header, short, single_match
from callboard.surfaces.documents._text_tools import decoded, plain_text
from callboard.surfaces.documents._workspace import NAMES, ROOTS
from callboard.surfaces.documents.calendar import CalendarTools
from callboard.surfaces.documents.excel import ExcelFile, TouchedCells, quoted_title
from callboard.surfaces.documents.excel import find_all as sheet_controls
from callboard.surfaces.documents.mail import message_text
from callboard.surfaces.documents.powerpoint import DeckFile
from callboard.surfaces.documents.word import WordFile, grid_of
from callboard.surfaces.documents.word import find_all as word_controls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.surfaces.documents._workspace import Snapshot, Workspace

Form: TypeAlias = Literal["cells", "table", "text", "chart", "file"]

_ALL = 10**9
"""The limit of a reading that has none: all rows."""
_ON_PAGE = re.compile(r"([1-9][0-9]{0,5})/[1-9][0-9]{0,5}")
_TABLE = {"numbers": formats.Numbers, "decimal": formats.Decimal, "header": formats.Header}
_FURTHER: dict[tuple[Form, str], dict[str, Any]] = {
    ("cells", "excel"): {},
    ("chart", "excel"): {},
    ("chart", "powerpoint"): {},
    ("table", "word"): _TABLE,
    ("table", "powerpoint"): _TABLE,
    ("table", "excel"): {"header": formats.Header},
    ("table", "pdf"): {**_TABLE, "page": pdf.Page},
    ("table", "calendar"): {"first_day": dt.date | None, "last_day": dt.date | None},
    ("table", "csv"): {**_TABLE, "delimiter": Delimiter, "encoding": Encoding},
    ("text", "word"): {},
    ("text", "powerpoint"): {},
    ("text", "pdf"): {"page": pdf.Page},
    ("text", "mail"): {},
    ("text", "text"): {"encoding": Encoding},
    ("text", "picture"): {"language": Language},
}
"""The forms in which each format is read, and the further arguments of each."""
_WITHOUT_PARTS = frozenset(
    {("table", "csv"), ("table", "calendar"), ("text", "pdf"), ("text", "mail"), ("text", "picture")}
)
"""Readings of a whole file, which have no parts."""


class PartTools:
    """Reads parts of documents, each whole or not at all."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(effect=Effect.READ, offered=False)
    def read_part(
        self,
        document: Document,
        form: Annotated[Form, Field(description="The form of the reading.")],
        part: Annotated[str, Field(description="The part, such as Sales!B8 or Terms; empty for none.")] = "",
        args: Annotated[
            dict[str, JsonValue], Field(description="Further arguments of a table or text, such as decimal.")
        ] = {},  # noqa: B006 - read only
    ) -> JsonValue:
        """Read cells, a table, a text or a chart for a check.

        One part has to fit. ``file`` opens the document, and returns a few facts.
        """
        snapshot = self._workspace.read(document)
        further = _validate_arguments(form, snapshot, part, args)
        match form:
            case "cells":
                selection = excel.find_cells(self._book(snapshot), part)
                values = excel.stored_values(selection.sheet.file, selection.sheet, selection.need())
                return values[0][0] if selection.need().size == {"rows": 1, "columns": 1} else [*values]
            case "chart":
                return self._chart(snapshot, part)
            case "table":
                return self._table(snapshot, part, **further)
            case "text":
                return self._text(snapshot, part, **further)
            case "file":
                self._open(snapshot)
                return {"application": NAMES[snapshot.root], "size": snapshot.size_bytes}
            case _:
                assert_never(form)

    def canonical(self, document: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Write the part of a workbook in one form for rules."""
        form, part = arguments["form"], str(arguments["part"])
        if form not in {"cells", "table"}:
            return arguments
        book = self._book(self._workspace.read(document))
        if form == "table":
            return {**arguments, "part": excel.find_table(book, part).name}
        selection = excel.find_cells(book, part)
        return {**arguments, "part": f"{quoted_title(selection.sheet.title)}!{selection.need().coord}"}

    def resources(self, document: str, form: JsonValue, part: str) -> list[str]:
        """Name the ranges and sheets of a workbook that a reading touches.

        Raises:
            ToolError: If the part does not exist, or more than one fits.
        """
        book = self._book(self._workspace.read(document))
        match form:
            case "cells":
                selection = excel.find_cells(book, part)
                return [TouchedCells(selection.sheet, selection.cells).resource]
            case "table":
                table = excel.find_table(book, part)
                return [TouchedCells(table.sheet, table.cells).resource]
            case "chart":
                return excel.resources_of(excel.find_chart(book, part))
            case _:
                msg = f"{document!r} has no {form} to read"
                raise ToolError(msg)

    def _chart(self, snapshot: Snapshot, part: str) -> JsonValue:
        if snapshot.root == "powerpoint":
            return powerpoint.describe_chart(powerpoint.find_slide_chart(self._deck(snapshot), part))
        return excel.describe(excel.find_chart(self._book(snapshot), part))

    def _deck(self, snapshot: Snapshot) -> DeckFile:
        return DeckFile.load(snapshot, self._workspace.max_bytes)

    def _book(self, snapshot: Snapshot) -> ExcelFile:
        file = ExcelFile.load(snapshot, self._workspace.max_bytes)
        file.compute_cells = self._workspace.compute_cells
        return file

    def _open(self, snapshot: Snapshot) -> None:
        """Read all of a document, to see that it is not damaged.

        Raises:
            ToolError: If it is.
        """
        match snapshot.root:
            case "word":
                word = WordFile.load(snapshot, self._workspace.max_bytes)
                word.package.check()
                word_controls(word)
            case "excel":
                book = self._book(snapshot)
                book.package.check()
                sheet_controls(book)
            case "powerpoint":
                deck = self._deck(snapshot)
                deck.package.check()
                powerpoint.find_all(deck)
            case "picture":
                formats.read_in_process({"what": "pixels"}, snapshot, "pictures")
            case "pdf":
                pdf.PdfTools(self._workspace).facts(snapshot)
            case "csv":
                CsvTools(self._workspace).facts(snapshot)
            case "calendar":
                self._table(snapshot, "")
            case _:
                self._text(snapshot, "")

    def _table(self, snapshot: Snapshot, part: str, **further: Any) -> JsonValue:
        document, root = snapshot.document, snapshot.root
        if root == "excel":
            table = excel.find_table(book := self._book(snapshot), part)
            return [*excel.rows_of(book, table, header=further.get("header", True))]
        if root == "csv":
            return CsvTools(self._workspace).read_table(document, limit=_ALL, **further)["rows"]
        if root == "calendar":
            return CalendarTools(self._workspace).read_table(document, limit=_ALL, **further)["rows"]
        if root == "word":
            word = WordFile.load(snapshot, self._workspace.max_bytes)
            grid = grid_of(texts.find_table(word, part))
        elif root == "powerpoint":
            grid = powerpoint.grid_of(powerpoint.find_slide_table(self._deck(snapshot), part))
        else:
            grid = pdf.grid_of(_pdf_table(snapshot, part, further.pop("page", None)))
        options = {"numbers": True, "decimal": "auto", "header": True, **further}
        return answer_of(grid, start=0, limit=_ALL, **options)["rows"]

    def _text(self, snapshot: Snapshot, part: str, **further: Any) -> str:
        match snapshot.root:
            case "word":
                return texts.word_text(WordFile.load(snapshot, self._workspace.max_bytes), snapshot.document, part)
            case "powerpoint":
                return powerpoint.deck_text(self._deck(snapshot), part)
            case "pdf":
                return pdf.full_text(snapshot, **further)
            case "mail":
                return message_text(snapshot)
            case "picture":
                return text_in(snapshot, **further)
        text = plain_text(decoded(snapshot, **further).text)
        if part and snapshot.path.suffix.lower() != ".md":
            msg = f"{part!r} is no part of {snapshot.document!r}: only Markdown and Word files have headings"
            raise ToolError(msg)
        return texts.markdown_section(text, part) if part else text


def _validate_arguments(form: Form, snapshot: Snapshot, part: str, args: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return the further arguments of a reading, validated.

    Raises:
        ToolError: If the format has no such reading or no parts, or an argument is unknown or wrong.
    """
    document, key = snapshot.document, (form, snapshot.root)
    argument_types: dict[str, Any] = {}
    if form != "file":
        if key not in _FURTHER:
            suffixes = ", ".join(suffix for suffix, root in ROOTS.items() if (form, root) in _FURTHER)
            msg = f"{document!r} has no {form} to read; these files have: {suffixes}"
            raise ToolError(msg)
        argument_types = _FURTHER[key]
    if part and (form == "file" or key in _WITHOUT_PARTS):
        msg = f"{document!r} is read whole, and has no part {part!r}; leave the part out"
        raise ToolError(msg)
    if form == "cells" and not part:
        msg = f"no cells of {document!r} are named; write them behind its name, like report.xlsx!Sales!B8"
        raise ToolError(msg)
    if unknown := [name for name in args if name not in argument_types]:
        msg = f"args: {unknown[0]!r} is no argument of `{form}` for {document!r}; {_choice(argument_types)}"
        raise ToolError(msg)
    checked: dict[str, Any] = {}
    for name, value in args.items():
        try:
            checked[name] = TypeAdapter(argument_types[name]).validate_python(value)
        except ValidationError as error:
            msg = f"args: {name}: {error.errors()[0]['msg']}"
            raise ToolError(msg) from None
    return checked


def _choice(argument_types: Mapping[str, Any]) -> str:
    return f"there are: {', '.join(argument_types)}" if argument_types else "it takes none"


def _pdf_table(snapshot: Snapshot, part: str, page: int | None) -> pdf.PdfTable:
    """Find a table by its page and number, or its header.

    Raises:
        ToolError: If none fits, or several.
    """
    match = _ON_PAGE.fullmatch(part)
    tables = [*pdf.tables_of(snapshot, int(match[1]) if match else page).items()]
    matches = [(name, table) for name, table in tables if part in {"", name} or _has_header(table, part)]
    return single_match(matches, part, "table", tables, _describe_table)[1]


def _has_header(table: pdf.PdfTable, part: str) -> bool:
    return has_header([" ".join((cell or "").split()) for cell in table[0]], part)


def _describe_table(entry: tuple[str, pdf.PdfTable]) -> str:
    name, table = entry
    return f"{name} with the header {short(' | '.join(cell or '' for cell in table[0]))!r}"
