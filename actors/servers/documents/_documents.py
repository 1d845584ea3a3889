"""The documents server: a folder is the desktop, each ``.docx`` and ``.xlsx`` file in it a window."""

from __future__ import annotations

import datetime as dt
import functools
import os
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from callboard.actors.servers._need import Need
from callboard.actors.servers._server import UNKNOWN, Server, ServerTool, ToolError, collect, tool
from callboard.actors.servers.documents._excel import ExcelTools
from callboard.actors.servers.documents._excel_touch import coverage
from callboard.actors.servers.documents._tables import Answer, Document  # noqa: TC001 - schemas are made of them
from callboard.actors.servers.documents._word import WordTools
from callboard.actors.servers.documents._word_controls import outline
from callboard.actors.servers.documents._workspace import ROOTS, Snapshot, Workspace
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

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue


HOST = (AgentKind.HOST,)
_NAMES = {"word": "Word", "excel": "Excel"}
_UNTITLED = {"word": ("Document", ".docx"), "excel": ("Workbook", ".xlsx")}
_MAX_CONTROLS = 400
_FILE = "file:"

Window = Annotated[str, Field(description="The window's id or name, as listed.")]


class Application(Protocol):
    """What the server asks of an application's tools."""

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a document's controls."""

    def tree(self, snapshot: Snapshot) -> Answer:
        """Order a document's controls in a tree."""

    def not_writable(self, snapshot: Snapshot) -> str:
        """Say why a document's content must not be written; empty if it may."""

    def empty(self) -> bytes:
        """Make a new document."""


OVERWRITING = frozenset(
    {
        "edit_paragraph",
        "rename_sheet",
        "reorder_columns",
        "replace_text",
        "set_formula",
        "sort_range",
        "write_cell",
        "write_range",
    }
)
"""Tools that replace or move what stands in a document; the others add to it, or change how it looks."""


