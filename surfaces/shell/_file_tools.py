"""File tools of a shell.

Files outside the workspace are accessible too, if a person or a rule allows it.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.messages import AgentKind, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.shell._base_shell import NO_NULL
from callboard.surfaces.shell._files import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.surfaces.shell._base_shell import BaseShell
    from callboard.surfaces.shell._files import ShellFiles

LINUX = (AgentKind.LINUX,)
_LINES = 2_000
_ENTRIES = 1_000
_MATCHES = 200
"""The number of lines that a search shows; all are counted."""

ShellName = Annotated[str, Field(description="The shell.")]
PathName = Annotated[str, Field(min_length=1, pattern=NO_NULL, description="From where the shell is, or absolute.")]
Folder = Annotated[str, Field(pattern=NO_NULL, description="From where the shell is, or absolute; empty: where it is.")]
Answer = dict[str, Any]


class FileTools:
    """Tools that read, write, edit and find files.

    Args:
        shell: Returns a shell by its name.
    """

    def __init__(self, shell: Callable[[str], BaseShell]) -> None:
        self._shell = shell

    @tool(effect=Effect.READ, agents=LINUX)
    def read_file(
        self,
        shell: ShellName,
        path: PathName,
        *,
        first_line: Annotated[int, Field(ge=1, description="From 1.")] = 1,
        lines: Annotated[int, Field(ge=1, le=_LINES)] = 400,
    ) -> Answer:
        """Read lines of a text file."""
        here = self._shell(shell)
        text = _text_of(here.files.read(here.inside(path)), path)
        all_lines = text.removesuffix("\n").split("\n") if text else []  # lines as `search` counts them
        shown_lines = all_lines[first_line - 1 : first_line - 1 + lines]
        remaining_count = len(all_lines) - (first_line - 1) - len(shown_lines)
        return {
            "text": "\n".join(shown_lines),
            "lines": len(all_lines),
            **({"more_lines": remaining_count} if remaining_count > 0 else {}),
        }

    @tool(effect=Effect.IDEMPOTENT, agents=LINUX)
    def write_file(self, shell: ShellName, path: PathName, text: str) -> Answer:
        """Write a text file, replacing an existing one."""
        here = self._shell(shell)
        full_path = here.inside(path)
        if here.files.is_folder(full_path):
            msg = f"{path!r} is a folder"
            raise ToolError(msg)
        old_data = here.files.read(full_path) if here.files.exists(full_path) else None
        return _write(here.files, full_path, text.encode(), old_data)

    @tool(effect=Effect.ONCE, agents=LINUX)
    def edit_file(
        self,
        shell: ShellName,
        path: PathName,
        old: Annotated[str, Field(min_length=1, description="The text to replace, which occurs exactly once.")],
        new: str,
    ) -> Answer:
        """Replace a text that occurs exactly once in a text file."""
        here = self._shell(shell)
        full_path = here.inside(path)
        old_data = here.files.read(full_path)
        text = _text_of(old_data, path)
        count = len(re.findall(f"(?={re.escape(old)})", text))  # overlapping ones count
        if count != 1:
            why = f"occurs {count} times: include more of the text around it" if count else "does not occur"
            msg = f"nothing was replaced in {path!r}: the text {why}"
            raise ToolError(msg)
        return _write(here.files, full_path, text.replace(old, new).encode(), old_data)

    @tool(effect=Effect.READ, agents=LINUX)
    def list_dir(self, shell: ShellName, path: Folder = "") -> Answer:
        """List a folder.

        Folders end with a slash, files have their sizes in bytes.
        """
        here = self._shell(shell)
        full_path = here.inside(path)
        entries, more = here.files.entries(full_path, _ENTRIES)
        return {"path": str(full_path), "entries": entries, **({"more_entries": more} if more else {})}

    @tool(effect=Effect.READ, agents=LINUX)
    def find(
        self,
        shell: ShellName,
        pattern: Annotated[str, Field(min_length=1, pattern=NO_NULL, description="Of names, such as *.log.")],
        *,
        path: Folder = "",
    ) -> Answer:
        """Find files and folders by name, below a folder."""
        here = self._shell(shell)
        paths = list(itertools.islice(here.files.find(here.inside(path), pattern), _ENTRIES + 1))
        return {"paths": sorted(paths[:_ENTRIES]), **({"more": True} if len(paths) > _ENTRIES else {})}

    @tool(effect=Effect.READ, agents=LINUX)
    def search(
        self,
        shell: ShellName,
        text: Annotated[
            str, Field(min_length=1, pattern=NO_NULL, description="A text that the line contains, literally.")
        ],
        *,
        path: Folder = "",
        names: Annotated[
            str, Field(pattern=NO_NULL, description="The names of the files that are searched, such as *.py.")
        ] = "*",
        ignore_case: bool = False,
    ) -> Answer:
        """Find lines with a text, in a file or below a folder.

        The answer also counts the lines, in all and in each file.
        """
        here = self._shell(shell)
        counts: Counter[str] = Counter()
        matches: list[dict[str, Any]] = []
        for match in here.files.search(here.inside(path), text, names, ignore_case=ignore_case):
            counts[match.file] += 1
            if len(matches) < _MATCHES:
                matches.append(match._asdict())
        answer: Answer = {"lines": counts.total(), "files": dict(counts.most_common(_ENTRIES)), "matches": matches}
        return {**answer, **({"more": True} if counts.total() > len(matches) else {})}


def _text_of(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"{path!r} is not text in UTF-8 (byte {error.start})"
        raise ToolError(msg) from error


def _write(files: ShellFiles, path: Path, data: bytes, old_data: bytes | None) -> Answer:
    if len(data) > MOST_BYTES:
        msg = f"{len(data):,} bytes are too many for one file; {MOST_BYTES:,} can be written"
        raise ToolError(msg)
    answer: dict[str, JsonValue] = {"path": str(path), "bytes": len(data)}
    files.replace(path, data, old_data, answer)
    return answer
