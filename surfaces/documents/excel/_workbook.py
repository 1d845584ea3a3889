"""An Excel workbook in memory: its package of parts, and its sheets."""

from __future__ import annotations

import functools
import io
import zipfile
from typing import TYPE_CHECKING

import openpyxl
from lxml import etree
from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import Edited, q
from callboard.surfaces.documents._package import CONTENT_TYPES, R_ID, Element, Package
from callboard.surfaces.documents._workspace import fingerprint
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_styles import Styles
from callboard.surfaces.documents.excel._hidden_rows import hidden_in
from callboard.surfaces.documents.excel._shared_texts import text_of
from callboard.surfaces.documents.excel._sheet import Sheet
from callboard.surfaces.documents.excel._trusted_functions import VERSIONS, Checked
from callboard.surfaces.documents.excel._workbook_package import WorkbookPackage, has_placeholders

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.excel._cell_references import BookFormula
    from callboard.surfaces.documents.excel._row_blocks import RowBlocks

_AFTER_CALCULATION = frozenset({"oleSize", "customWorkbookViews", "pivotCaches", "smartTagPr", "smartTagTypes"})
_AFTER_CALCULATION |= {"webPublishing", "fileRecoveryPr", "webPublishObjects", "extLst"}
_READ_ONLY = (
    ("_xmlsignatures/", "it has a digital signature, which an edit would break"),
    ("xl/revisions/", "it tracks changes, and an edit would not be in its history"),
)
COMPUTE_CELLS = 200_000
_KINDS = {"worksheet": "sheet", "chartsheet": "chart_sheet"}


