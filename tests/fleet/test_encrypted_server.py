"""A fleet over TLS with keys, as the printed configuration has it, and each way to get it wrong."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import hashlib
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import nkeys
import pytest

from callboard import Settings, Supervisor
from callboard.fleet import authorization, connection_options, machine_permissions, make_engine, server_settings, set_up
from callboard.fleet._permissions import API, services
from callboard.messages import SettingsError
from callboard.testing import MemoryServer
from nats_certificates import DAY, Authority
from nats_server import PROGRAM, NatsServer, check_for_server, new_key
from support import PATIENCE, lone, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MACHINES = ("desk", "finance-3")


class Hub:
    """A server with TLS, its authority, and the settings of the machines.

    Args:
        folder: Where its files are written.
        ends: The time after which its certificate does not hold any more.
    """

    def __init__(self, folder: Path, *, ends: dt.timedelta = DAY) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.key, self.certificate = self.authority.certificate("server", ends=ends)
        self.public_keys = {name: self.write_seed(name) for name in ("setup", *MACHINES)}
        self.config = folder / "nats.conf"
        self.server = NatsServer(folder, config=self.config)

    def write_seed(self, name: str) -> str:
        """Write a machine's credentials, and return its public key."""
        seed, public_key = new_key()
        (self.folder / f"{name}.credentials").write_text(f"{seed}\n", encoding="ascii")
        return public_key

    def start(self) -> None:
        """Start it with the printed configuration and no changes but its placeholders."""
        version = re.search(r"v(\d+\.\d+\.\d+)", subprocess.check_output([PROGRAM, "--version"], text=True))
        assert version is not None
        text = server_settings(version[1]) + authorization(MACHINES)
        text = text.replace("PUBLIC KEY OF WHO RUNS callboard fleet setup", self.public_keys["setup"])
        for name in MACHINES:
            text = text.replace(f"PUBLIC KEY OF {name}", self.public_keys[name])
        self.start_with(text)

    def start_with(self, text: str) -> None:
        """Start it with a configuration, and make the streams."""
        text = text.replace("/etc/nats/server", str(self.folder / "server")).replace("http: 127.0.0.1:8222", "")
        self.config.write_text(text.replace("/var/lib/callboard-fleet", str(self.folder / "js")), encoding="utf-8")
        self.server.start()

    def settings(self, name: str, **changes: Any) -> Settings:
        """Give the settings of a machine."""
        fleet = {
            "name": name,
            "url": self.server.url.replace("nats:", "tls:"),
            "credentials": self.folder / f"{name}.credentials",
            "ca": self.authority.path,
            **changes,
        }
        return Settings.load(fleet={key: value for key, value in fleet.items() if value}, log={"stream": "off"})

    def set_up(self) -> None:
        """Do as ``callboard fleet setup`` does."""
        settings = self.settings("setup")
        asyncio.run(set_up(settings.fleet.url, MACHINES, **connection_options(settings)))

    def machine(self, name: str) -> Supervisor:
        """Start a supervisor with one window."""
        return Supervisor.start(
            self.settings(name),
            models={"app": lambda request: {"Status": "FINISH", "Result": "done"}},
            servers=[MemoryServer(MemoryServer.window(name))],
        )

    def check_work(self) -> None:
        """Have one machine do a subtask of the other."""
        with self.machine("finance-3") as there, self.machine("desk") as here:
            there.serve()
            wait_for(lambda: [target for target in here.targets() if target.machine])
            assert here.submit(lone("finance-3:memo:finance-3")).result(PATIENCE).output == "done"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Hub]]:
    """Give a function that starts a server."""
    check_for_server()
    hubs: list[Hub] = []

    def start(**options: Any) -> Hub:
        hubs.append(Hub(tmp_path, **options))
        hubs[0].start()
        return hubs[0]

    yield start
    for hub in hubs:
        hub.server.stop()


def refusal(settings: Settings) -> str:
    """Return the error of a connection."""
    with pytest.raises(SettingsError) as caught:
        asyncio.run(asyncio.wait_for(make_engine(settings).open(), PATIENCE))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_machines_work_for_each_other_over_tls(started: Callable[..., Hub]) -> None:
    hub = started()
    hub.set_up()
    hub.check_work()


def test_certificate_of_another_authority_is_refused(started: Callable[..., Hub], tmp_path: Path) -> None:
    hub = started()
    other = Authority(tmp_path, "other-ca")
    reason = refusal(hub.settings("desk", ca=other.path))
    assert re.search(r"has a certificate that does not hold: .*certificate.* \(fleet.url, fleet.ca\)$", reason)


def test_authority_that_the_system_does_not_know_needs_the_setting(started: Callable[..., Hub]) -> None:
    assert "does not hold: " in refusal(started().settings("desk", ca=None))


def test_certificate_that_has_expired_is_refused(started: Callable[..., Hub]) -> None:
    hub = started(ends=-dt.timedelta(hours=1))
    assert "does not hold: certificate has expired (fleet.url, fleet.ca)" in refusal(hub.settings("desk"))