class DocumentServer(Server):
    """Documents in a workspace folder, for any operating system and no display.

    Nothing stays open: each call reads a file, and an edit replaces it, atomically, synced, and only if it is still
    what was looked at. `observe`, ``get_controls`` and ``get_tree`` are looks; other calls are not, unless they
    are the first on a document.

    Args:
        workspace: The folder; everything outside of it is refused, links included.
        max_bytes: How large a file may be.

    Raises:
        NotADirectoryError: If the workspace is no folder.
    """

    name = "documents"
    resource_kinds = ("file", "sheet", "range")
    settles = False  # a document changes only by a call, and is quiet when that returns

    def __init__(self, workspace: Path, *, max_bytes: int = 50_000_000) -> None:
        self._workspace = Workspace(workspace, max_bytes)
        self._word = WordTools(self._workspace)
        self._excel = ExcelTools(self._workspace)
        self._applications: dict[str, Application] = {"word": self._word, "excel": self._excel}

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Need the folder, and nothing else: no display, no Office."""
        folder = options.get("workspace")
        if folder is None:
            return ()
        command = "" if os.path.lexists(folder) else f"mkdir -p {shlex.quote(str(folder))}"
        return (Need(what=f"the folder {folder}", met=folder.is_dir(), command=command),)

    @property
    def workspace(self) -> Path:
        """The folder, resolved."""
        return self._workspace.folder

    def probe(
        self,
        target: Target | None,
        intent: Intent,
        foreseen: Sequence[Foreseen],
        fingerprint: str,
    ) -> Probe:
        """Look at the file's bytes. No file is replaced before that was foreseen; what was not, was not done."""
        if not foreseen:
            return Probe.NOT_DONE
        now = self._workspace.mark_of(foreseen[-1].path)
        if now == foreseen[-1].after:
            return Probe.DONE
        return Probe.NOT_DONE if now == foreseen[-1].before else Probe.UNKNOWN

    def targets(self) -> tuple[Target, ...]:
        """List the documents as windows, and Word and Excel as applications that can be started."""
        windows = tuple(_window(document) for document in self._workspace.documents())
        return windows + tuple(_application(root) for root in _NAMES)

    def observe(self, target: Target, look: Look = Look()) -> Observation:
        """Look at a document; a write is refused if others changed the file since a look that was shown to an agent.

        Raises:
            ToolError: If the target is no document, or it can't be read; the text says why.
        """
        return self._observe(_document_of(target), remember=look.shown)

    def fingerprint(self, target: Target) -> str:
        """Read the file, without opening the document in it."""
        return self._workspace.read(_document_of(target)).fingerprint

    def hazards(
        self, target: Target, tool: str, arguments: Mapping[str, JsonValue], made: Collection[str]
    ) -> set[Hazard]:
        """Say that a call overwrites, when it replaces what stands in a document that the task did not make."""
        document = _document_of(target)
        if tool not in OVERWRITING or str(self._workspace.path(document)) in made:
            return set()
        if tool in {"write_range", "set_formula"} and not self._excel.overwrites(document, tool, arguments):
            return set()
        return {Hazard.OVERWRITES}

    def canonical(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Mapping[str, JsonValue]:
        """Write which sheet and which cells a call means, and a window by its id."""
        if "window" in arguments:
            return {**arguments, "window": self.select_window(str(arguments["window"])).id}
        document = _document_of(target) if target is not None else ""
        return self._excel.canonical(document, arguments) if document and _root(document) == "excel" else arguments

    def resources(self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]) -> list[str]:
        """Name the ranges and sheets that a call touches; the file where it has none, or another file is made."""
        files = [arguments[name] for name in ("path", "window") if name in arguments]
        if tool == "start_application":
            files.append(self._untitled(str(arguments["name"])))
        found = [f"{_FILE}{self._workspace.path(str(document))}" for document in files]
        if target is None:
            return found
        document = _document_of(target)
        whole = f"{_FILE}{self._workspace.path(document)}"
        if _root(document) != "excel":
            return [*found, whole]
        try:
            return [*found, *self._excel.resources(document, tool, arguments)]
        except ToolError:
            return [*found, whole, UNKNOWN]

    def coverage(self, target: Target | None, pattern: str, resource: str) -> Coverage:
        """Compare a pattern with a resource, and with the file that it is in; that by its path in the workspace too."""
        of_file = resource.startswith(_FILE)
        path = self._workspace.path(_document_of(target)) if target is not None and not of_file else None
        path = Path(resource.removeprefix(_FILE)) if of_file else path
        if path is not None:
            names = [f"{_FILE}{path}", f"{_FILE}{path.relative_to(self.workspace).as_posix()}"]
            if any(fits(pattern, name) for name in names):
                return Coverage.ALL
            if any(fits(pattern.casefold(), name.casefold()) for name in names):
                return Coverage.PART  # the same file where the file system takes capitals for small letters
        return Coverage.NONE if of_file or resource == UNKNOWN else coverage(pattern, resource)

    def tools(self) -> tuple[ServerTool, ...]:
        """Build the tools of the host, of both applications, and of each; names are unique within an application."""
        return self._tools

    @functools.cached_property
    def _tools(self) -> tuple[ServerTool, ...]:
        found = (*collect(self), *collect(self._word), *collect(self._excel))
        return tuple(sorted(found, key=lambda entry: (entry.name, sorted(entry.roots))))

    def mcp_server(self) -> MCPServer:
        """Make a stand-alone MCP server; a name that both applications use gets the application's in front."""
        entries = self.tools()
        names = [entry.name for entry in entries]
        tools = [
            entry.tool
            if names.count(entry.name) == 1
            else entry.tool.model_copy(update={"name": "_".join([*sorted(entry.roots), entry.name])})
            for entry in entries
        ]
        return MCPServer(self.name, tools=tools)

    @tool(effect=Effect.READ, agents=HOST, type=CommandType.DATA_COLLECTION)
    def list_windows(self) -> list[Target]:
        """List the documents of the workspace."""
        return [target for target in self.targets() if target.kind is TargetKind.WINDOW]

    @tool(effect=Effect.READ, agents=HOST, type=CommandType.DATA_COLLECTION)
    def list_applications(self) -> list[Target]:
        """List the applications that can be started."""
        return [_application(root) for root in _NAMES]

    @tool(effect=Effect.READ, agents=HOST, offered=False)
    def open_document(self, path: Document) -> Target:
        """Open a document of the workspace: check that it can be read, and answer with its window."""
        snapshot = self._workspace.read(path)
        self._applications[snapshot.root].not_writable(snapshot)
        return _window(path)

    @tool(effect=Effect.ONCE, agents=HOST)
    def create_document(self, path: Document) -> Target:
        """Create an empty document, .docx or .xlsx, in a folder that exists; answers with its window."""
        place = self._workspace.path(path)
        made = _window(path)
        empty = self._applications[ROOTS[place.suffix.lower()]].empty()
        self._workspace.create(path, empty, made.model_dump(mode="json"))
        return made

    @tool(effect=Effect.READ, agents=HOST, offered=False)
    def select_window(self, window: Window) -> Target:
        """Select one of the listed windows, by its id or, where only one has it, its name."""
        windows = self.list_windows()
        found = [target for target in windows if target.id == window]
        found = found or [target for target in windows if target.name.casefold() == window.casefold()]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(target.id for target in found)
            msg = f"{len(found)} windows are called {window!r}; name one by its id: {ids}"
        else:
            msg = f"there is no window {window!r}; list the windows to see what there is"
        raise ToolError(msg)

    @tool(effect=Effect.ONCE, agents=HOST, offered=False)
    def start_application(self, name: Annotated[str, Field(description="The application: word or excel.")]) -> Target:
        """Start an application with a new untitled document; answers with its window."""
        return self.create_document(self._untitled(name))

    @tool(effect=Effect.READ, type=CommandType.DATA_COLLECTION)
    def get_controls(self, document: Document) -> Answer:
        """Look at the document: its controls, with ids by which the other tools find them."""
        seen = self._observe(document, remember=True)
        controls: list[JsonValue] = [control.model_dump(mode="json") for control in seen.controls]
        return {"controls": controls, "left_out": seen.window["controls_left_out"]}

    @tool(effect=Effect.READ, type=CommandType.DATA_COLLECTION)
    def get_window_info(self, document: Document) -> Answer:
        """Tell the document's path, application, size, time of change, and whether and why it can't be written."""
        return dict(self._observe(document, remember=False).window)

    @tool(effect=Effect.READ, type=CommandType.DATA_COLLECTION)
    def get_tree(self, document: Document) -> Answer:
        """Look at the document as a tree: what is below which heading, or on which sheet."""
        snapshot = self._workspace.read(document, remember=True)
        return self._applications[snapshot.root].tree(snapshot)

    @tool(effect=Effect.ONCE)
    def save_as(
        self,
        document: Document,
        path: Annotated[str, Field(description="The new path in the workspace, of the same kind; must not exist yet.")],
    ) -> Target:
        """Save a copy under another name; answers with its window. The document itself stays open as it is."""
        snapshot = self._workspace.read_unchanged(document)
        if PurePosixPath(path).suffix.lower() != snapshot.path.suffix.lower():
            msg = f"{path!r} is refused: {document!r} can only be saved as another {snapshot.path.suffix} file"
            raise ToolError(msg)
        copy = _window(path)
        self._workspace.create(path, snapshot.data, copy.model_dump(mode="json"))
        return copy

    def _untitled(self, application: str) -> str:
        """Find a free name for a new document."""
        root = application.casefold()
        if root not in _UNTITLED:
            msg = f"there is no application {application!r}; there are: word, excel"
            raise ToolError(msg)
        stem, suffix = _UNTITLED[root]
        taken = {path.name.casefold() for path in self._workspace.folder.iterdir()}
        number = next(n for n in range(1, len(taken) + 2) if f"{stem}{n}{suffix}".casefold() not in taken)
        return f"{stem}{number}{suffix}"

    def _observe(self, document: str, *, remember: bool) -> Observation:
        snapshot = self._workspace.read(document, remember=remember)
        application = self._applications[snapshot.root]
        controls = application.controls(snapshot)
        reason = self._workspace.not_writable(snapshot) or application.not_writable(snapshot)
        shown = controls[:_MAX_CONTROLS]
        window: dict[str, JsonValue] = {
            "path": document,
            "application": _NAMES[snapshot.root],
            "size": len(snapshot.data),
            "modified": dt.datetime.fromtimestamp(snapshot.modified, dt.UTC).isoformat(timespec="seconds"),
            "dirty": False,
            "writable": not reason,
            "not_writable_because": reason,
            "controls": len(controls),
            "controls_left_out": len(controls) - len(shown),
        }
        if headings := outline(controls):
            window["outline"] = headings
        return Observation(controls=tuple(shown), window=window, fingerprint=snapshot.fingerprint)


def _root(document: str) -> str:
    return ROOTS[PurePosixPath(document).suffix.lower()]


def _window(document: str) -> Target:
    path = PurePosixPath(document)
    return Target(
        id=document,
        name=path.name,
        kind=TargetKind.WINDOW,
        address=f"app/{_root(document)}/{document}",
        server=DocumentServer.name,
        binds={"document": document},
    )


def _application(root: str) -> Target:
    return Target(
        id=root,
        name=_NAMES[root],
        kind=TargetKind.APPLICATION,
        address=f"app/{root}/*",
        server=DocumentServer.name,
        start="start_application",
    )


def _document_of(target: Target) -> str:
    document = target.binds.get("document")
    if not isinstance(document, str):
        msg = f"{target.name!r} is no document; start the application first"
        raise ToolError(msg)
    return document
