"""Machines of this computer that a supervisor starts for itself."""

from __future__ import annotations

import concurrent.futures
import contextlib
import pickle
import secrets
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from callboard.config import AcceptSettings, HostLog
from callboard.fleet._child_process import ChildProcess
from callboard.fleet._private_server import PrivateServer
from callboard.messages import SettingsError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from callboard.config import Settings

_WORKER = "callboard.terminal._local_machine"
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
            for section in ("desktop", "android", "browser", "shells", "mail", "mcp_servers")
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
        journal = settings.journal.path  # beside it: orders to the machines must survive this process, too
        self.server = PrivateServer(
            None if journal is None else settings.path(journal.with_name(f"{journal.name}.fleet")),
            survives_power_loss=settings.journal.durability == "full",
        )
        self._workers: dict[str, ChildProcess] = {}
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
        self.server.start()
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
            worker.end_input()
        end = time.monotonic() + timeout
        late = [name for name, worker in self._workers.items() if not worker.ends(end - time.monotonic())]
        self.server.stop(timeout)
        return tuple(late)

    def _start_worker(self, name: str) -> None:
        settings, failure = local_settings(self._settings, name, self.labels), self._failure_file(name)
        failure.unlink(missing_ok=True)
        start = LocalStart(settings, self.server.url, self.server.token, tuple(sys.path), failure)
        self._workers[name] = worker = ChildProcess([sys.executable, "-P", "-m", _WORKER])
        worker.write(pickle.dumps(start))

    def _failure_file(self, name: str) -> Path:
        return self.server.folder / f"{name}.failure"

    def _restart_ended(self) -> None:
        """Start machines again that have ended: their journals have their work."""
        while not self._is_stopping.wait(_RESTART_SECONDS):
            try:
                self._start_ended_again()
            except OSError as error:
                _log.error("local machines can't be started again, which is tried again: %s", reason_of(error))

    def _start_ended_again(self) -> None:
        self.server.start_if_ended()
        for name, worker in tuple(self._workers.items()):
            if (status := worker.status) is not None:
                worker.end_input()
                self._start_again(name, status)

    def _start_again(self, name: str, status: int) -> None:
        """Start a machine again that has ended.

        During the start of the supervisor, one that names a reason fails it.
        """
        reason = ""
        with contextlib.suppress(FileNotFoundError):
            reason = self._failure_file(name).read_text(encoding="utf-8")
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


def read_start(stream: IO[bytes]) -> LocalStart:
    """Read the start of a local machine from its standard input.

    It is a pipe from the program that started this process, and no other one can write to it.
    """
    start: Any = pickle.load(stream)  # noqa: S301 - see above
    _is_machine.set()
    if not isinstance(start, LocalStart):
        msg = f"expected the start of a local machine, not a {type(start).__name__}"
        raise TypeError(msg)
    return start