class ExcelFile(Edited):
    """An opened workbook, with no open file.

    Parts that an edit does not touch are written back byte for byte.
    """

    def __init__(self, package: Package) -> None:
        super().__init__()
        self.package = package
        self.part = next(iter(package.related("", "officeDocument")), "xl/workbook.xml")
        self.styles = Styles(package, self.part)
        self.sheets: list[Sheet] = []
        """All sheets in their order, chart sheets too."""
        self.formulas_moved = False
        """Whether the set of cells with formulas changed: the calculation chain is then out of date."""
        self.snapshot: Snapshot | None = None
        """The file as it was read; None for a new workbook."""
        self.max_bytes = 0
        """The limit under which it was read, in bytes."""
        self.compute_cells = COMPUTE_CELLS
        """The most cells of a workbook whose formulas are computed."""
        self.checked: dict[str, Checked] = {}
        """The functions that programs were compared on in this version, by the name of the program."""
        self.outdated: list[Element] = []
        """The cells whose formulas an edit changed, so that their results are no longer theirs."""
        self.lost_references: list[BookFormula] = []
        """The references to cells that an edit deleted."""
        self.pivots_written: list[tuple[str, CellRange]] = []
        """The cells of pivot tables that an edit wrote or emptied as such, by the title of their sheet."""
        package.tree(CONTENT_TYPES)
        links = {link.id: link for link in package.relationships(self.part)}
        for entry in package.tree(self.part).iterfind(f"{q('sheets')}/{q('sheet')}"):
            link = links.get(entry.get(R_ID, ""))
            if link is not None and link.target in package:
                self.sheets.append(Sheet(self, entry, link.target, _KINDS.get(link.type, "other_sheet")))

    @classmethod
    def load(cls, snapshot: Snapshot, max_bytes: int, *, streamed: bool = False) -> ExcelFile:
        """Read a workbook.

        Args:
            snapshot: The file.
            max_bytes: The largest size of a file.
            streamed: Whether large sheets are read in blocks. An edit of other things than single cells needs the
                whole sheet.

        Raises:
            ToolError: If the workbook is damaged, protected with a password, or does not match its suffix.
        """
        file = cls((WorkbookPackage.load_streamed if streamed else Package.load)(snapshot, max_bytes))
        file.snapshot, file.max_bytes = snapshot, max_bytes
        file.checked = VERSIONS.of(snapshot.fingerprint)
        if not file.sheets:
            msg = "it has no sheets"
            raise file.package.damaged(msg)
        return file

    @classmethod
    def new(cls) -> ExcelFile:
        """Make a workbook with one empty sheet, ``Sheet1``."""
        book = openpyxl.Workbook()
        book.worksheets[0].title = "Sheet1"
        out = io.BytesIO()
        book.save(out)
        with zipfile.ZipFile(out) as archive:
            return cls(Package("the new workbook", {name: archive.read(name) for name in archive.namelist()}))

    @property
    def titles(self) -> list[str]:
        """The titles of all sheets, in their order."""
        return [sheet.title for sheet in self.sheets]

    @property
    def worksheets(self) -> list[Sheet]:
        """The sheets that have cells."""
        return [sheet for sheet in self.sheets if sheet.is_grid]

    @property
    def active(self) -> Sheet:
        """The active sheet; the first one if that is a chart."""
        view = self.package.tree(self.part).find(f"{q('bookViews')}/{q('workbookView')}")
        index = view.get("activeTab", "0") if view is not None else "0"
        number = int(index) if index.isdigit() else 0
        sheet = self.sheets[number] if number < len(self.sheets) else self.sheets[0]
        return sheet if sheet.is_grid else self._first_worksheet()

    @functools.cached_property
    def epoch(self) -> dt.datetime:
        """The day from which dates count."""
        properties = self.package.tree(self.part).find(q("workbookPr"))
        return MAC_EPOCH if properties is not None and properties.get("date1904") in {"1", "true"} else WINDOWS_EPOCH

    @functools.cached_property
    def has_placeholders(self) -> bool:
        """Return whether zeros may stand for results that were never computed."""
        return has_placeholders(self.package.tree(self.part))

    @functools.cached_property
    def strings(self) -> Sequence[str]:
        """The texts that cells share."""
        if isinstance(self.package, WorkbookPackage):
            names = self.package.related(self.part, "sharedStrings")
            texts = self.package.texts(names[0]) if names else None
            if texts is not None:
                return texts
        return [text_of(entry) for entry in self.shared_texts]

    @functools.cached_property
    def shared_texts(self) -> list[Element]:
        """The elements of the texts that cells share."""
        names = self.package.related(self.part, "sharedStrings")
        whole = self.package.whole if isinstance(self.package, WorkbookPackage) else self.package.tree
        return [entry for name in names for entry in whole(name).iterfind(q("si"))]

    def rows_of(self, part: str) -> RowBlocks | None:
        """Return the rows of a large sheet; None for others."""
        if not isinstance(self.package, WorkbookPackage):
            return None
        return self.package.rows(part, placeholders=self.has_placeholders)

    @property
    def is_streamed(self) -> bool:
        """Return whether a sheet is read in blocks."""
        return any(sheet.blocks is not None for sheet in self.worksheets)

    @property
    def structure_locked(self) -> bool:
        """Return whether the list of sheets is protected."""
        protection = self.package.tree(self.part).find(q("workbookProtection"))
        return protection is not None and protection.get("lockStructure") in {"1", "true"}

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the file that was read, if any."""
        return self.snapshot.fingerprint if self.snapshot else ""

    def original(self) -> ExcelFile | None:
        """Read the file once more, if it is not new."""
        return ExcelFile.load(self.snapshot, self.max_bytes) if self.snapshot else None

    @property
    def used_cells(self) -> int:
        """The number of cells that hold something."""
        return sum(sheet.filled_count() for sheet in self.worksheets)

    @property
    def has_formulas(self) -> bool:
        """Return whether a cell of the workbook may hold a formula."""
        return any(True for sheet in self.worksheets for _ in sheet.formula_cells())

    def not_writable(self) -> str:
        """Explain why the workbook must not be written; empty if it may."""
        return next((why for start, why in _READ_ONLY if any(name.startswith(start) for name in self.package)), "")

    def sheet(self, title: str) -> Sheet:
        """Find a sheet with cells by its title, case-insensitively.

        Raises:
            ToolError: If there is no such sheet.
        """
        for sheet in self.worksheets:
            if sheet.title.casefold() == title.casefold():
                return sheet
        titles = ", ".join(repr(sheet.title) for sheet in self.worksheets)
        msg = f"there is no sheet {title!r}; there are: {titles}"
        raise ToolError(msg)

    def names(self) -> Iterator[tuple[str, Sheet | None, Element]]:
        """Yield the defined names.

        Each is a name, the sheet that it belongs to or None, and its element.
        """
        for entry in self.package.tree(self.part).iterfind(f"{q('definedNames')}/{q('definedName')}"):
            index = entry.get("localSheetId", "")
            local = self.sheets[int(index)] if index.isdigit() and int(index) < len(self.sheets) else None
            yield entry.get("name", ""), local, entry

    def compute_on_load(self) -> None:
        """Have the program that opens the workbook compute all formulas."""
        root = self.package.tree(self.part)
        calculation = root.find(q("calcPr"))
        if calculation is not None and calculation.get("fullCalcOnLoad") in {"1", "true"}:
            return
        root = self.package.edit(self.part)
        if calculation is None:
            calculation = etree.Element(q("calcPr"))
            later_tags = {q(name) for name in _AFTER_CALCULATION}
            index = next((number for number, child in enumerate(root) if child.tag in later_tags), len(root))
            root.insert(index, calculation)
        calculation.set("fullCalcOnLoad", "1")

    def answers(self, answer: Answer) -> Answer:
        """Set the answer of an edit; it names what its cells hide."""
        cells = answer.get("cells")
        if isinstance(cells, str) and "," not in cells:
            answer = answer | hidden_in(self.sheet(str(answer["sheet"])), area_of(cells))
        return super().answers(answer)

    def to_bytes(self) -> bytes:
        """Write the workbook to memory."""
        if self.formulas_moved:
            for link in self.package.relationships(self.part):
                if link.type == "calcChain":  # Excel makes it again, and calls a wrong one damage
                    self.package.unrelate(self.part, link.id)
                    self.package.remove(link.target)
        for sheet in self.worksheets:
            sheet.finish()
        data = self.package.to_bytes()
        VERSIONS.keep(fingerprint(data), self.checked)
        return data

    def _first_worksheet(self) -> Sheet:
        worksheets = self.worksheets
        if not worksheets:
            msg = f"{self.package.document!r} has no sheet with cells, only charts"
            raise ToolError(msg)
        return worksheets[0]
