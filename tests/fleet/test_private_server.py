"""The server of NATS that a supervisor starts for its local machines."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from callboard.config import Settings
from callboard.errors import SettingsError
from callboard.fleet import _private_server, _server_holder
from callboard.fleet._local_machines import LocalMachines
from callboard.fleet._permissions import syncs_always
from callboard.fleet._private_server import PrivateServer, find_server
from nats_server import check_for_server
from support import PATIENCE, wait_for

FOLDERS = [str(Path(sys.executable).parent), *os.environ["PATH"].split(os.pathsep)]
PROGRAMS = sorted({program for folder in FOLDERS if (program := shutil.which("nats-server", path=folder))})
"""All versions of the server that are installed."""


@pytest.fixture(autouse=True)
def _server():
    check_for_server()


def jetstream_of(server):
    """Return the settings of a server's store."""
    return json.loads((server.folder / "server.json").read_text(encoding="utf-8"))["jetstream"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_lasting_store_is_synced_where_the_version_knows_how(program, tmp_path, monkeypatch):
    monkeypatch.setattr(_private_server, "find_server", lambda: program)
    server = PrivateServer(tmp_path / "store")
    try:
        server.start()  # it refuses settings that it does not know
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        is_old = any(f"v2.{number}." in version for number in range(12))
        assert jetstream_of(server).get("sync_interval") == (None if is_old else "always")
    finally:
        server.stop(PATIENCE)
    assert (tmp_path / "store" / "jetstream").is_dir()


def test_store_is_synced_no_more_than_the_journal(tmp_path):
    servers = [
        LocalMachines(Settings.load(journal={"path": tmp_path / f"{durability}.db", "durability": durability})).server
        for durability in ("full", "process")
    ]
    try:
        for server in servers:
            server.start()
        full, process = map(jetstream_of, servers)
    finally:
        for server in servers:
            server.stop(PATIENCE)
    assert "sync_interval" not in process
    version = subprocess.run([find_server(), "--version"], capture_output=True, text=True, check=True).stdout
    assert ("sync_interval" in full) is syncs_always(version.strip().rpartition("v")[2])


def test_temporary_store_is_not_synced_and_deleted():
    server = PrivateServer(None)
    try:
        server.start()
        assert "sync_interval" not in jetstream_of(server)
    finally:
        server.stop(PATIENCE)
    assert not server.folder.exists()


def test_program_that_is_no_server_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(_private_server, "find_server", lambda: "true")
    with pytest.raises(SettingsError, match="true --version tells no version"):
        PrivateServer(tmp_path).start()


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc/locks")
def test_server_waits_until_an_earlier_one_has_left_its_store(tmp_path):
    command = [sys.executable, "-I", _server_holder.__file__, tmp_path, "keep", "touch", tmp_path / "started"]
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    holder = subprocess.Popen(command, stdin=subprocess.PIPE)
    waiting = f"-> FLOCK  ADVISORY  WRITE {holder.pid} "
    wait_for(lambda: waiting in Path("/proc/locks").read_text(encoding="utf-8"))
    assert not (tmp_path / "started").exists()
    os.close(lock)
    wait_for((tmp_path / "started").exists)
    holder.communicate(timeout=PATIENCE)
