"""A server of NATS and machines as processes, with their cost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("NATS_SERVER", "nats-server")
START_SECONDS = 30.0


class FleetProcesses:
    """A server with its store in a folder, and machines."""

    def __init__(self, folder: Path) -> None:
        if shutil.which(PROGRAM) is None:
            msg = f"{PROGRAM} is missing: apt-get install nats-server"
            raise RuntimeError(msg)
        self._folder = folder
        self._machines: list[subprocess.Popen[bytes]] = []
        port, self._monitor_port = _free_port(), _free_port()
        self.url = f"nats://127.0.0.1:{port}"
        ports = ("-p", str(port), "-m", str(self._monitor_port))
        command = (PROGRAM, "-a", "127.0.0.1", *ports, "-js", "-sd", str(folder / "server"))
        self._server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait_for_server(port)

    def _wait_for_server(self, port: int) -> None:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if time.monotonic() > end:
                    self.__exit__()
                    raise
                time.sleep(0.02)
            else:
                return

    def __enter__(self) -> Self:
        """Give it."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None = None,
        _error: BaseException | None = None,
        _traceback: TracebackType | None = None,
    ) -> None:
        """End all processes."""
        for process in (*self._machines, self._server):
            with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
                process.communicate(timeout=0.0 if process is self._server else START_SECONDS)
            process.kill()
            process.wait()

    def add(self, name: str) -> None:
        """Start a machine."""
        command = (sys.executable, "-m", "benchmarks.fleet_worker", self.url, name, str(self._folder))
        self._machines.append(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE))

    @property
    def machine_pids(self) -> list[int]:
        """The processes of the machines."""
        return [process.pid for process in self._machines]

    @property
    def server_pid(self) -> int:
        """The process of the server."""
        return self._server.pid

    def traffic(self) -> dict[str, int]:
        """Return the messages and bytes of the server so far, both ways."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._monitor_port}/varz", timeout=START_SECONDS) as answer:
            counts = json.load(answer)
        return {
            "messages": counts["in_msgs"] + counts["out_msgs"],
            "bytes": counts["in_bytes"] + counts["out_bytes"],
        }


def cpu_of(*pids: int) -> float:
    """Return the CPU seconds of processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def megabytes_of(pid: int) -> float:
    """Return the memory of a process that is in use."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