def test_certificate_of_another_host_is_refused(started: Callable[..., Hub]) -> None:
    hub = started()
    url = f"tls://127.0.0.2:{hub.server.port}"
    hub.server.stop()
    hub.server.start(address="0.0.0.0")  # noqa: S104 - 127.0.0.2 is no other machine
    assert "IP address mismatch, certificate is not valid for '127.0.0.2'" in refusal(hub.settings("desk", url=url))


def test_key_that_the_server_does_not_know_is_refused(started: Callable[..., Hub]) -> None:
    hub = started()
    hub.write_seed("desk")
    assert refusal(hub.settings("desk")).endswith(
        "refuses the key of this machine (fleet.credentials): its configuration needs the public key"
    )


def test_machine_without_a_key_is_refused(started: Callable[..., Hub]) -> None:
    reason = refusal(started().settings("desk", credentials=None))
    assert reason.endswith("asks for a key, and this machine has none: set fleet.credentials")


def test_file_that_has_no_credentials_is_refused(started: Callable[..., Hub]) -> None:
    hub = started()
    (hub.folder / "desk.credentials").write_text("SUNONSENSE\n", encoding="ascii")
    assert "desk.credentials has no key" in refusal(hub.settings("desk"))


async def test_server_that_does_not_encrypt_is_told_nothing(tmp_path: Path) -> None:
    hub, lines = Hub(tmp_path), []

    async def pose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"server_id": "x", "version": "2.15.1", "max_payload": 1_000_000, "nonce": "x", "auth_required": True}
        writer.write(f"INFO {json.dumps(info)}\r\n".encode())
        lines.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(pose, "127.0.0.1", 0)
    hub.server.port = server.sockets[0].getsockname()[1]
    with pytest.raises(SettingsError, match="does not encrypt its connections"):
        await make_engine(hub.settings("desk")).open()
    server.close()
    assert b"".join(lines) == b""


class Operator:
    """An operator whose server takes users with credentials files, as ``nsc`` writes them."""

    def __init__(self) -> None:
        self.seed, self.public_key = new_key(nkeys.PREFIX_BYTE_OPERATOR)

    def token(self, subject: str, name: str, claims: dict[str, Any], seed: str = "") -> str:
        """Sign claims about a key."""
        pair = nkeys.from_seed(bytearray((seed or self.seed).encode()))
        body = {"iat": 1_700_000_000, "iss": pair.public_key.decode(), "sub": subject, "name": name}
        body["nats"] = {"version": 2, **claims}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        text = ".".join(map(_encoded, ({"typ": "JWT", "alg": "ed25519-nkey"}, body)))
        return f"{text}.{base64.urlsafe_b64encode(pair.sign(text.encode())).decode().rstrip('=')}"

    def account(self, name: str, public_key: str, **claims: Any) -> str:
        """Sign an account."""
        unlimited = ("subs", "data", "payload", "imports", "exports", "conn", "leaf")
        limits: dict[str, Any] = dict.fromkeys(unlimited, -1) | {"wildcards": True}
        if "exports" in claims:
            limits |= dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
        return self.token(public_key, name, {"type": "account", "limits": limits, **claims})

    def credentials(self, name: str, account_seed: str) -> str:
        """Make a user of an account; return the file of its credentials."""
        seed, public_key = new_key()
        claims = {"type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1}
        token = self.token(public_key, name, claims, account_seed)
        return (
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _import(subject: str, hub_key: str) -> dict[str, str]:
    local = f"{API}{subject.removeprefix('$JS.API')}" if subject.startswith("$JS.API.") else subject
    return {"name": local, "subject": subject, "local_subject": local, "account": hub_key, "type": "service"}


def test_machines_work_for_each_other_with_jwt_credentials(tmp_path: Path) -> None:
    check_for_server()
    hub, operator = Hub(tmp_path), Operator()
    keys = {name: new_key(nkeys.PREFIX_BYTE_ACCOUNT) for name in ("setup", *MACHINES)}
    exports = [
        {"name": subject, "subject": subject, "type": "service", "response_type": kind.title()}
        for subject, kind in services()
    ]
    accounts = {keys["setup"][1]: operator.account("callboard", keys["setup"][1], exports=exports)}
    for name in MACHINES:
        imports = [_import(subject, keys["setup"][1]) for subject in machine_permissions(name)]
        accounts[keys[name][1]] = operator.account(name, keys[name][1], imports=imports)
    for name, (seed, _) in keys.items():
        (tmp_path / f"{name}.credentials").write_text(operator.credentials(name, seed), encoding="ascii")
    _, system = new_key(nkeys.PREFIX_BYTE_ACCOUNT)
    accounts[system] = operator.account("system", system)
    token = operator.token(operator.public_key, "operator", {"type": "operator"})
    preloaded = "\n".join(f"  {key}: {account}" for key, account in accounts.items())
    resolver = f"operator: {token}\nsystem_account: {system}\nresolver: MEMORY\nresolver_preload: {{\n{preloaded}\n}}\n"
    try:
        hub.start_with(server_settings("2.9.10") + resolver)
        hub.set_up()
        hub.check_work()
    finally:
        hub.server.stop()
