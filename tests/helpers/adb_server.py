"""An adb server on its own port, with its own home."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING

from callboard.surfaces.android import Adb

if TYPE_CHECKING:
    from pathlib import Path


def adb_at_home(program: Path, home: Path) -> Adb:
    """Make an adb server that does not look for emulators."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    quiet = {"ADB_LOCAL_TRANSPORT_MAX_PORT": "0", "ADB_MDNS_AUTO_CONNECT": "0"}
    return Adb(program, port, {"HOME": str(home), "TMPDIR": str(home), "PATH": os.defpath, **quiet})
