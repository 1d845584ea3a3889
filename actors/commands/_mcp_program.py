"""The program that a third party's MCP server is started with, and the command that brings it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.actors.servers import Need

if TYPE_CHECKING:
    from callboard.config import McpServer

_BROUGHT_BY = {
    "docker": "apt install docker.io",
    "node": "apt install nodejs",
    "npm": "apt install npm",
    "npx": "apt install npm",
    "podman": "apt install podman",
    "uv": "pip install uv",
    "uvx": "pip install uv",
}
"""The commands that bring the programs which MCP servers are usually started with."""


def program_needed(server: McpServer) -> tuple[Need, ...]:
    """Give the program that a server needs here; none for one over HTTP, or with a relative path."""
    command = server.command
    if command is None or (os.path.dirname(command) and not Path(command).is_absolute()):  # noqa: PTH120 - ./server
        return ()
    return (Need.program(command, _BROUGHT_BY.get(command, "")),)
