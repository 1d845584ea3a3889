"""The documents surface: the documents of a folder are windows."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import inspect
import os
import shlex
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field

from callboard.config import fits
from callboard.messages import (
    AgentKind,
    CommandType,
    Control,
    Coverage,
    Effect,
    Foreseen,
    Hazard,
    Intent,
    Look,
    Observation,
    Probe,
    Target,
    TargetKind,
)
from callboard.surfaces._need import Need
from callboard.surfaces._surface import UNKNOWN, Server, SurfaceTool, ToolError, collect, harmless_reads, tool
from callboard.surfaces.documents._archive_tools import ArchiveTools
from callboard.surfaces.documents._csv import CsvTools
from callboard.surfaces.documents._folder_tools import FolderTools
from callboard.surfaces.documents._formats import FormatTools
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE
from callboard.surfaces.documents._office import report_unreadable_part
from callboard.surfaces.documents._page_pictures import is_picture, pdf_of_office, picture_names
from callboard.surfaces.documents._page_views import PageViewTools
from callboard.surfaces.documents._part_tools import PartTools
from callboard.surfaces.documents._pdf import PdfTools
from callboard.surfaces.documents._picture_tools import PictureTools
from callboard.surfaces.documents._save import CopyTools, SaveTools
from callboard.surfaces.documents._tables import Answer, Cell, Document, width_of
from callboard.surfaces.documents._text_tools import TextTools
from callboard.surfaces.documents._version_cache import DEFAULT_CACHE_MB
from callboard.surfaces.documents._workspace import (
    DEFAULT_CSV_BYTES,
    DEFAULT_CSV_CELLS,
    DOCUMENTS,
    NAMES,
    OLD_FORMATS,
    ROOTS,
    Snapshot,
    Workspace,
    window_of,
)
from callboard.surfaces.documents.calendar import CalendarTools
from callboard.surfaces.documents.excel import ExcelTools, coverage
from callboard.surfaces.documents.mail import MailTools
from callboard.surfaces.documents.powerpoint import PowerPointTools
from callboard.surfaces.documents.word import WordTools, marked_document, outline

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.surfaces._stage import Stage


HOST = (AgentKind.HOST,)
_UNTITLED = {
    "word": ("Document", ".docx"),
    "excel": ("Workbook", ".xlsx"),
    "powerpoint": ("Presentation", ".pptx"),
}
_MAX_CONTROLS = 400
_MOST_TEXT = 200_000
_MOST_ROWS = 2000
"""The most characters and rows of a document that is made in one call."""
_FILE = "file:"

Window = Annotated[str, Field(description="The window's id or name, as listed.")]


class OfficeTools(Protocol):
    """The interface that the surface uses of an application's tools."""

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a document's controls."""

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a document's controls in a tree."""

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a document must not be written; empty if it may."""

    def empty(self) -> bytes:
        """Return the bytes of a new document."""


OVERWRITING = frozenset(
    {
        "copy_range",
        "edit_paragraph",
        "move_slide",
        "rename_sheet",
        "reorder_columns",
        "replace_text",
        "set_formula",
        "sort_range",
        "write_cell",
        "write_chart",
        "write_event",
        "write_message",
        "write_notes",
        "write_range",
        "write_text",
    }
)
"""Tools that replace or move a document's content; the others add to it, or change its format."""


PRECISE = frozenset({"copy_range", "replace_text", "set_formula", "write_range"})
"""Of them, those of a workbook that overwrite only if the cells that they write hold something else."""


