"""The files of another machine, over SSH."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces import committing, foresee
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.shell._files import LONGEST_LINE, MOST_BYTES, Match, ShellFiles, mark
from callboard.surfaces.shell.judging import PATH, Disk, RemoteDisk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from callboard.surfaces.shell._ssh import Link

_FOUND_BYTES = 5_000_000
"""The most bytes of a search's result."""


class RemoteFiles(ShellFiles):
    """The files of another machine.

    Args:
        link: The connection to the machine.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def real(self, path: Path) -> Path:
        return Path(posixpath.normpath(_text(self._link.run("real", _name(path)))))

    def is_folder(self, path: Path) -> bool:
        return self._kind(path) == "folder"

    def exists(self, path: Path) -> bool:
        return self._kind(path) != "nothing"

    def read(self, path: Path) -> bytes:
        kind = self._kind(path)
        if kind != "file":
            what = {"folder": "a folder", "nothing": "not there"}
            msg = f"{path} is {what.get(kind, 'not a file')}"
            raise ToolError(msg)
        return self._link.run("read", _name(path), str(MOST_BYTES))

    def replace(self, path: Path, data: bytes, old_data: bytes | None, answer: dict[str, JsonValue]) -> None:
        new = _text(self._link.run("put", _name(path), data=data))
        foresee(Path(f"{self._link.host}:{path}"), mark(old_data), mark(data), answer)  # no file of this machine
        with committing():
            self._link.run("place", new, _name(path), mark(old_data))

    def entries(self, path: Path, most: int) -> tuple[list[str], int]:
        *names, more = _text(self._link.run("list", _name(path), str(most))).split("\0")
        if more and not more.isdecimal():
            msg = f"the machine's list of {path} can't be parsed: {more[:100]!r}"
            raise ToolError(msg)
        return sorted(names), int(more[:18] or 0)

    def find(self, path: Path, pattern: str) -> Iterator[str]:
        output = self._search_output("find", _name(path), pattern)
        yield from sorted(_text(file_name).removeprefix("./") for file_name in output.split(b"\0")[:-1])

    def search(self, path: Path, text: str, names: str, *, ignore_case: bool) -> Iterator[Match]:
        option = "-i" if ignore_case else ""
        output = self._search_output("search", _name(path), text, names, option)
        while output:  # a file's name may have a line break, but a line has none
            file, _, output = output.partition(b"\0")
            line, _, output = output.partition(b"\n")
            number, _, content = line.partition(b":")
            if number.isdigit() and len(number) < 19:  # the limit for a line number
                name = _text(file).removeprefix("./") if file.startswith(b"./") else path.name
                yield Match(name, int(number), _text(content)[:LONGEST_LINE])

    def disk(self, workspace: Path) -> Disk:
        """List a folder with all folders below it.

        Raises:
            ToolError: If there are too many files, or they can't be listed.
        """
        *parts, end, tail = ("", *_text(self._search_output("tree", _name(workspace), PATH)).split("\0"))
        if end != "." or tail or not len(parts) % 2:
            msg = f"the files in {workspace} on the other machine can't be listed"
            raise ToolError(msg)
        pairs = list(zip(parts[1::2], parts[2::2], strict=True))
        kinds = {entry[1:]: entry[0] for entry, _ in pairs}
        return RemoteDisk(workspace, kinds, {entry[1:]: link for entry, link in pairs if entry[0] == "l"})

    def _search_output(self, *words: str) -> bytes:
        """Return the result of a search.

        Raises:
            ToolError: If the result is too large.
        """
        output = self._link.run(*words, str(_FOUND_BYTES))
        if len(output) == _FOUND_BYTES:
            msg = f"the search found more than {_FOUND_BYTES:,} bytes; search a smaller folder, or for less"
            raise ToolError(msg)
        return output

    def _kind(self, path: Path) -> str:
        return _text(self._link.run("kind", _name(path))).strip()


def _name(path: Path) -> str:
    """Return a path as an argument of the script.

    Raises:
        ToolError: If the path has a line break, which the script does not take.
    """
    if "\n" in str(path):
        msg = f"{str(path)!r} has a line break, which is not supported on another machine"
        raise ToolError(msg)
    return str(path)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
