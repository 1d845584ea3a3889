"""Tools for files and folders of the workspace, of any kind."""

from __future__ import annotations

import contextlib
import datetime as dt
import fnmatch
import os
import stat
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue

from callboard.messages import AgentKind, Effect, Hazard
from callboard.surfaces import committing, foresee, read_file, sync_folder, write_lock
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import Answer  # noqa: TC001 - schemas are made of it
from callboard.surfaces.documents._workspace import (
    FOLDER,
    ROOTS,
    file_mark,
    has_both_names,
    is_visible_text,
    open_elsewhere,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from callboard.surfaces.documents._workspace import Workspace

HOST = (AgentKind.HOST,)
_LISTED = 500
"""The most files that are listed at once."""
_SEARCHED = 20_000
"""The most files that are looked at for a list."""

FilePath = Annotated[str, Field(description="The path of a file or folder within the workspace, such as old/a.pdf.")]
NewPath = Annotated[str, Field(description="The new path within the workspace; must not exist yet.")]
Folder = Annotated[str, Field(description="A folder within the workspace; empty for the workspace itself.")]


class FolderTools:
    """The tools of HostAgents for files and folders.

    They see no hidden files, and follow no links. Nothing is overwritten.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(effect=Effect.READ, agents=HOST)
    def list_files(
        self,
        folder: Folder = "",
        *,
        pattern: Annotated[str, Field(description="A glob for names, such as *.pdf.")] = "*",
        subfolders: Annotated[bool, Field(description="Whether files in subfolders are listed.")] = True,
    ) -> Answer:
        """List files and folders of any kind, with size and time."""
        root = self._workspace.resolve(folder) if folder else self._workspace.folder
        if not root.is_dir():
            msg = f"there is no folder {folder!r} in the workspace"
            raise ToolError(msg)
        entries: list[JsonValue] = []
        match_count = entry_count = 0
        for path in _walk(root, subfolders=subfolders):
            entry_count += 1
            if entry_count > _SEARCHED:
                break
            if fnmatch.fnmatchcase(path.name.casefold(), pattern.casefold()):
                match_count += 1
                if len(entries) < _LISTED and (facts := self._about(path)):
                    entries.append(facts)
        answer: Answer = {"files": entries, "left_out": match_count - len(entries)}
        return answer if entry_count <= _SEARCHED else {**answer, "searched": f"only the first {_SEARCHED} files"}

    def _about(self, path: Path) -> dict[str, JsonValue]:
        try:
            facts = path.lstat()
        except OSError:  # deleted meanwhile
            return {}
        name = path.relative_to(self._workspace.folder).as_posix()
        changed = dt.datetime.fromtimestamp(facts.st_mtime, dt.UTC).isoformat(timespec="seconds")
        if stat.S_ISDIR(facts.st_mode):
            return {"path": name, "kind": "folder", "modified": changed}
        kind = ROOTS.get(path.suffix.lower(), "other") if stat.S_ISREG(facts.st_mode) else "link or device"
        return {"path": name, "kind": kind, "bytes": facts.st_size, "modified": changed}

    @tool(effect=Effect.IDEMPOTENT, agents=HOST)
    def make_folder(self, path: FilePath) -> Answer:
        """Make a folder, with the folders above it; existing ones stay."""
        absolute_path = self._workspace.resolve(path)
        if absolute_path.is_dir():
            return {"folder": path, "made": False}
        parts = path.split("/")
        missing = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        missing = [name for name in missing if not os.path.lexists(self._workspace.resolve(name))]
        if not missing:
            msg = f"{path!r} is a file"
            raise ToolError(msg)
        try:
            first = self._workspace.resolve_new(missing[0])
            for name in missing:
                self._workspace.check_name(name)
            foresee(absolute_path, "", FOLDER, {"folder": path, "made": True})
            with committing():
                for name in missing:
                    self._workspace.resolve(name).mkdir()
        except OSError as error:
            msg = f"the folder {path!r} can't be made: {error.strerror}"
            raise ToolError(msg) from error
        sync_folder(first.parent)
        return {"folder": path, "made": True}

    @tool(effect=Effect.ONCE, agents=HOST)
    def move_file(
        self,
        path: FilePath,
        new_path: NewPath,
        *,
        copy: Annotated[bool, Field(description="Whether the original stays.")] = False,
    ) -> Answer:
        """Rename, move or copy a file, or rename or move a folder."""
        source, mark = self._existing(path)
        answer: Answer = {"path": new_path}
        if copy:
            self._copy(path, source, new_path, answer)
            return answer
        goal = self._workspace.resolve(new_path)
        if mark == FOLDER or not has_both_names(source, goal):  # otherwise it finishes an interrupted move
            goal = self._workspace.resolve_new(new_path)
        if mark == FOLDER and source in goal.parents:
            msg = f"{path!r} can't be moved into itself"
            raise ToolError(msg)
        try:
            foresee(source, mark, "", answer)
            with write_lock(source, goal), committing():
                self._check(path, source, mark)
                self._workspace.resolve(new_path)
                self._workspace.move(source, goal, folder=mark == FOLDER)
        except FileExistsError:
            msg = f"there is already a file {new_path!r}; choose another name"
            raise ToolError(msg) from None
        except OSError as error:
            msg = f"{path!r} can't be moved: {error.strerror}"
            raise ToolError(msg) from error
        return answer

    def _copy(self, path: str, source: Path, new_path: str, answer: Answer) -> None:
        if source.is_dir():
            msg = f"{path!r} is a folder; only files are copied"
            raise ToolError(msg)
        goal = self._workspace.resolve_new(new_path)
        if (size := source.stat().st_size) > self._workspace.max_bytes:
            msg = f"{path!r} is too large to copy: {size} bytes; {self._workspace.max_bytes} are allowed"
            raise ToolError(msg)
        self._workspace.write_new(new_path, goal, read_file(source), answer)

    @tool(effect=Effect.ONCE, agents=HOST, hazards=[Hazard.DELETES])
    def delete_file(self, path: FilePath) -> Answer:
        """Delete a file or an empty folder."""
        source, mark = self._existing(path)
        if mark == FOLDER and (inside := len(list(source.iterdir()))):
            msg = f"the folder {path!r} is not deleted: it holds {inside} files or folders; delete or move those first"
            raise ToolError(msg)
        try:
            foresee(source, mark, "", {"deleted": path})
            with write_lock(source), committing():
                self._check(path, source, mark)
                source.rmdir() if mark == FOLDER else source.unlink()
        except OSError as error:
            msg = f"{path!r} can't be deleted: {error.strerror}"
            raise ToolError(msg) from error
        sync_folder(source.parent)
        return {"deleted": path}

    def hazards(self, tool: str, arguments: Mapping[str, JsonValue], created_files: Collection[str]) -> set[Hazard]:
        """Report a move to the name of the task's own file.

        The task may overwrite such a file without an approval, by its name.
        """
        if tool != "move_file" or arguments.get("copy"):
            return set()
        goal = str(self._workspace.resolve(str(arguments["new_path"]))).casefold()
        is_created = any(
            name.casefold() == goal or name.casefold().startswith(f"{goal}{os.sep}") for name in created_files
        )
        return {Hazard.OVERWRITES} if is_created else set()

    def deleted(self, tool: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, str]:
        """Return the fingerprint of the file that a call deletes.

        By its absolute path. Empty for a folder, and for a file with a further name, which may be that of another one.
        """
        if tool == "delete_file":
            with contextlib.suppress(ToolError, OSError):  # the tool itself refuses the path
                source, mark = self._existing(str(arguments["path"]))
                if mark != FOLDER and source.lstat().st_nlink == 1:
                    return {str(source): mark}
        return {}

    def _existing(self, path: str) -> tuple[Path, str]:
        """Return an existing file or folder and its mark."""
        absolute_path = self._workspace.resolve(path)
        try:
            mode = absolute_path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                msg = f"{path!r} is neither a file nor a folder"
                raise ToolError(msg)
            if reason := open_elsewhere(absolute_path):
                msg = f"{path!r} is left as it is: {reason}"
                raise ToolError(msg)
            return absolute_path, FOLDER if stat.S_ISDIR(mode) else file_mark(absolute_path)
        except FileNotFoundError:
            msg = f"there is no file {path!r} in the workspace; list_files shows which there are"
            raise ToolError(msg) from None
        except OSError as error:
            msg = f"{path!r} can't be read: {error.strerror}"
            raise ToolError(msg) from error

    def _check(self, path: str, source: Path, mark: str) -> None:
        """Check that the file is still the one that was read."""
        if self._existing(path) != (source, mark):
            msg = f"{path!r} was changed by another program meanwhile"
            raise ToolError(msg)


def visible_files(folder: Path) -> Iterator[Path]:
    """List the visible ordinary files below a folder, sorted."""
    return (path for path in _walk(folder, subfolders=True) if stat.S_ISREG(path.lstat().st_mode))


def _walk(folder: Path, *, subfolders: bool) -> Iterator[Path]:
    """List the visible entries of a folder, sorted; links are not followed."""
    for folder_path, folders, files in os.walk(folder, followlinks=False):
        current_folder = folder.__class__(folder_path)
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        yield from (current_folder / name for name in folders)
        yield from (current_folder / name for name in sorted(files) if not is_hidden(name))
        if not subfolders:
            return


def is_hidden(name: str) -> bool:
    """Return whether a name is that of a hidden or lock file."""
    return name.startswith((".", "~$")) or not is_visible_text(name)