class DocumentSurface(Server):
    """Documents in a workspace folder, on any operating system, without a display.

    No file stays open: each call reads a file, and an edit replaces it, atomically and synced. An edit fails if the
    file has changed since the last observation. `observe`, ``get_controls``, ``get_tree`` and the first call on a
    document count as observations; other calls do not.

    Args:
        workspace: The folder; paths and links that lead out of it are refused.
        max_bytes: The largest size of a file, in bytes.
        compute_cells: The most cells of a workbook whose formulas are computed after an edit.
        cache_mb: The most memory for what is known about versions of large files, in megabytes.
        max_csv_bytes: The largest size of a CSV file, in bytes; above `max_bytes` it is only read.
        max_csv_cells: The most cells of a CSV file that are held in memory; with more it is only read, in parts.

    Raises:
        NotADirectoryError: If the workspace is not a folder.
    """

    name = DOCUMENTS
    resource_kinds = ("file", "sheet", "range")
    keeps_versions = True
    hazards_of_host = True
    settles = False  # only calls change a document, and each change is complete when its call returns

    def __init__(
        self,
        workspace: Path,
        *,
        max_bytes: int = 50_000_000,
        compute_cells: int = 200_000,
        cache_mb: int = DEFAULT_CACHE_MB,
        max_csv_bytes: int = DEFAULT_CSV_BYTES,
        max_csv_cells: int = DEFAULT_CSV_CELLS,
    ) -> None:
        self._workspace = Workspace(
            workspace,
            max_bytes,
            compute_cells=compute_cells,
            cache_mb=cache_mb,
            max_csv_bytes=max_csv_bytes,
            max_csv_cells=max_csv_cells,
        )
        self._word = WordTools(self._workspace)
        self._excel = ExcelTools(self._workspace)
        self._files = FolderTools(self._workspace)
        self._parts = PartTools(self._workspace)
        self._applications: dict[str, OfficeTools] = {
            "word": self._word,
            "excel": self._excel,
            "powerpoint": PowerPointTools(self._workspace),
            "pdf": PdfTools(self._workspace),
            "mail": MailTools(self._workspace),
            "calendar": CalendarTools(self._workspace),
            "csv": CsvTools(self._workspace),
            "text": TextTools(self._workspace),
            "picture": PictureTools(self._workspace),
        }

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Require the folder only: no display and no Office."""
        folder = options.get("workspace")
        if folder is None:
            return ()
        command = "" if os.path.lexists(folder) else f"mkdir -p {shlex.quote(str(folder))}"
        return (Need(what=f"the folder {folder}", met=folder.is_dir(), command=command),)

    def open(self, stage: Stage) -> None:
        """Delete files of killed processes, and register with LibreOffice."""
        LIBRE_OFFICE.open()
        with contextlib.suppress(OSError):  # the first call reports a folder that can't be read
            for _ in self._workspace.documents():
                break

    @property
    def workspace(self) -> Path:
        """The resolved path of the workspace folder."""
        return self._workspace.folder

    def close(self) -> None:
        """End LibreOffice, unless another surface uses it."""
        LIBRE_OFFICE.close()

    def probe(
        self,
        target: Target | None,
        intent: Intent,
        foreseen: Sequence[Foreseen],
        fingerprint: str,
    ) -> Probe:
        """Compare the file's bytes with the announced write.

        Every write is announced first (see `foresee`), so without an announcement nothing was done.
        """
        if not foreseen:
            return Probe.NOT_DONE
        now = self._workspace.mark_of(foreseen[-1].path)
        if now == foreseen[-1].after:
            return Probe.DONE
        return Probe.NOT_DONE if now == foreseen[-1].before else Probe.UNKNOWN

    def targets(self) -> tuple[Target, ...]:
        """List the documents as windows, and the applications that make new ones."""
        windows = tuple(window_of(document) for document in self._workspace.documents())
        return windows + tuple(_application(root) for root in _UNTITLED)

    def no_target(self, name: str) -> str:
        """Explain why a file of the workspace is no document."""
        try:
            return self._workspace.advice_on(name) if self._workspace.resolve(name).is_file() else ""
        except ToolError:
            return ""

    @report_unreadable_part
    def observe(self, target: Target, look: Look = Look()) -> Observation:
        """Observe a document.

        A later write is refused if another program changed the file since the last observation shown to an agent.

        Raises:
            ToolError: If the target is not a document, or can't be read; the text gives the reason.
        """
        return self._observe(_document_of(target), remember=look.shown)

    def files(self) -> Mapping[str, Path]:
        """List all files of the workspace by their paths in it.

        Hidden files, links and folders with settings of their own, such as those of runs, are left out.

        Raises:
            ToolError: If there are too many, or the workspace can't be read.
        """
        return self._workspace.files()

    def fingerprint(self, target: Target) -> str:
        """Return the fingerprint of the file, without parsing it."""
        return self._workspace.read(_document_of(target)).fingerprint

    @harmless_reads  # no path leads out of the workspace
    @report_unreadable_part
    def hazards(
        self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue], made: Collection[str]
    ) -> set[Hazard]:
        """Report a call that replaces content that the task did not create."""
        if target is None:
            return self._files.hazards(tool, arguments, made)
        document = _document_of(target)
        if tool in {"edit_chart", "edit_pivot"}:
            return {Hazard.DELETES} if arguments.get("delete") else set()
        if tool not in OVERWRITING or str(self._workspace.path(document)) in made:
            return set()
        if tool in PRECISE and _root(document) == "excel" and not self._excel.overwrites(document, tool, arguments):
            return set()
        application = self._applications[_root(document)]
        if isinstance(application, FormatTools) and not application.overwrites(document, tool, arguments):
            return set()
        return {Hazard.OVERWRITES}

    def overwritten(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Return the target's document, for a tool that overwrites it alone."""
        return (_document_of(target),) if tool in OVERWRITING else ()

    def deleted(self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, str]:
        """Return the file that `delete_file` deletes."""
        return self._files.deleted(tool, arguments) if target is None else {}

    @report_unreadable_part
    def replaced(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Describe the cells that a call on a workbook would replace."""
        document = _document_of(target)
        if tool not in PRECISE or _root(document) != "excel":
            return ""
        return self._excel.overwrites(document, tool, arguments)

    @report_unreadable_part
    def canonical(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Mapping[str, JsonValue]:
        """Make the sheet, cells and window id explicit in the arguments."""
        if "window" in arguments:
            return {**arguments, "window": self.select_window(str(arguments["window"])).id}
        document = _document_of(target) if target is not None else ""
        if not document or _root(document) != "excel":
            return arguments
        if tool == "read_part":
            return self._parts.canonical(document, arguments)
        return self._excel.canonical(document, arguments)

    @report_unreadable_part
    def resources(self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]) -> list[str]:
        """Name the ranges and sheets that a call touches.

        A Word document counts as a whole file, and so does each file that the call opens or creates.
        """
        files = [arguments[name] for name in ("path", "new_path", "window", "folder") if arguments.get(name)]
        if tool == "make_archive" and isinstance(arguments["files"], list):
            files += arguments["files"]
        if tool == "save_as" and "pages" in arguments and is_picture(str(arguments["path"])):
            files += picture_names(str(arguments["path"]), str(arguments["pages"]))[1:]
        if tool == "start_application":
            files.append(self._untitled(str(arguments["name"])))
        names = [f"{_FILE}{self._workspace.resolve(str(document))}" for document in files]
        if tool == "list_files" and not names:
            return [f"{_FILE}{self.workspace}"]
        if target is None:
            return names
        document = _document_of(target)
        whole_document = f"{_FILE}{self._workspace.path(document)}"
        if _root(document) != "excel":
            return [*names, whole_document]
        if tool == "read_part" and arguments["form"] == "file":
            return [whole_document]
        try:
            if tool == "read_part":
                return self._parts.resources(document, arguments["form"], str(arguments["part"]))
            return [*names, *self._excel.resources(document, tool, arguments)]
        except ToolError:
            return [*names, whole_document, UNKNOWN]

    def coverage(self, target: Target | None, pattern: str, resource: str) -> Coverage:
        """Compare a pattern with a resource, and with the resource's file.

        The file has two names: its absolute path and its path in the workspace.
        """
        of_file = resource.startswith(_FILE)
        path = self._workspace.path(_document_of(target)) if target is not None and not of_file else None
        path = Path(resource.removeprefix(_FILE)) if of_file else path
        if path is not None:
            names = [f"{_FILE}{path}", f"{_FILE}{path.relative_to(self.workspace).as_posix()}"]
            if any(fits(pattern, name) for name in names):
                return Coverage.ALL
            if any(fits(pattern.casefold(), name.casefold()) for name in names):
                return Coverage.PART  # the same file on a case-insensitive file system
        return Coverage.NONE if of_file or resource == UNKNOWN else coverage(pattern, resource)

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Return the tools of the host and of the applications.

        Names are unique within an application.
        """
        return self._tools

    @functools.cached_property
    def _tools(self) -> tuple[SurfaceTool, ...]:
        owners = (
            self,
            self._files,
            ArchiveTools(self._workspace),
            self._parts,
            SaveTools(self._workspace),
            PageViewTools(self._workspace),
            CopyTools(self._workspace),
            *self._applications.values(),
        )
        entries = [entry for owner in owners for entry in map(_wrap_tool, collect(owner))]
        return tuple(sorted(entries, key=lambda entry: (entry.name, sorted(entry.roots))))

    @tool(effect=Effect.READ, agents=HOST, type=CommandType.DATA_COLLECTION)
    def list_windows(self) -> list[Target]:
        """List the documents of the workspace."""
        return [target for target in self.targets() if target.kind is TargetKind.WINDOW]

    @tool(effect=Effect.READ, agents=HOST, type=CommandType.DATA_COLLECTION)
    def list_applications(self) -> list[Target]:
        """List the applications that can be started."""
        return [_application(root) for root in _UNTITLED]

    @tool(effect=Effect.READ, agents=HOST, offered=False)
    def open_document(self, path: Document) -> Target:
        """Check that a document can be read, and return its window."""
        snapshot = self._workspace.read(path)
        application = self._applications[snapshot.root]
        application.not_writable(snapshot)
        if isinstance(application, FormatTools):
            application.facts(snapshot)
        return window_of(path)

    @tool(effect=Effect.ONCE, agents=HOST)
    def create_document(
        self,
        path: Document,
        *,
        text: Annotated[
            str,
            Field(
                max_length=_MOST_TEXT,
                description="For .pdf and .docx: paragraphs, # headings, - or 1. lists, | tables |, **bold**.",
            ),
        ] = "",
        header: Annotated[list[str], Field(description="The header of a table behind the text.")] = [],  # noqa: B006
        rows: Annotated[
            list[list[Cell]], Field(max_length=_MOST_ROWS, description="The rows of that table, as long as the header.")
        ] = [],  # noqa: B006 - read only
    ) -> Target:
        """Create a document, empty or with text and rows; return its window.

        Its folder must exist. The suffix decides the kind: .docx, .xlsx, .pptx, .csv, .txt, .md, .eml or .ics; and .pdf
        with a text or a table.
        """
        absolute_path = self._workspace.path(path)
        if present := OLD_FORMATS.get(absolute_path.suffix.lower()):
            msg = f"{path!r} is refused: a new document is in the present format; make a {present} file"
            raise ToolError(msg)
        if absolute_path.suffix.lower() == ".xlsm":
            msg = f"{path!r} is refused: a new workbook has no macros; make an .xlsx file"
            raise ToolError(msg)
        root = ROOTS[absolute_path.suffix.lower()]
        if text or header or rows:
            return self._workspace.create(path, self._written(path, root, text, header, rows))
        return self._workspace.create(path, self._applications[root].empty())

    def _written(self, path: str, root: str, text: str, header: list[str], rows: list[list[Cell]]) -> bytes:
        """Return the bytes of a new document with contents.

        Raises:
            ToolError: If such a document can't be made.
        """
        if root not in {"word", "pdf"}:
            msg = f"{path!r} is made empty: only .pdf and .docx are made with a text or rows; leave them out"
            raise ToolError(msg)
        if header or rows:
            width_of(rows, header or None)
        self._workspace.resolve_new(path)
        data = marked_document(text, header, rows)
        return data if root == "word" else pdf_of_office(path, data, ".docx")

    @tool(effect=Effect.READ, agents=HOST, offered=False)
    def select_window(self, window: Window) -> Target:
        """Select a listed window by its id or its unique name."""
        windows = self.list_windows()
        matches = [target for target in windows if target.id == window]
        matches = matches or [target for target in windows if target.name.casefold() == window.casefold()]
        if len(matches) == 1:
            return matches[0]
        if matches:
            ids = ", ".join(target.id for target in matches)
            msg = f"{len(matches)} windows are called {window!r}; use an id: {ids}"
        else:
            msg = f"there is no window {window!r}; list the windows to see which there are"
        raise ToolError(msg)

    @tool(effect=Effect.ONCE, agents=HOST, offered=False)
    def start_application(
        self, name: Annotated[str, Field(description="The application: word, excel or powerpoint.")]
    ) -> Target:
        """Start an application with a new untitled document and return its window."""
        return self.create_document(self._untitled(name))

    @tool(effect=Effect.READ, type=CommandType.DATA_COLLECTION)
    def get_controls(self, document: Document) -> Answer:
        """Observe the document: list its controls, with ids for other tools."""
        observation = self._observe(document, remember=True)
        controls: list[JsonValue] = [control.model_dump(mode="json") for control in observation.controls]
        return {"controls": controls, "left_out": observation.window["controls_left_out"]}

    @tool(effect=Effect.READ, type=CommandType.DATA_COLLECTION)
    def get_window_info(self, document: Document) -> Answer:
        """Return the document's path, application, size and time of change.

        If it can't be written, the reason is included.
        """
        return dict(self._observe(document, remember=False).window)

    @tool(effect=Effect.READ, type=CommandType.DATA_COLLECTION)
    def get_tree(self, document: Document) -> Answer:
        """Observe the document as a tree of headings, sheets or slides."""
        snapshot = self._workspace.read(document, remember=True)
        return self._applications[snapshot.root].tree(snapshot)

    def _untitled(self, application: str) -> str:
        """Find an unused name for a new document."""
        root = application.casefold()
        if root not in _UNTITLED:
            msg = f"there is no application {application!r}; there are: {', '.join(_UNTITLED)}"
            raise ToolError(msg)
        stem, suffix = _UNTITLED[root]
        used_names = {path.name.casefold() for path in self._workspace.folder.iterdir()}
        number = next(n for n in range(1, len(used_names) + 2) if f"{stem}{n}{suffix}".casefold() not in used_names)
        return f"{stem}{number}{suffix}"

    def _observe(self, document: str, *, remember: bool) -> Observation:
        snapshot = self._workspace.read(document, remember=remember)
        application = self._applications[snapshot.root]
        controls = application.controls(snapshot)
        reason = self._workspace.not_writable(snapshot) or application.not_writable(snapshot)
        first_controls = controls[:_MAX_CONTROLS]
        window: dict[str, JsonValue] = {
            "path": document,
            "application": NAMES[snapshot.root],
            "size": snapshot.size_bytes,
            "modified": dt.datetime.fromtimestamp(snapshot.modified, dt.UTC).isoformat(timespec="seconds"),
            "dirty": False,
            "writable": not reason,
            "not_writable_because": reason,
            "controls": len(controls),
            "controls_left_out": len(controls) - len(first_controls),
        }
        if snapshot.suffix != snapshot.path.suffix.lower():
            window["read_through"] = (
                f"its contents, which are those of a {snapshot.suffix} file despite its name"
                if snapshot.converted is snapshot.source
                else f"a {snapshot.suffix} copy that LibreOffice made; it may lack something"
            )
        if headings := outline(controls):
            window["outline"] = headings
        text = ""
        if isinstance(application, FormatTools):
            window.update(application.facts(snapshot))
            text = application.preview(snapshot)
        elif isinstance(application, WordTools):
            window.update(application.facts(snapshot))
        return Observation(controls=tuple(first_controls), window=window, text=text, fingerprint=snapshot.fingerprint)


def _wrap_tool(entry: SurfaceTool) -> SurfaceTool:
    """Let a tool report which part of a document made it fail."""
    if inspect.iscoroutinefunction(entry.tool.fn):
        return entry
    return replace(entry, tool=replace(entry.tool, fn=report_unreadable_part(entry.tool.fn)))


def _root(document: str) -> str:
    return ROOTS[PurePosixPath(document).suffix.lower()]


def _application(root: str) -> Target:
    return Target(
        id=root,
        name=NAMES[root],
        kind=TargetKind.APPLICATION,
        address=f"app/{root}/*",
        server=DOCUMENTS,
        start="start_application",
    )


def _document_of(target: Target) -> str:
    document = target.binds.get("document")
    if not isinstance(document, str):
        msg = f"{target.name!r} is not a document; start the application first"
        raise ToolError(msg)
    return document
