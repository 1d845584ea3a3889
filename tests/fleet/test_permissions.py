"""The permissions of a machine, on a server that enforces them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import nats
import nats.errors
import pytest

from callboard import Settings, Supervisor
from callboard.fleet import Bucket, NatsEngine, authorization, machine_permissions, server_settings, set_up
from callboard.testing import MemoryServer
from nats_server import PROGRAM, NatsServer, check_for_server
from support import PATIENCE, lone, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nats.aio.client import Client

ADMIN = {"user": "setup", "password": "setup"}


def as_machine(name: str) -> dict[str, str]:
    """Give the credentials of a machine."""
    return {"user": name, "password": name}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[NatsServer]:
    """Give a server with the machines ``desk``, ``finance-3`` and ``thief``, and their streams."""
    check_for_server()
    users: list[dict[str, Any]] = [ADMIN]
    for name in ("desk", "finance-3", "thief"):
        permissions = machine_permissions(name)
        users.append({**as_machine(name), "permissions": permissions._asdict()})
    config = tmp_path / "nats.conf"
    content = {
        "jetstream": {"store_dir": str(tmp_path / "js")},
        "authorization": {"users": users},
        "log_file": str(tmp_path / "nats.log"),
    }
    config.write_text(json.dumps(content), encoding="utf-8")
    server = NatsServer(tmp_path, config=config)
    server.start()
    asyncio.run(set_up(server.url, ["desk", "finance-3", "thief"], **ADMIN))
    yield server
    server.stop()


def machine(server: NatsServer, name: str) -> Supervisor:
    """Start a supervisor with one window."""
    return Supervisor.start(
        Settings.load(fleet={"name": name}, log={"stream": "off"}),
        models={"app": lambda request: {"Status": "FINISH", "Result": "word " * 60_000}},
        servers=[MemoryServer(MemoryServer.window(name))],
        engine=NatsEngine(server.url, name, **as_machine(name)),
    )


def test_machines_work_for_each_other_with_their_permissions(guarded: NatsServer, tmp_path: Path) -> None:
    with machine(guarded, "finance-3") as there, machine(guarded, "desk") as here:
        there.serve()
        wait_for(lambda: [target for target in here.targets() if target.machine])
        result = here.submit(lone("finance-3:memo:finance-3")).result(PATIENCE)
        assert (result.ok, len(result.output)) == (True, 300_000)
    assert "Violation" not in (tmp_path / "nats.log").read_text(encoding="utf-8")


async def connected(server: NatsServer, name: str) -> Client:
    """Connect as a machine, with errors as they come."""

    async def ignore(_error: Exception) -> None:
        """Ignore a refusal: the calls that it concerns fail."""

    return await nats.connect(server.url, error_cb=ignore, inbox_prefix=f"_INBOX.{name}", **as_machine(name))


ATTACKS = {
    "make a consumer of a queue": (
        "$JS.API.CONSUMER.DURABLE.CREATE.callboard-work.spy",
        {"stream_name": "callboard-work", "config": {"durable_name": "spy", "filter_subject": "callboard.work.desk.*"}},
    ),
    "make a nameless consumer of a queue": (
        "$JS.API.CONSUMER.CREATE.callboard-work",
        {"stream_name": "callboard-work", "config": {"filter_subject": "callboard.work.desk.*"}},
    ),
    "take work of another queue": ("$JS.API.CONSUMER.MSG.NEXT.callboard-work.machine-desk", {"batch": 1}),
    "read a message of a queue": ("$JS.API.STREAM.MSG.GET.callboard-work", {"seq": 1}),
    "read a message of a queue directly": ("$JS.API.DIRECT.GET.callboard-work", {"seq": 1}),
    "delete a message of a queue": ("$JS.API.STREAM.MSG.DELETE.callboard-work", {"seq": 1}),
    "delete the consumer of another queue": ("$JS.API.CONSUMER.DELETE.callboard-work.machine-desk", {}),
    "purge the queues": ("$JS.API.STREAM.PURGE.callboard-work", {}),
    "purge the results": ("$JS.API.STREAM.PURGE.KV_callboard-results", {}),
    "delete the queues": ("$JS.API.STREAM.DELETE.callboard-work", {}),
    "delete the results": ("$JS.API.STREAM.DELETE.KV_callboard-results", {}),
    "delete the files": ("$JS.API.STREAM.DELETE.OBJ_callboard-files", {}),
    "change the queues": ("$JS.API.STREAM.UPDATE.callboard-work", {"name": "callboard-work", "subjects": ["x"]}),
    "make a stream": ("$JS.API.STREAM.CREATE.mine", {"name": "mine", "subjects": ["callboard.work.>"]}),
    "send work in another's name": ("callboard.work.finance-3.desk", {"forged": True}),
    "forge the state of a machine": ("$KV.callboard-machines.finance-3.state", {"forged": True}),
    "forge a result": ("$KV.callboard-results.desk.finance-3.r-1", {"forged": True}),
    "forge a request": ("$KV.callboard-requests.desk.finance-3.r-1", {"forged": True}),
    "forge a cancel": ("$KV.callboard-signals.finance-3.desk.r-1", {"cancel": "forged"}),
    "take a task that any machine may do": ("$KV.callboard-claims.r-1", {"forged": True}),
    "acknowledge work of another queue": ("$JS.ACK.callboard-work.machine-desk.1.1.1.1.0", {}),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_machine_is_refused_what_is_not_its_own(guarded: NatsServer, attack: str) -> None:
    owner = NatsEngine(guarded.url, "finance-3", **as_machine("finance-3"))
    await owner.open()
    await owner.send("desk", "r-1", b"secret")
    await owner.put(Bucket.RESULTS, "desk.finance-3.r-1", b"4")
    thief = await connected(guarded, "thief")
    subject, content = ATTACKS[attack]
    with pytest.raises((nats.errors.TimeoutError, nats.errors.NoRespondersError)):
        await thief.request(subject, json.dumps(content).encode(), timeout=0.3)
    await thief.close()
    admin = await nats.connect(guarded.url, **ADMIN)
    stream = admin.jetstream()
    info = await stream.stream_info("callboard-work")
    assert (info.state.messages, info.state.consumer_count, info.config.subjects) == (1, 3, ["callboard.work.>"])
    assert (await (await stream.key_value("callboard-results")).get("desk.finance-3.r-1")).value == b"4"
    for bucket in set(Bucket) - {Bucket.RESULTS}:
        assert (await stream.stream_info(f"KV_callboard-{bucket}")).state.messages == 0
    assert len(await stream.streams_info()) == len(Bucket) + 2
    await admin.close()
    await owner.close()


@pytest.mark.parametrize("subject", [">", "_INBOX.>", "_INBOX.desk.>", "callboard.work.>", "$KV.>", "$O.>", "$JS.>"])
async def test_machine_hears_only_answers_to_itself(guarded: NatsServer, subject: str) -> None:
    thief = await connected(guarded, "thief")
    subscription = await thief.subscribe(subject)
    await thief.flush()
    owner = NatsEngine(guarded.url, "desk", **as_machine("desk"))
    await owner.open()
    await owner.put(Bucket.MACHINES, "desk.state", b"secret")
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.next_msg(timeout=0.3)
    await owner.close()
    await thief.close()


@pytest.mark.parametrize(
    "subject",
    [
        "callboard.work.finance-3.desk",
        "$KV.callboard-results.desk.finance-3.r-1",
        "$JS.API.STREAM.PURGE.callboard-work",
        "$JS.API.STREAM.DELETE.callboard-work",
    ],
)
async def test_consumer_of_a_machine_delivers_into_no_other_subject(guarded: NatsServer, subject: str) -> None:
    admin = await nats.connect(guarded.url, **ADMIN)
    stream = admin.jetstream()
    await stream.publish("callboard.work.desk.admin", b"work")
    thief = await connected(guarded, "thief")
    await thief.jetstream().publish("$KV.callboard-machines.thief.state", b"{}")
    config = {"deliver_subject": subject, "deliver_policy": "all", "ack_policy": "none"}
    body = {"stream_name": "KV_callboard-machines", "config": config}
    await thief.request("$JS.API.CONSUMER.CREATE.KV_callboard-machines", json.dumps(body).encode(), timeout=PATIENCE)
    await thief.close()
    await asyncio.sleep(0.3)
    assert (await stream.stream_info("callboard-work")).state.messages == 1
    assert (await stream.stream_info("KV_callboard-results")).state.messages == 0
    await admin.close()


@pytest.mark.parametrize("name", ["*", ">", "a.b", "", "a b"])
def test_permissions_are_refused_for_a_name_with_wildcards(name: str) -> None:
    with pytest.raises(ValueError, match="string"):
        machine_permissions(name)


def test_printed_configuration_is_one_that_the_server_reads(tmp_path: Path) -> None:
    check_for_server()
    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    config = tmp_path / "nats.conf"
    text = re.sub('nkey: "PUBLIC KEY OF WHO [^"]*"', "user: setup, password: setup", authorization(["finance-3"]))
    text = text.replace("PUBLIC KEY OF finance-3", key)
    settings = re.sub(r"(?s)^tls .*", "", server_settings("2.9.10"), flags=re.MULTILINE)
    config.write_text(settings + text, encoding="utf-8")
    check = subprocess.run([PROGRAM, "-c", config, "-t"], check=False, capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


def test_settings_of_the_server_follow_its_version() -> None:
    assert "sync_interval: always" in server_settings("2.15.1")
    assert "\n  sync_interval" not in server_settings("2.9.10")
