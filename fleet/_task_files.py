"""Files that move between machines with a subtask."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.config import HostLog, own_folder
from callboard.fleet._engine import DamagedFileError
from callboard.fleet._repeated_calls import repeat
from callboard.fleet._shared_folder import SharedFolder
from callboard.fleet._stored_files import digest_of
from callboard.journal import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from callboard.config import Settings
    from callboard.fleet._engine import FleetEngine, StoredFile
    from callboard.journal import Artifacts
    from callboard.messages import SubtaskResult, Task

INBOX = "inbox"
"""The folder of a workspace that gets files of other machines."""

_log = HostLog()


class TaskFiles:
    """Send files of results, and write those of other machines.

    Files that a machine gets never replace one that is there.
    """

    def __init__(self, engine: FleetEngine, settings: Settings, artifacts: Artifacts) -> None:
        """Create it.

        Args:
            engine: The connection.
            settings: The settings, for the largest file and the workspace of documents.
            artifacts: Where files are written that go into no workspace.
        """
        self._engine = engine
        self._largest = settings.fleet.max_file_bytes
        self._keeps_paths = settings.fleet.files == "same" or settings.fleet.local > 0
        shared = settings.fleet.shared_folder
        self._shared = None if shared is None else SharedFolder(settings.path(shared), settings.fleet.machine)
        workspace = settings.documents.workspace
        self._workspace = None if workspace is None else settings.path(workspace)
        self._artifacts = artifacts

    async def send(self, paths: Iterable[str], owner: str, reader: str = "") -> dict[str, StoredFile]:
        """Store files for another machine.

        Those that are gone are left out, and large ones without a shared folder.
        """
        files: dict[str, StoredFile] = {}
        for path in () if self._keeps_paths else dict.fromkeys(paths):
            file = Path(path)
            size = await asyncio.to_thread(_size_of, file)
            if size is None:
                continue
            if size <= self._largest:
                files[path] = await repeat(lambda file=file: self._engine.store(file, owner, reader))  # type: ignore[misc]
            elif (copy := await self._share(file, size, owner, reader)) is not None:
                files[path] = copy
        return files

    async def _share(self, file: Path, size: int, owner: str, reader: str) -> StoredFile | None:
        """Copy a large file into the shared folder, if there is one."""
        if self._shared is None:
            _log.warning("%s is not sent: it has %s bytes, and fleet.max_file_bytes is %s", file, size, self._largest)
            return None
        try:
            return await self._shared.store(file, owner, reader)
        except (DamagedFileError, OSError) as error:
            _log.warning("%s is not sent: it can't be copied into the shared folder: %s", file, error)
            return None

    async def keep(self, files: Mapping[str, StoredFile], task_id: str, run_id: str) -> dict[str, str]:
        """Write files as artifacts of a task.

        Returns:
            Their paths here, by those there.
        """
        paths: dict[str, str] = {}
        for path, file in files.items():
            if self._is_too_large(file):
                _log.warning("a file of another machine is left out: %s", self._too_large(file))
                continue
            new_path = await asyncio.to_thread(self._artifacts.reserve, task_id, run_id, file.name)
            if await self._load(file, new_path):
                paths[path] = str(new_path)
        return paths

    def _is_too_large(self, file: StoredFile) -> bool:
        return not file.shared and file.size > self._largest

    def _too_large(self, file: StoredFile) -> str:
        return f"the file {file.name!r} has {file.size:,} bytes; this machine takes {self._largest:,} at most"

    async def take_in(self, files: Mapping[str, StoredFile], task_id: str) -> dict[str, str]:
        """Write files into the workspace's inbox.

        Without a workspace they are artifacts of the task.

        Returns:
            Their paths here, by those there.

        Raises:
            ValueError: If one is larger than this machine takes, or the inbox is a link.
        """
        refused_file = next((file for file in files.values() if self._is_too_large(file)), None)
        if refused_file is not None:
            raise ValueError(self._too_large(refused_file))
        if self._workspace is None:
            return await self.keep(files, task_id, task_id)
        paths: dict[str, str] = {}
        for path, file in files.items():
            new_path = await asyncio.to_thread(_path_in, self._workspace / INBOX, file)
            if new_path.exists() or await self._load(file, new_path):
                paths[path] = str(new_path)
        return paths

    async def _load(self, file: StoredFile, path: Path) -> bool:
        try:
            if not file.shared:
                await repeat(lambda: self._engine.load(file, path))
            else:
                await self._load_shared(file, path)
        except DamagedFileError as error:
            _log.warning("a file of another machine is left out: %s", error)
            return False
        return True

    async def _load_shared(self, file: StoredFile, path: Path) -> None:
        """Write a file of the shared folder.

        Raises:
            DamagedFileError: If there is no such folder, or the file can't be copied.
        """
        if self._shared is None:
            raise DamagedFileError.elsewhere(file.name)
        try:
            await self._shared.load(file, path)
        except OSError as error:
            raise DamagedFileError.unreadable(file.name, error) from error

    def moved_result(self, result: SubtaskResult, paths: Mapping[str, str], machine: str) -> SubtaskResult:
        """Return a result whose files are on another machine now.

        Files that did not move, and targets, get their machine in front, unless all machines have the same files.

        Args:
            result: The result.
            paths: The new paths of files, by the old ones.
            machine: The machine that has the old ones.
        """
        if self._keeps_paths:
            return result
        return result.model_copy(
            update={
                "artifacts": tuple(paths.get(path, f"{machine}:{path}") for path in result.artifacts),
                "made": tuple(paths.get(path, f"{machine}:{path}") for path in result.made),
                "changed": tuple(f"{machine}:{name}" for name in result.changed),
                "output": _moved_value(result.output, paths),
            }
        )

    def returned_result(self, result: SubtaskResult) -> SubtaskResult:
        """Return a result as the machine that made it knows it."""
        if self._keeps_paths:
            return result

        def path_there(name: str) -> str:
            return result.paths_there.get(name, name.removeprefix(f"{result.machine}:"))

        return result.model_copy(
            update={
                "artifacts": tuple(map(path_there, result.artifacts)),
                "made": tuple(map(path_there, result.made)),
                "changed": tuple(map(path_there, result.changed)),
                "output": _moved_value(result.output, result.paths_there),
                "paths_there": {},
            }
        )

    def with_files(self, task: Task, paths: Mapping[str, str], machine: str) -> Task:
        """Return a task whose earlier results name files of this machine.

        Args:
            task: The task, which another machine sent.
            paths: The paths of its files here, by those there.
            machine: This machine.
        """
        origin = task.origin
        if origin is None:
            return task
        subtasks = tuple(
            result.model_copy(update={"machine": ""})
            if result.machine == machine
            else self.moved_result(result, paths, result.machine or origin.submitter)
            for result in origin.subtasks
        )
        made = origin.made if self._keeps_paths else tuple(paths[path] for path in origin.made if path in paths)
        return task.model_copy(update={"origin": origin.model_copy(update={"subtasks": subtasks, "made": made})})

    async def discard(self, files: Iterable[StoredFile]) -> None:
        """Delete stored files, and copies in the shared folder."""
        for file in files:
            if not file.shared:
                await repeat(lambda file=file: self._engine.discard(file))  # type: ignore[misc]
            elif self._shared is not None:
                try:
                    await self._shared.discard(file)
                except OSError as error:
                    _log.warning("the copy of %r stays in the shared folder: %s", file.name, error)


def sent_by(files: Mapping[str, StoredFile], machine: str, task_id: str) -> dict[str, StoredFile]:
    """Return a task's files that a machine has stored.

    A message that names others, as to have them deleted with the task, names them in vain.
    """
    own_files = {path: file for path, file in files.items() if (file.writer, file.owner) == (machine, task_id)}
    if len(own_files) < len(files):
        _log.error("the machine %s names files of others for %s; they are left out", machine, task_id)
    return own_files


def _size_of(file: Path) -> int | None:
    """Return a file's size; None if there is none."""
    return file.stat().st_size if file.is_absolute() and file.is_file() else None


def _path_in(inbox: Path, file: StoredFile) -> Path:
    """Return the path of a file in an inbox.

    It is a new one, or that of the same contents.

    Raises:
        ValueError: If the inbox is a link, and so may lead out of the workspace.
    """
    if inbox.is_symlink():
        msg = f"{inbox} is a link: files of other machines are written into a folder only"
        raise ValueError(msg)
    own_folder(inbox)
    name = Path(safe_name(file.name))
    number, path = 1, inbox / name
    while path.is_symlink() or path.exists():
        if not path.is_symlink() and path.is_file() and digest_of(path)[0] == file.sha256:
            return path
        number += 1
        path = inbox / f"{name.stem} ({number}){name.suffix}"
    return path


def _moved_value(value: JsonValue, paths: Mapping[str, str]) -> JsonValue:
    """Replace each text of a value that is an old path."""
    match value:
        case str():
            return paths.get(value, value)
        case list():
            return [_moved_value(item, paths) for item in value]
        case dict():
            return {key: _moved_value(item, paths) for key, item in value.items()}
        case _:
            return value
