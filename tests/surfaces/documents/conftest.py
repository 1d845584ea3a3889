"""A workspace, a surface on it, and a way to call its tools as the dispatcher does."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hostile_documents import listening
from pydantic_core import to_jsonable_python

from callboard.actors.runtime import Lease
from callboard.surfaces import EffectGuard
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.documents._workspace import ROOTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Call = Callable[..., Any]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Give an empty folder that is a workspace, with things outside of it."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """Give a port of this machine, and the first bytes of each connection to it."""
    with listening() as opened:
        yield opened


@pytest.fixture
def surface(workspace: Path) -> DocumentSurface:
    """Give a surface on the workspace."""
    return DocumentSurface(workspace)


@pytest.fixture
def call(surface: DocumentSurface) -> Call:
    """Call a tool with JSON arguments: ``call("read_range", "book.xlsx", cells="A1")``."""

    def run(name: str, document: str | None = None, /, guard: EffectGuard | None = None, **arguments: Any) -> Any:
        root = ROOTS.get(PurePosixPath(str(document)).suffix, "excel")
        found = [entry for entry in surface.tools() if entry.name == name]
        entry = next(entry for entry in found if len(found) == 1 or root in entry.roots)
        bound = {} if document is None else {"document": document}
        foreseen: list[Any] = []
        keeper = SimpleNamespace(foresee=lambda *noted: foreseen.append(noted), keep_version=lambda *_: None)
        with (guard or EffectGuard(Lease("here", 1), keeper=keeper)).active():
            answer = entry.tool.fn(**entry.tool.validate({**arguments, **bound}))
            if inspect.iscoroutine(answer):
                answer = asyncio.run(answer)
        if foreseen:  # the answer that a crash right after the write must not lose
            assert repr(foreseen[-1][-1]) == repr(to_jsonable_python(answer)), f"{name} does not answer as it foresaw"
        return answer

    return run
