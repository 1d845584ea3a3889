"""Parts that the tools of several formats share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import Edited, replacing
from callboard.surfaces.documents._tables import short

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from pydantic import JsonValue

    from callboard.messages import Control
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents._workspace import Snapshot, Workspace

Offset = Annotated[int, Field(ge=0, description="How many characters to skip.")]
Limit = Annotated[int, Field(ge=1, le=50_000, description="How many characters to read at most.")]
Start = Annotated[int, Field(ge=0, description="How many rows to skip.")]
Rows = Annotated[int, Field(ge=1, le=5000, description="How many rows to read at most.")]
Numbers = Annotated[bool, Field(description="Whether cells that are unambiguous numbers become numbers.")]
Decimal = Annotated[Literal["auto", ".", ","], Field(description="The decimal separator.")]
Header = Annotated[bool, Field(description="Whether the first row is the header.")]
READER_SECONDS = 60
"""The longest time for reading a file in a process of its own."""
_MOST_CACHED = 16
_MOST_CACHED_BYTES = 1_000_000
"""Results with more bytes are not kept."""
_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TESSDATA_PREFIX")
"""The variables that started programs get of this process's."""


def part_of(text: str, offset: int, limit: int) -> Answer:
    """Return a part of a text as a tool's answer."""
    part = text[offset : offset + limit]
    return {"text": part, "characters": len(text), "left_out": max(0, len(text) - offset - len(part))}


class FormatTools:
    """Base class of a format's tools.

    Each call reads the file, and an edit replaces it; no file stays open.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a file's controls: none by default."""
        return []

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a file's controls in a tree: all are at one level."""
        children: list[JsonValue] = [control.model_dump(mode="json") for control in self.controls(snapshot)]
        return {"name": snapshot.path.name, "children": children}

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a file must not be written; empty if it may."""
        return ""

    def preview(self, snapshot: Snapshot) -> str:
        """Return the text that an observation of the file shows."""
        return ""

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return facts about the file for its observation."""
        return {}

    def overwrites(self, document: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a call of an overwriting tool replaces content."""
        return True

    def empty(self) -> bytes:
        """Return the bytes of a new file.

        Raises:
            ToolError: If no empty file of the format can be made.
        """
        msg = "an empty file of this kind can't be made"
        raise ToolError(msg)

    def _replacing(self, document: str) -> AbstractContextManager[Replaced]:
        return replacing(self._workspace, document, lambda snapshot: Replaced(snapshot, self.not_writable(snapshot)))


class Replaced(Edited):
    """A file that an edit replaces; its body sets `data`."""

    def __init__(self, snapshot: Snapshot, protection: str) -> None:
        super().__init__()
        self.snapshot = snapshot
        self.data = snapshot.data
        self._protection = protection

    def not_writable(self) -> str:
        """Explain why the file must not be written; empty if it may."""
        return self._protection

    def to_bytes(self) -> bytes:
        """Return `data`."""
        return self.data


def read_in_process(request: dict[str, JsonValue], snapshot: Snapshot, extra: str) -> tuple[dict[str, Any], bytes]:
    """Run the reader on a file, in a process with limits.

    The last results are kept.

    Args:
        request: The thing to read (see `_file_reader`).
        snapshot: The file.
        extra: The extra that the reader needs, such as ``pdf``.

    Returns:
        The reader's answer and bytes.

    Raises:
        ToolError: If the file can't be read; the text gives the reason.
    """
    request_json = json.dumps(request, sort_keys=True)
    key = request_json, snapshot.fingerprint
    with _cache_lock:
        cached_result = _cache.get(key)
    answer, content = cached_result or run_reader(request, snapshot.data)
    if name := answer.get("missing"):
        msg = f"{snapshot.document!r} can't be read: {name} is not installed: it comes with callboard[{extra}]"
        raise ToolError(msg)
    if "error" in answer:
        msg = f"{snapshot.document!r} can't be read: {answer['error']}; it is unchanged"
        raise ToolError(msg)
    if len(content) <= _MOST_CACHED_BYTES:
        with _cache_lock:
            _cache[key] = answer, content
            while len(_cache) > _MOST_CACHED:
                del _cache[next(iter(_cache))]
    return answer, content


def run_reader(request: dict[str, JsonValue], data: bytes) -> tuple[dict[str, Any], bytes]:
    """Run the reader on bytes.

    Its answer may be an error or a missing package.
    """
    # Parsers of others' binary files: a crash, an endless loop or a bomb ends the child alone. It gets none of this
    # process's variables, which may hold keys, and its folder is deleted.
    with tempfile.TemporaryDirectory(prefix="callboard-read-") as folder:
        program = [sys.executable, "-I", "-B", str(Path(__file__).with_name("_file_reader.py")), json.dumps(request)]
        try:
            done = subprocess.run(
                program,
                input=data,
                capture_output=True,
                check=False,
                timeout=READER_SECONDS,
                cwd=folder,
                env=plain_environment(Path(folder)),
            )
        except subprocess.TimeoutExpired:
            return {"error": f"it takes longer than {READER_SECONDS} seconds"}, b""
    head, _, content = done.stdout.partition(b"\n")
    try:
        answer: dict[str, Any] = json.loads(head)
    except ValueError:
        reason = short(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2], 200)
        return {
            "error": f"its reader ended with code {done.returncode}: {reason or 'it took too much memory or time'}"
        }, b""
    return answer, content


def plain_environment(home: Path) -> dict[str, str]:
    """Return the environment of a started program, without secrets."""
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {**variables, "HOME": str(home), "TMPDIR": str(home), "TEMP": str(home), "TMP": str(home)}


_cache: dict[tuple[str, str], tuple[dict[str, Any], bytes]] = {}
_cache_lock = threading.Lock()
