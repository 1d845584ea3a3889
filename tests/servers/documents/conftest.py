"""A workspace, a server on it, and a way to call its tools as the dispatcher does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from callboard.actors.servers import DocumentServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Any]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Give an empty folder that is a workspace, with things outside of it."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def server(workspace: Path) -> DocumentServer:
    """Give a server on the workspace."""
    return DocumentServer(workspace)


@pytest.fixture
def call(server: DocumentServer) -> Call:
    """Call a tool with JSON arguments: ``call("read_range", "book.xlsx", cells="A1")``."""

    def run(name: str, document: str | None = None, /, **arguments: Any) -> Any:
        root = "word" if str(document).endswith(".docx") else "excel"
        found = [entry for entry in server.tools() if entry.name == name]
        entry = next(entry for entry in found if len(found) == 1 or root in entry.roots)
        bound = {} if document is None else {"document": document}
        return entry.tool.fn(**entry.tool.fn_metadata.validate_arguments({**arguments, **bound}))

    return run
