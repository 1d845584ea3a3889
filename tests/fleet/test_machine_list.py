"""The server's durability, read from a monitoring address."""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from callboard import Settings
from callboard.fleet import Bucket, Durability, Presence, list_machines, make_engine, set_up
from callboard.fleet._machine_list import durability_of
from callboard.fleet._work_messages import MachineState
from callboard.messages import SettingsError
from nats_server import PROGRAM, NatsServer, check_for_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def monitor() -> Iterator[Callable[[Any], str]]:
    """Make monitoring addresses that give an answer."""
    servers = []

    def make(answer: Any) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: object) -> None:
                """Write no log."""

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("answer", "durability", "reason"),
    [
        (
            {"server_id": "A", "config": {"sync_interval": 120_000_000_000, "sync_always": True}},
            Durability.ALWAYS,
            "sync_interval: always",
        ),
        (
            {"server_id": "A", "config": {"sync_interval": 120_000_000_000}},
            Durability.LATER,
            "sync_interval: 120 s",
        ),
        ({"server_id": "A", "config": {}}, Durability.LATER, "no sync_interval"),
        ({"server_id": "B", "config": {"sync_always": True}}, Durability.UNKNOWN, "is the address of another server"),
        ({"server_id": "A", "config": "always"}, Durability.UNKNOWN, "gives no answer that can be read"),
        (["A"], Durability.UNKNOWN, "gives no answer that can be read"),
        ({}, Durability.UNKNOWN, "gives no answer that can be read"),
    ],
)
def test_durability_is_read_from_the_configuration_of_the_server(
    monitor: Callable[[Any], str], answer: Any, durability: Durability, reason: str
) -> None:
    told = durability_of(monitor(answer), "A")
    assert told[0] is durability
    assert reason in told[1]


def test_durability_is_unknown_without_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert durability_of(f"http://127.0.0.1:{port}", "A")[0] is Durability.UNKNOWN
    assert durability_of(None, "A") == (Durability.UNKNOWN, "fleet.monitor is not set")


@pytest.mark.parametrize("is_synced", [True, False])
def test_durability_of_a_real_server_is_told(tmp_path: Path, *, is_synced: bool) -> None:
    check_for_server()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sync = ", sync_interval: always" if is_synced else ""
    config = tmp_path / "nats.conf"
    config.write_text(f'http: "127.0.0.1:{port}"\njetstream {{ store_dir: "{tmp_path}"{sync} }}\n', encoding="utf-8")
    if subprocess.run([PROGRAM, "-c", config, "-t"], check=False, capture_output=True).returncode:
        assert is_synced
        pytest.skip("this version of the server has no sync_interval")
    server = NatsServer(tmp_path, config=config)
    server.start()
    try:
        asyncio.run(set_up(server.url))
        settings = Settings.load(fleet={"url": server.url, "name": "desk", "monitor": f"http://127.0.0.1:{port}"})
        listing = asyncio.run(list_machines(settings))
    finally:
        server.stop()
    assert listing.server.durability is (Durability.ALWAYS if is_synced else Durability.LATER)


def test_machine_without_signs_is_listed_as_away(nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", 0.5)
    settings = Settings.load(fleet={"url": nats_server.url, "name": "finance-3"})

    async def say_once() -> None:
        engine = make_engine(settings)
        await set_up(nats_server.url)
        await engine.open()
        state = MachineState(
            callboard="0.1", identity="x", since=time.time(), beat=1, at=time.time(), running=2, slots=8
        )
        await engine.put(Bucket.MACHINES, "finance-3.state", state.model_dump_json().encode())
        await engine.close()

    asyncio.run(say_once())
    (machine,) = asyncio.run(list_machines(settings)).machines
    assert (machine.name, machine.state, machine.version, machine.running) == ("finance-3", Presence.AWAY, "0.1", 2)
    assert machine.seconds >= 0.5


@pytest.mark.parametrize("address", ["http://192.0.2.7:8222", "ftp://127.0.0.1", "http://a:b@127.0.0.1", "127.0.0.1"])
def test_monitoring_address_of_another_host_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="monitor"):
        Settings.load(fleet={"url": "tls://hub.example.org:4222", "monitor": address})
