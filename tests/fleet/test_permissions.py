"""The accounts of machines, on a server that has the printed configuration."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import nats
import nats.errors
import pytest

from callboard import Settings, Supervisor
from callboard.fleet import (
    Bucket,
    DamagedFileError,
    EngineAwayError,
    NatsEngine,
    authorization,
    machine_permissions,
    server_settings,
    set_up,
)
from callboard.testing import MemoryServer
from nats_certificates import Authority
from nats_server import PROGRAM, NatsServer, check_for_server, new_key
from support import PATIENCE, lone, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nats.aio.client import Client

    from callboard.fleet import StoredFile

MACHINES = ("desk", "finance-3", "thief")


@pytest.fixture(scope="module")
def seeds() -> dict[str, tuple[str, str]]:
    """Give the keys of the machines and of ``setup``."""
    return {name: new_key() for name in ("setup", *MACHINES)}


def filled_in(text: str, seeds: dict[str, tuple[str, str]]) -> str:
    """Fill the public keys into the printed configuration."""
    text = text.replace("PUBLIC KEY OF WHO RUNS callboard fleet setup", seeds["setup"][1])
    for name in MACHINES:
        text = text.replace(f"PUBLIC KEY OF {name}", seeds[name][1])
    assert "PUBLIC KEY" not in text
    return text


@dataclass
class Guarded:
    """A server whose configuration is the printed one."""

    server: NatsServer
    seeds: dict[str, tuple[str, str]]
    log: Path

    def engine(self, name: str) -> NatsEngine:
        """Make the connection of a machine."""
        return NatsEngine(self.server.url, name, nkeys_seed_str=self.seeds[name][0])

    async def client(self, name: str) -> Client:
        """Connect as a machine, or as ``setup``."""

        async def ignore(_error: Exception) -> None:
            """Ignore a refusal: the calls that it concerns fail."""

        return await nats.connect(self.server.url, error_cb=ignore, nkeys_seed_str=self.seeds[name][0])


@pytest.fixture
def guarded(tmp_path: Path, seeds: dict[str, tuple[str, str]]) -> Iterator[Guarded]:
    """Give a server with the machines ``desk``, ``finance-3`` and ``thief``, and their streams."""
    check_for_server()
    config, log = tmp_path / "nats.conf", tmp_path / "nats.log"
    settings = f'jetstream {{ store_dir: "{tmp_path / "js"}" }}\nlog_file: "{log}"\n'
    config.write_text(settings + filled_in(authorization(MACHINES), seeds), encoding="utf-8")
    server = NatsServer(tmp_path, config=config)
    server.start()
    asyncio.run(set_up(server.url, MACHINES, nkeys_seed_str=seeds["setup"][0]))
    yield Guarded(server, seeds, log)
    server.stop()


def machine(guarded: Guarded, name: str, surface: MemoryServer | None = None) -> Supervisor:
    """Start a supervisor with one window, or another surface."""
    answer = {"Status": "FINISH", "Result": "word " * 60_000}
    return Supervisor.start(
        Settings.load(fleet={"name": name}, log={"stream": "off"}),
        models={"app": lambda request: answer, "linux": lambda request: answer},
        servers=[surface or MemoryServer(MemoryServer.window(name))],
        engine=guarded.engine(name),
    )


def test_machines_work_for_each_other_with_their_permissions(guarded: Guarded) -> None:
    with machine(guarded, "finance-3") as there, machine(guarded, "desk") as here:
        there.serve()
        wait_for(lambda: [target for target in here.targets() if target.machine])
        result = here.submit(lone("finance-3:memo:finance-3")).result(PATIENCE)
        assert (result.ok, len(result.output)) == (True, 300_000)
    assert "Violation" not in guarded.log.read_text(encoding="utf-8")


def test_any_machine_does_work_with_its_permissions(guarded: Guarded) -> None:
    build = MemoryServer(MemoryServer.shell("build"))
    with machine(guarded, "finance-3", build) as there, machine(guarded, "desk") as here:
        there.serve()
        wait_for(lambda: [target for target in here.targets() if target.id == "any:build"])
        assert here.submit(lone("any:build")).result(PATIENCE).ok
    assert "Violation" not in guarded.log.read_text(encoding="utf-8")


def consumer(stream: str, subject: str, **config: Any) -> tuple[str, dict[str, Any]]:
    """Give a request that makes a consumer, and its contents."""
    content = {"name": "spy", "filter_subject": subject, "ack_policy": "none", **config}
    return f"$JS.API.CONSUMER.CREATE.{stream}.spy.{subject}", {"stream_name": stream, "config": content}


RESULTS, OWN_RESULTS = "KV_callboard-results", "$KV.callboard-results.thief.>"
ATTACKS = {
    "make a consumer of a queue": (
        "$JS.API.CONSUMER.DURABLE.CREATE.callboard-work.spy",
        {"stream_name": "callboard-work", "config": {"durable_name": "spy", "filter_subject": "callboard.work.desk.*"}},
    ),
    "make a named consumer of a queue": consumer("callboard-work", "callboard.work.desk.*"),
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
    "purge the files": ("$JS.API.STREAM.PURGE.callboard-files", {}),
    "delete the queues": ("$JS.API.STREAM.DELETE.callboard-work", {}),
    "delete the results": ("$JS.API.STREAM.DELETE.KV_callboard-results", {}),
    "delete the files": ("$JS.API.STREAM.DELETE.callboard-files", {}),
    "change the queues": ("$JS.API.STREAM.UPDATE.callboard-work", {"name": "callboard-work", "subjects": ["x"]}),
    "make a stream": ("$JS.API.STREAM.CREATE.mine", {"name": "mine", "subjects": ["callboard.work.>"]}),
    "send work in another's name": ("callboard.work.finance-3.desk", {"forged": True}),
    "forge the state of a machine": ("$KV.callboard-machines.finance-3.state", {"forged": True}),
    "forge a result": ("$KV.callboard-results.desk.finance-3.r-1", {"forged": True}),
    "forge a request": ("$KV.callboard-requests.desk.finance-3.r-1", {"forged": True}),
    "forge a cancel": ("$KV.callboard-signals.finance-3.desk.r-1", {"cancel": "forged"}),
    "take a task that any machine may do": ("$KV.callboard-claims.desk.finance-3.r-1", {"forged": True}),
    "acknowledge work of another queue": ("$JS.ACK.callboard-work.machine-desk.1.1.1.1.0", {}),
    "watch the results of another": consumer(RESULTS, "$KV.callboard-results.desk.>"),
    "watch all results": consumer(RESULTS, "$KV.callboard-results.>"),
    "watch the results of others by a wildcard": consumer(RESULTS, "$KV.callboard-results.*.>"),
    "watch the results of all machines without a subject": (
        f"$JS.API.CONSUMER.CREATE.{RESULTS}",
        {"stream_name": RESULTS, "config": {"ack_policy": "none"}},
    ),
    "list the consumers of the results": (f"$JS.API.CONSUMER.NAMES.{RESULTS}", {}),
    "list the keys of the results": (f"$JS.API.STREAM.INFO.{RESULTS}", {"subjects_filter": ">"}),
    "read a result of another": (f"$JS.API.DIRECT.GET.{RESULTS}.$KV.callboard-results.desk.finance-3.r-1", None),
    "read the last result": (f"$JS.API.DIRECT.GET.{RESULTS}.$KV.callboard-results.>", None),
    "read a result of another by a wildcard": (f"$JS.API.DIRECT.GET.{RESULTS}.$KV.callboard-results.*.*.r-1", None),
    "read a result by its number": (f"$JS.API.DIRECT.GET.{RESULTS}", {"seq": 1}),
    "read a message of the results": (f"$JS.API.STREAM.MSG.GET.{RESULTS}", {"seq": 1}),
    "read the signals for another": (
        "$JS.API.DIRECT.GET.KV_callboard-signals.$KV.callboard-signals.finance-3.desk.r-1",
        None,
    ),
    "watch the claims of another": consumer("KV_callboard-claims", "$KV.callboard-claims.desk.>"),
    "watch the files of others": consumer("callboard-files", "callboard.files.desk.>"),
    "watch all files": consumer("callboard-files", "callboard.files.>"),
    "watch files by a wildcard": consumer("callboard-files", "callboard.files.*.*.*"),
    "read the last file": ("$JS.API.DIRECT.GET.callboard-files.callboard.files.>", None),
    "list the files": ("$JS.API.STREAM.INFO.callboard-files", {"subjects_filter": ">"}),
    "send a file in another's name": ("callboard.files.desk.finance-3.x", {"forged": True}),
}
REFUSED_BY_THE_SERVER = {
    "another subject in the body": {"filter_subject": "$KV.callboard-results.desk.>"},
    "no subject in the body": {"filter_subject": ""},
    "another of several subjects": {"filter_subject": "", "filter_subjects": ["$KV.callboard-results.desk.>"]},
    "several subjects": {"filter_subject": "", "filter_subjects": [OWN_RESULTS, "$KV.callboard-results.desk.>"]},
}
_KEY = "desk.finance-3.r-1"


@dataclass
class Treasure:
    """Things of ``desk`` and ``finance-3``, and how they were."""

    guarded: Guarded
    folder: Path
    file: StoredFile | None = None

    async def lay_out(self) -> None:
        """Put one thing into each store."""
        owner = self.guarded.engine("finance-3")
        await owner.open()
        await owner.send("desk", "r-1", b"secret")
        await owner.put(Bucket.RESULTS, _KEY, b"4")
        (self.folder / "secret").write_bytes(b"secret" * 100_000)
        self.file = await owner.store(self.folder / "secret", "r-1", "desk")
        await owner.close()

    async def check(self) -> None:
        """Check that all is as it was."""
        admin = await self.guarded.client("setup")
        stream = admin.jetstream()
        info = await stream.stream_info("callboard-work")
        assert (info.state.messages, info.state.consumer_count, info.config.subjects) == (1, 3, ["callboard.work.>"])
        assert (await stream.get_last_msg("KV_callboard-results", f"$KV.callboard-results.{_KEY}")).data == b"4"
        for bucket in set(Bucket) - {Bucket.RESULTS}:
            assert (await stream.stream_info(f"KV_callboard-{bucket}")).state.messages == 0
        assert len(await stream.streams_info()) == len(Bucket) + 2
        await admin.close()
        desk = self.guarded.engine("desk")
        await desk.open()
        await desk.load(self.file, self.folder / "copy")
        await desk.close()
        assert (self.folder / "copy").read_bytes() == b"secret" * 100_000


@pytest.fixture
def treasure(guarded: Guarded, tmp_path: Path) -> Treasure:
    """Give things to steal."""
    treasure = Treasure(guarded, tmp_path)
    asyncio.run(treasure.lay_out())
    return treasure


async def answer(client: Client, subject: str, content: Any) -> bytes:
    """Return the answer to a request; nothing if there is none, or a refusal by a JetStream that has no streams."""
    body = b"" if content is None else json.dumps(content).encode()
    with contextlib.suppress(nats.errors.TimeoutError, nats.errors.NoRespondersError):
        data = (await client.request(subject, body, timeout=0.3)).data
        return b"" if b"JetStream not enabled for account" in data else data
    return b""


@pytest.mark.parametrize("api", ["$JS.API", "callboard.api"])
@pytest.mark.parametrize("attack", ATTACKS)
async def test_machine_is_refused_what_is_not_its_own(treasure: Treasure, attack: str, api: str) -> None:
    thief = await treasure.guarded.client("thief")
    subject, content = ATTACKS[attack]
    assert await answer(thief, subject.replace("$JS.API", api), content) == b""
    await thief.close()
    await treasure.check()


@pytest.mark.parametrize("config", REFUSED_BY_THE_SERVER.values(), ids=REFUSED_BY_THE_SERVER.keys())
async def test_consumer_reads_the_subject_of_its_request_only(treasure: Treasure, config: dict[str, Any]) -> None:
    thief = await treasure.guarded.client("thief")
    subject, content = consumer(RESULTS, OWN_RESULTS, **config)
    said = json.loads(await answer(thief, subject.replace("$JS.API", "callboard.api"), content))
    assert said["error"]["err_code"] in {10131, 10137}
    await thief.close()
    await treasure.check()


async def test_consumer_under_its_own_subject_gets_nothing_of_others(treasure: Treasure) -> None:
    thief = await treasure.guarded.client("thief")
    subject, content = consumer(RESULTS, OWN_RESULTS)
    said = json.loads(await answer(thief, subject.replace("$JS.API", "callboard.api"), content))
    assert said["num_pending"] == 0
    await thief.close()


@pytest.mark.parametrize("target", ["callboard.work.finance-3.desk", f"$KV.callboard-results.{_KEY}"])
async def test_answers_of_the_server_reach_no_other_machine(treasure: Treasure, target: str) -> None:
    thief = await treasure.guarded.client("thief")
    own = "$KV.callboard-machines.thief.state"
    assert await answer(thief, own, {"forged": True})
    subject, content = consumer("KV_callboard-machines", "$KV.callboard-machines.>", deliver_subject=target)
    assert await answer(thief, subject.replace("$JS.API", "callboard.api"), content)
    subject, content = consumer("KV_callboard-machines", "$KV.callboard-machines.>", name="pull")
    assert await answer(thief, subject.replace("$JS.API", "callboard.api").replace(".spy.", ".pull."), content)
    for request in (
        f"callboard.api.DIRECT.GET.KV_callboard-machines.{own}",
        "callboard.api.CONSUMER.MSG.NEXT.KV_callboard-machines.pull",
        "callboard.api.STREAM.INFO.callboard-work",
        "callboard.work.thief.thief",
    ):
        await thief.publish(request, b"", reply=target)
    await thief.flush()
    await asyncio.sleep(0.3)
    await thief.close()
    admin = await treasure.guarded.client("setup")
    stream = admin.jetstream()
    work = await stream.stream_info("callboard-work", subjects_filter=">")
    assert work.state.subjects == {"callboard.work.desk.finance-3": 1, "callboard.work.thief.thief": 1}
    assert (await stream.get_last_msg(RESULTS, f"$KV.callboard-results.{_KEY}")).data == b"4"
    await admin.close()


async def test_files_are_read_by_their_reader_and_deleted_by_nobody_else(treasure: Treasure, tmp_path: Path) -> None:
    thief = treasure.guarded.engine("thief")
    await thief.open()
    with pytest.raises((EngineAwayError, DamagedFileError)):
        await thief.load(treasure.file, tmp_path / "stolen")
    with pytest.raises(EngineAwayError):
        await thief.discard(treasure.file)
    await thief.close()
    await treasure.check()


@pytest.mark.parametrize("subject", [">", "_INBOX.>", "_INBOX.desk.>", "callboard.work.>", "$KV.>", "$JS.>"])
async def test_machine_hears_only_answers_to_itself(guarded: Guarded, subject: str) -> None:
    thief = await guarded.client("thief")
    subscription = await thief.subscribe(subject)
    await thief.flush()
    owner = guarded.engine("desk")
    await owner.open()
    await owner.put(Bucket.MACHINES, "desk.state", b"secret")
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.next_msg(timeout=0.3)
    await owner.close()
    await thief.close()


@pytest.mark.parametrize("name", ["*", ">", "a.b", "", "a b"])
def test_permissions_are_refused_for_a_name_with_wildcards(name: str) -> None:
    with pytest.raises(ValueError, match="string"):
        machine_permissions(name)


PROGRAMS = [program for program in ("nats-server", "/usr/sbin/nats-server") if shutil.which(program)] or [PROGRAM]


@pytest.mark.parametrize("program", PROGRAMS)
def test_printed_configuration_is_one_that_the_server_reads(
    tmp_path: Path, program: str, seeds: dict[str, tuple[str, str]]
) -> None:
    check_for_server()
    version = re.search(r"v(\d+\.\d+\.\d+)", subprocess.check_output([program, "--version"], text=True))
    assert version is not None
    key, certificate = Authority(tmp_path).certificate("server")
    text = server_settings(version[1]) + filled_in(authorization(MACHINES), seeds)
    text = text.replace("/etc/nats/server.crt", str(certificate)).replace("/etc/nats/server.key", str(key))
    config = tmp_path / "nats.conf"
    config.write_text(text, encoding="utf-8")
    check = subprocess.run([program, "-c", config, "-t"], check=False, capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


def test_settings_of_the_server_follow_its_version() -> None:
    assert "sync_interval: always" in server_settings("2.15.1")
    assert "\n  sync_interval" not in server_settings("2.9.10")
