"""A record of the files that a command touches, with hazards."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.messages import Hazard
from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from callboard.surfaces.shell.judging._disk import Disk, DiskEntry

STREAMS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
"""Names of a program's open streams, and of the empty file."""
_MOST_ENTRIES = 20_000
_MOST_DEPTH = 1_000
_SIGNS = frozenset("*?[")
_ENDS = frozenset("*?[]")


class Touched:
    """A record of a command's reads and changes, filled in execution order.

    Args:
        disk: The files of the machine, with the shell's workspace.
        cwd: The working directory at the start.
        own_files: Files that the task has created itself, as absolute paths.
    """

    def __init__(self, disk: Disk, cwd: Path, own_files: Collection[str] = ()) -> None:
        self.disk = disk
        self.folders: tuple[str, ...] = (str(cwd),)
        """The possible working directories; several after a `cd` that may have failed."""
        self.variables: dict[str, Word] = {}
        self.exported: frozenset[str] = frozenset()
        """The names of variables that the next commands inherit."""
        self.reads: set[str] = set()
        self.named: dict[str, str] = {}
        """The first path of each file and folder that the command names, by the name. Patterns are none."""
        self.writes: list[tuple[str, bool]] = []
        """The changed paths, each with whether the change is idempotent."""
        self.hazards: set[Hazard] = set()
        self.lasting = False
        """Whether the command changes the shell's working directory or environment."""
        self.caches = False
        """Whether the command may rewrite a cache, such as git's index."""
        self.moved = False
        """Whether names may refer to other files by now than on the disk."""
        self._own_files = own_files
        self._entry_count = 0

    def read(self, word: Word, *, follows: bool = False) -> None:
        """Record a read of a file or folder.

        Args:
            word: The name.
            follows: Whether links below it are followed.

        Raises:
            UnclearError: If the file is unknown.
        """
        if word.glob and word.known:
            self._check_matches(word)
        elif word.literal in STREAMS or not word.text:
            return
        for folder in self.folders:
            path = os.path.join(folder, _stem(word) if word.glob else word.text)  # noqa: PTH118 - as the kernel joins
            self._note(path)
            if word.known and not word.glob:
                self.named.setdefault(word.text, path)
            for _, link in self._links(path, _MOST_DEPTH) if follows else ():
                if self.disk.is_folder(link):
                    msg = f"it follows the link {link}"
                    raise UnclearError(msg)
                self._note(link)

    def list_names(self, pattern: Word) -> None:
        """Record that bash lists a pattern's folder.

        Raises:
            UnclearError: If the pattern may list a folder behind a link, or above it.
        """
        self._check_matches(pattern, listed=True)
        for folder in self.folders:
            self._note(os.path.join(folder, _stem(pattern)))  # noqa: PTH118 - as the kernel joins

    def write(self, word: Word, *, repeatable: bool, folders: bool = False) -> None:
        """Record that a file is created, replaced or appended to.

        Args:
            word: The name.
            repeatable: Whether the write is idempotent.
            folders: Whether an existing folder counts as overwritten.

        Raises:
            UnclearError: If the file is unknown, or not a regular file.
        """
        if word.literal in STREAMS:
            return
        for path in self.targets(word):
            disk = self.disk
            there = disk.exists(path)
            if (there or disk.is_link(path)) and (folders or not disk.is_folder(path)):
                if there and not (disk.is_file(path) or disk.is_folder(path)):
                    msg = f"{path} is not a regular file"
                    raise UnclearError(msg)
                if path not in self._own_files:
                    self.hazards.add(Hazard.OVERWRITES)
            self.writes.append((path, repeatable))

    def check_inside(self, word: Word) -> None:
        """Refuse a folder that holds links, through which files would be written.

        Raises:
            UnclearError: If there is one.
        """
        for path in self.targets(word):
            for _, link in self._links(path, _MOST_DEPTH):
                msg = f"a folder is copied over another one, in which {link} is a link"
                raise UnclearError(msg)

    def delete(self, word: Word, *, repeatable: bool) -> None:
        """Record that a file or folder is deleted or moved away.

        Raises:
            UnclearError: If the file is unknown.
        """
        self.hazards.add(Hazard.DELETES)
        if word.glob and word.known:
            self._check_matches(word)
        for path in self.targets(Word(_stem(word)) if word.glob and word.known else word):
            self.writes.append((path, repeatable))

    def targets(self, word: Word) -> Iterator[str]:
        """Yield the paths that a changed name may refer to.

        Raises:
            UnclearError: If the file is unknown, or a change of it may affect later commands.
        """
        name = word.literal
        for folder in self.folders:
            path = self._note(os.path.join(folder, name), changed=True)  # noqa: PTH118 - as the kernel joins
            self.named.setdefault(name, path)
            if os.path.basename(path).startswith("-") or ".git" in Path(path).parts:  # noqa: PTH119 - no link followed
                msg = f"a change of {path} may change the behaviour of later commands"
                raise UnclearError(msg)
            yield path

    def enter(self, word: Word) -> None:
        """Record a change of the working directory.

        Raises:
            UnclearError: If the new one is unknown.
        """
        if not word.literal or word.dashed:
            msg = "the new working directory is unknown"
            raise UnclearError(msg)
        if any(value.glob for value in self.variables.values()):
            msg = "it changes the working directory while a variable holds a pattern"
            raise UnclearError(msg)
        new_folders: set[str] = set()
        for folder in self.folders:
            path = os.path.normpath(os.path.join(folder, word.text))  # noqa: PTH118 - bash joins them as texts too
            self._note(path)
            self.named.setdefault(word.text, path)
            new_folders |= {path} if self.disk.is_open(path) else {path, folder}
        self.folders = tuple(sorted(new_folders))
        self.lasting = True

    def assign(self, name: str, value: Word) -> None:
        """Record an assignment to a variable."""
        self.variables[name] = value
        self.lasting = self.lasting or name in self.exported

    def here(self, *, follows: bool = False) -> None:
        """Record a read of the working directory."""
        self.read(Word("."), follows=follows)

    def sometimes(self, part: Callable[[], None]) -> None:
        """Walk through a part of the command that may be skipped."""
        folders, variables = self.folders, dict(self.variables)
        part()
        self.folders = tuple(sorted({*folders, *self.folders}))
        self.variables = {name: word for name, word in self.variables.items() if variables.get(name) == word}

    def apart(self, part: Callable[[], None]) -> None:
        """Walk through a subshell, with its own working directory and variables."""
        folders, variables, lasting = self.folders, dict(self.variables), self.lasting
        part()
        self.folders, self.variables, self.lasting = folders, variables, lasting

    def check_words(self, words: Sequence[Word]) -> None:
        """Refuse patterns whose matches a program could read as options.

        Raises:
            UnclearError: If there are such files now.
        """
        for word in words:
            if not word.glob:
                continue
            stem = _stem(word)
            part = word.text[len(stem) :].partition("/")[0]
            inside = [pair for folder in self.folders for pair in self.entries(os.path.join(folder, stem), 1)]  # noqa: PTH118
            names = [entry.name for _, entry in inside if _may_match(part, entry.name)]
            if word.text[:1] in _SIGNS and any(name.startswith("-") for name in names):
                msg = f"{word.text!r} may match a file whose name is read as an option"
                raise UnclearError(msg)
            if word.split and (
                self.writes or not all(re.fullmatch(r"[\w.+,@%=:][\w.+,@%=:-]*", name) for name in names)
            ):
                msg = f"the names that {word.text!r} matches are split at blanks"
                raise UnclearError(msg)

    def entries(self, folder: str, depth: int) -> Iterator[tuple[int, DiskEntry]]:
        """Yield all entries below a folder with their depths, without following links.

        Raises:
            UnclearError: If all calls together have yielded too many.
        """
        stack = [(0, folder)]
        while stack:
            level, current_folder = stack.pop()
            inside = self.disk.entries(current_folder)
            self._entry_count += len(inside)
            if self._entry_count > _MOST_ENTRIES:
                msg = f"there are more than {_MOST_ENTRIES:,} files to check"
                raise UnclearError(msg)
            for entry in inside:
                yield level, entry
                if level + 1 < depth and entry.is_folder:
                    stack.append((level + 1, entry.path))

    def _links(self, folder: str, depth: int) -> Iterator[tuple[int, str]]:
        return ((level, entry.path) for level, entry in self.entries(folder, depth) if entry.is_link)

    def _note(self, path: str, *, changed: bool = False) -> str:
        """Record a path, and return it in normal form."""
        if self.moved:
            msg = "it uses files after it has moved or deleted some"
            raise UnclearError(msg)
        real_path = self.disk.followed(path)
        if real_path is None and changed:
            msg = f"{path} is not a regular file"
            raise UnclearError(msg)
        inside = real_path is not None and real_path.is_relative_to(self.disk.workspace)
        if not inside:
            self.hazards.add(Hazard.LEAVES)
        normal = str(real_path) if real_path is not None else os.path.normpath(path)
        if not changed:
            self.reads.add(normal)
        return normal

    def _check_matches(self, word: Word, *, listed: bool = False) -> None:
        """Check the links among a pattern's matches; their targets unless only listed."""
        stem = _stem(word)
        parts = word.text[len(stem) :].split("/")
        if any(part == ".." or (part[:1] == "." and _may_match(part, "..")) for part in parts):
            msg = f"{word.text!r} goes up from a pattern, or may do so: before version 5.2 of bash, '.*' matches '..'"
            raise UnclearError(msg)
        for folder in self.folders:
            for depth, link in self._links(os.path.join(folder, stem), len(parts)):  # noqa: PTH118 - as the kernel joins
                if not _may_match(parts[depth], os.path.basename(link)):  # noqa: PTH119 - a text
                    continue
                target = self.disk.followed(link)
                if depth + 1 < len(parts) and self.disk.is_folder(link):
                    msg = f"{word.text!r} may go through the link {link}"
                    raise UnclearError(msg)
                if not listed and (target is None or not target.is_relative_to(self.disk.workspace)):
                    self.hazards.add(Hazard.LEAVES)


def _may_match(pattern: str, name: str) -> bool:
    """Return whether a name may match one part of a pattern.

    Only the literal beginning and end of the part are compared.
    """
    first = next((index for index, sign in enumerate(pattern) if sign in _SIGNS), len(pattern))
    last = max((index for index, sign in enumerate(pattern) if sign in _ENDS), default=-1)
    return name.startswith(pattern[:first]) and (last < 0 or name.endswith(pattern[last + 1 :]))


def _stem(word: Word) -> str:
    """Return the literal folder before a pattern."""
    parts = word.text.split("/")
    first = next(index for index, part in enumerate(parts) if not _SIGNS.isdisjoint(part))
    return "/".join(parts[:first]) + "/" if first else ""
