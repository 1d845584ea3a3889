"""The programs of MCP servers, which may be missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces import Need

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
"""The commands that install the programs which usually start MCP servers."""


def program_needed(server: McpServer) -> tuple[Need, ...]:
    """Return the program that a server needs.

    None for HTTP or a relative path.
    """
    command = server.command
    if command is None or (os.path.dirname(command) and not Path(command).is_absolute()):  # noqa: PTH120 - ./server
        return ()
    return (Need.program(command, _BROUGHT_BY.get(command, "")),)
