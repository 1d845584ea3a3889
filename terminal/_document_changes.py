"""Documents before and after a task, with counts of their changes."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.actors.commands import Contents, contents_of, described_changes
from callboard.history import numbered, on_machine
from callboard.messages import CLOSE, OPEN
from callboard.terminal._text import short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.config import Settings
    from callboard.messages import TaskResult

_MOST_FILES, _MOST_LISTED = 10_000, 20
"""The most files in the folders of a run that are compared, and that are listed."""


@dataclass(frozen=True)
class FolderFiles:
    """The files in the folders of a run on copies.

    No other program writes there.
    """

    folders: tuple[Path, ...] = ()
    own_files: tuple[Path, ...] = ()
    """Files that callboard itself writes, such as the journal; those that their names begin with are left out, too."""
    marks: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    """The size and the time of the last change of each file."""

    @classmethod
    def look(cls, settings: Settings) -> FolderFiles:
        """Look at the folders in which the surfaces of some settings work.

        There are none if they have too many files.
        """
        places = [settings.documents.workspace, settings.desktop.folder if settings.desktop.wanted else None]
        places += [shell.cwd for shell in settings.shells.values() if shell.ssh is None]
        folders = tuple({settings.path(folder).resolve(): None for folder in places if folder is not None})
        own_files = (settings.journal.path, settings.log.file, settings.models.record)
        unread = cls(folders, tuple(settings.path(file).resolve() for file in own_files if file is not None))
        marks = unread._marks()
        return cls() if marks is None else replace(unread, marks=marks)

    def differences(self) -> list[tuple[str, Path]]:
        """List the files that differ since, with a word for each."""
        marks = self._marks()
        if marks is None:
            return []
        changes = [("made", path) for path in marks.keys() - self.marks.keys()]
        changes += [("removed", path) for path in self.marks.keys() - marks.keys()]
        changes += [("changed", path) for path in self.marks.keys() & marks.keys() if marks[path] != self.marks[path]]
        return sorted(changes, key=lambda difference: difference[1])

    def _marks(self) -> dict[Path, tuple[int, int]] | None:
        """Read the marks of all visible files; None for too many."""
        marks: dict[Path, tuple[int, int]] = {}
        for folder in self.folders:
            for parent, folders, names in os.walk(folder):
                folders[:] = [name for name in folders if not name.startswith(".")]
                for path in (Path(parent, name) for name in names if not name.startswith(".")):
                    with contextlib.suppress(OSError):  # it is being deleted
                        status = path.lstat()
                        if stat.S_ISREG(status.st_mode) and not any(
                            str(path).startswith(str(own_file)) for own_file in self.own_files
                        ):
                            marks[path] = (status.st_size, status.st_mtime_ns)
                if len(marks) > _MOST_FILES:
                    return None
        return marks


@dataclass(frozen=True)
class OldDocuments:
    """The documents before a task."""

    originals: Mapping[Path, Path] = field(default_factory=dict)
    """The originals of copies: files, or folders with all in them."""
    contents: Mapping[Path, Contents | None] = field(default_factory=dict)
    """The contents of documents that the task works on in place."""
    files: FolderFiles = field(default_factory=FolderFiles)
    """The files of a run on copies."""

    def lines(self, result: TaskResult) -> list[tuple[str, str]]:
        """List made and changed things by their names for people.

        Files have counts of the differences. Applications that write files by themselves report none: in a run on
        copies, the files of its folders tell.
        """
        names = _names(result)
        changed = dict.fromkeys((*result.artifacts, *result.changed))
        lines = [self._line(name, made=name in result.made) for name in changed if Path(name).is_absolute()]
        file_changes = [(word, path) for word, path in self.files.differences() if str(path) not in changed]
        for word, path in file_changes[:_MOST_LISTED]:
            lines.append((word, short(path)) if word == "removed" else self._line(str(path), made=word == "made"))
        if len(file_changes) > _MOST_LISTED:
            lines.append(("changed", f"{numbered(len(file_changes) - _MOST_LISTED, 'more file')}"))
        targets = (name for name in changed if not Path(name).is_absolute())
        for target in targets:
            if target in names:
                lines.append(("changed", names[target]))
            elif not target.startswith((OPEN, CLOSE)):  # of older versions
                lines.append(("called", target))
        return list(dict.fromkeys(lines))

    def _line(self, name: str, *, made: bool) -> tuple[str, str]:
        path = Path(name)
        old_contents = self._contents(path)
        new = made and old_contents is None
        counts = described_changes(old_contents, contents_of(path)) if new or old_contents is not None else ""
        return "made" if new else "changed", f"{short(path)} ({counts})" if counts else short(path)

    def _contents(self, path: Path) -> Contents | None:
        if path in self.contents:
            return self.contents[path]
        for copy, original in self.originals.items():
            if path == copy:
                return contents_of(original)
            if path.is_relative_to(copy):
                return contents_of(original / path.relative_to(copy))
        return None


def _names(result: TaskResult) -> dict[str, str]:
    """Return the names for people of the targets that a task changed.

    A window without one is named by its application, since its id and address have the number of a process.
    """
    names: dict[str, str] = {}
    for subtask in result.subtasks:
        application, _, process = subtask.address.partition("/")[2].rpartition("/")
        for target in subtask.changed:
            if not Path(target).is_absolute():
                name = subtask.target or (application if process.isdigit() and application else target)
                names[target] = on_machine(subtask.machine, name)
    return names
