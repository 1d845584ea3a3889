"""A server of NATS as a process, which a test may kill."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import nkeys
import pytest

from support import PATIENCE


def new_key(kind: int = nkeys.PREFIX_BYTE_USER) -> tuple[str, str]:
    """Make a key pair; return its seed and its public key."""
    seed = nkeys.encode_seed(os.urandom(32), kind)
    return seed.decode(), nkeys.from_seed(bytearray(seed)).public_key.decode()


PROGRAM = os.environ.get("NATS_SERVER", "nats-server")


@dataclass
class NatsServer:
    """A server of NATS on loopback, whose store is a folder."""

    folder: Path
    port: int = field(default=0)
    config: Path | None = None
    """Its configuration, which names the folder; without one it is not protected."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self, address: str = "127.0.0.1") -> None:
        """Start it, on the same port as before."""
        if not self.port:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
        store = ["-js", "-sd", str(self.folder)] if self.config is None else ["-c", str(self.config)]
        command = [PROGRAM, "-a", address, "-p", str(self.port), *store]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert self.process.poll() is None, "the server has ended"
                assert time.monotonic() < end, "the server does not answer"
                time.sleep(0.02)
            else:
                return

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)


def check_for_server() -> None:
    """Skip the test without a server of NATS; with ``REQUIRE_NATS`` fail it."""
    if shutil.which(PROGRAM) is None:
        missing = "nats-server is missing: apt-get install nats-server"
        if os.environ.get("REQUIRE_NATS"):
            pytest.fail(missing)
        pytest.skip(missing)
