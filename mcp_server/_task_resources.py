"""Results and files of a caller's tasks, as resources."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from callboard.journal import artifacts_of
from callboard.messages import CallboardError, reason_of

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from callboard.actors.client import TaskHandle
    from callboard.mcp_server._caller_tasks import CallerTasks
    from callboard.mcp_server._callers import Caller

_MOST_BYTES = 10_000_000
"""The largest file, and the longest result, that is read at once."""


class TaskResources:
    """The resources of one caller: `callboard://tasks/ID/...`."""

    def __init__(self, tasks: CallerTasks, caller: Caller) -> None:
        self._tasks = tasks
        self._caller = caller

    def add_to(self, server: MCPServer) -> None:
        """Add the templates of the resources to a server."""
        server.resource("callboard://tasks/{task_id}/result", mime_type="application/json")(self.result)
        server.resource("callboard://tasks/{task_id}/artifacts/{index}", mime_type="application/octet-stream")(
            self.artifact
        )

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
        if not index.isascii() or not index.isdecimal() or int(index) >= len(artifacts):
            msg = f"the task has {len(artifacts)} files"
            raise ResourceNotFoundError(msg)
        return await asyncio.to_thread(self._contents, Path(artifacts[int(index)]))

    async def _ended(self, task_id: str) -> TaskHandle:
        try:
            handle = await self._tasks.find(self._caller, task_id)
        except CallboardError as error:
            raise ResourceNotFoundError(str(error)) from None
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


_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A pipe in place of the file is not waited for."""
