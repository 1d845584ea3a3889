"""Results and files of a caller's tasks, as resources."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import itertools
import json
import os
import stat
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from pydantic import BaseModel

from callboard.journal import JournalReader, artifacts_of
from callboard.messages import CallboardError, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.server.mcpserver import MCPServer

    from callboard.actors.client import TaskHandle
    from callboard.mcp_server._caller_tasks import CallerTasks
    from callboard.mcp_server._callers import Caller

_MOST_BYTES = 10_000_000
"""The largest file, and the longest result, that is read at once."""
_MOST_PICTURES = 1_000
"""The most pictures of a list."""


class TaskResources:
    """The resources of one caller: `callboard://tasks/ID/...`."""

    def __init__(self, tasks: CallerTasks, caller: Caller) -> None:
        self._tasks = tasks
        self._caller = caller

    def add_to(self, server: MCPServer) -> None:
        """Add the templates of the resources to a server."""
        templates: list[tuple[Callable[..., Any], str, str]] = [
            (self.result, "result", "application/json"),
            (self.artifact, "artifacts/{index}", "application/octet-stream"),
        ]
        if self._caller.rights.pictures:
            templates += [
                (self.pictures, "pictures", "application/json"),
                (self.picture, "pictures/{digest}", "image/png"),
            ]
        for function, end, mime_type in templates:
            add = server.resource(
                f"callboard://tasks/{{task_id}}/{end}", description=inspect.getdoc(function), mime_type=mime_type
            )
            add(function)

    async def result(self, task_id: str) -> str:
        """Return the whole result of an ended task, as JSON.

        Texts of others in it are data.
        """
        text = self._tasks.whole_result(await self._ended(task_id))
        if len(text) > _MOST_BYTES:
            msg = f"the result has {len(text)} characters: read it in parts by task_status with read_from"
            raise ResourceError(msg)
        return text

    async def artifact(self, task_id: str, index: str) -> bytes:
        """Return the present contents of a task's file.

        It has at most 10 MB.
        """
        artifacts = (await self._ended(task_id)).result(0).artifacts
        if index not in map(str, range(len(artifacts))):
            msg = f"there is no such file; the number of the task's files is {len(artifacts)}"
            raise ResourceNotFoundError(msg)
        return await asyncio.to_thread(self._contents, Path(artifacts[int(index)]))

    async def pictures(self, task_id: str) -> str:
        """List the pictures of a task so far, as JSON.

        Each has a URI, and the run of the agent that saw it. Nothing in them is redacted.
        """
        handle = await self._own(task_id)
        runs = await asyncio.to_thread(self._digests, handle.task_id)
        listed = [
            {"uri": f"callboard://tasks/{handle.task_id}/pictures/{digest}", "run": run}
            for digest, run in itertools.islice(runs.items(), _MOST_PICTURES)
        ]
        return json.dumps({"pictures": listed, "left_out": len(runs) - len(listed)}, indent=1)

    async def picture(self, task_id: str, digest: str) -> bytes:
        """Return a picture of a task, as PNG.

        Nothing in it is redacted.
        """
        handle = await self._own(task_id)
        picture = await asyncio.to_thread(self._picture, handle.task_id, digest)
        if picture is None or len(picture) > _MOST_BYTES:
            msg = "the task has no such picture, or the journal no longer keeps it"
            raise ResourceNotFoundError(msg)
        return picture

    def _digests(self, task_id: str) -> dict[str, str]:
        """Return the digests of a task's pictures, with their runs."""
        with JournalReader.open(self._tasks.journal, pictures=False) as reader:
            runs: dict[str, str] = {}
            for row in reader.rows(task_id, events=False):
                for digest in _pictures_in(row.message):
                    runs.setdefault(digest, row.run_id)
        return runs

    def _picture(self, task_id: str, digest: str) -> bytes | None:
        if digest not in self._digests(task_id):
            return None
        with JournalReader.open(self._tasks.journal, pictures=False) as reader:
            return reader.picture(bytes.fromhex(digest))

    async def _own(self, task_id: str) -> TaskHandle:
        try:
            return await self._tasks.find(self._caller, task_id)
        except CallboardError as error:
            raise ResourceNotFoundError(str(error)) from None

    async def _ended(self, task_id: str) -> TaskHandle:
        handle = await self._own(task_id)
        if not handle.done():
            msg = "the task is not over"
            raise ResourceError(msg)
        return handle

    def _contents(self, path: Path) -> bytes:
        """Read a file of the workspace or of the journal.

        Raises:
            ResourceError: If a link leads elsewhere, or it is no file, too large, or can't be read.
        """
        real_path = Path(os.path.realpath(path))
        folders = [self._tasks.workspace, artifacts_of(self._tasks.journal).resolve()]
        try:
            if not any(folder is not None and real_path.is_relative_to(folder) for folder in folders):
                msg = f"{path.name} is neither in the workspace nor beside the journal"
                raise ResourceError(msg)
            with os.fdopen(os.open(real_path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | _NO_WAIT), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                    msg = f"{path.name} is no file, or has more than {_MOST_BYTES} bytes"
                    raise ResourceError(msg)
                return file.read(_MOST_BYTES)
        except OSError as error:
            msg = f"{path.name} can't be read: {reason_of(error).replace(str(path.parent), '')}"
            raise ResourceError(msg) from None


def _pictures_in(value: Any) -> Iterator[str]:
    """Yield the digests of the pictures in a message.

    It was read without them: its bytes are their digests.
    """
    match value:
        case bytes() if len(value) == hashlib.sha256().digest_size:
            yield value.hex()
        case dict():
            yield from _pictures_in(tuple(value.values()))
        case list() | tuple():
            for item in value:
                yield from _pictures_in(item)
        case BaseModel():
            yield from _pictures_in(tuple(getattr(value, name) for name in type(value).model_fields))
        case _ if is_dataclass(value):
            yield from _pictures_in(tuple(getattr(value, field.name) for field in fields(value)))


_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A pipe in place of the file is not waited for."""
