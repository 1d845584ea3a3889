"""A fleet of processes on loopback, with links that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import fleet_machine
from callboard.fleet import set_up
from callboard.journal import JournalReader
from callboard.messages import ANY_MACHINE, TaskResult
from nats_server import NatsServer
from support import PATIENCE

PROGRAM = Path(fleet_machine.__file__)
ANY = f"{ANY_MACHINE}:{fleet_machine.YARD}"
"""The target that each machine has, for the work of any machine."""


class Way(Protocol):
    """A machine's way to the server."""

    command: tuple[str, ...]
    """The begin of a command that runs where the machine is."""

    @property
    def url(self) -> str:
        """The server's address for the machine."""

    def cut(self) -> None:
        """Break it."""

    def block(self) -> None:
        """Carry nothing any more, as a cable that is pulled out."""

    def degrade(self) -> None:
        """Carry only a part at once."""

    def mend(self) -> None:
        """Carry everything again."""

    def close(self) -> None:
        """End it."""


class Link:
    """A way that is a program on loopback, which can be cut or blocked."""

    command = ()

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._loop = asyncio.new_event_loop()
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[Any] | None] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._connect, "127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._run(self._set_cut(is_cut=True))

    def block(self) -> None:
        """Carry nothing any more, as a cable that is pulled out."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    degrade = block

    def mend(self) -> None:
        """Carry everything again, also what was sent meanwhile."""
        self._run(self._set_cut(is_cut=False))
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        """End it."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _set_cut(self, *, is_cut: bool) -> None:
        self._is_cut = is_cut
        if is_cut:
            for writer in tuple(self._writers):
                writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        await self._set_cut(is_cut=True)
        self._flows.set()
        await asyncio.wait(self._connections or {asyncio.ensure_future(asyncio.sleep(0))}, timeout=1)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ways: list[asyncio.Future[None]] = []
        writers = {writer}
        self._connections.add(connection := asyncio.current_task())
        try:
            if self._is_cut:
                return
            there, to_there = await asyncio.open_connection("127.0.0.1", self._server_port)
            writers.add(to_there)
            self._writers |= writers
            ways = [asyncio.ensure_future(self._carry(*way)) for way in ((reader, to_there), (there, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            return
        finally:
            for end in writers:
                end.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._writers -= writers
            self._connections.discard(connection)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()


@dataclass
class MachineProcess:
    """A machine of the fleet, which can be killed and started again."""

    name: str
    folder: Path
    link: Way
    order: dict[str, Any]
    process: subprocess.Popen[str] | None = None
    lives: int = 0

    def start(self) -> None:
        """Start it, on its journal."""
        self.folder.mkdir(parents=True, exist_ok=True)
        order = {**self.order, "name": self.name, "folder": str(self.folder), "url": self.link.url}
        command = (*self.link.command, sys.executable, str(PROGRAM), json.dumps(order))
        with (self.folder / "errors.txt").open("a") as errors:
            self.process = subprocess.Popen(command, stderr=errors, text=True)
        self.lives += 1

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it, wherever it is."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)


@dataclass
class FleetLab:
    """Machines at a server."""

    folder: Path
    server: NatsServer
    machines: dict[str, MachineProcess] = field(default_factory=dict)
    order: dict[str, Any] = field(default_factory=dict)
    """A part of the orders of all machines."""

    def __post_init__(self) -> None:
        """Set the server up."""
        self.set_up()

    def set_up(self) -> None:
        """Make the streams."""
        asyncio.run(set_up(self.server.url))

    def make_link(self, _name: str) -> Way:
        """Make the way of a machine to the server."""
        return Link(self.server.port)

    def settings(self) -> dict[str, str]:
        """Return the settings of the connection, without the address."""
        return {}

    def add(self, name: str, **order: Any) -> MachineProcess:
        """Start a machine."""
        order = {"fleet": self.settings(), **self.order, **order}
        machine = MachineProcess(name, self.folder / name, self.make_link(name), order)
        self.machines[name] = machine
        machine.start()
        return machine

    def submitter(self, tasks: list[dict[str, Any]], name: str = "desk", **order: Any) -> MachineProcess:
        """Start a machine that submits tasks."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(tasks))
        return self.add(name, tasks=str(path), **order)

    def ends(self, name: str = "desk", seconds: float = PATIENCE) -> dict[str, TaskResult]:
        """Wait until a submitter's tasks are over, and return their results."""
        machine = self.machines[name]
        path, end = machine.folder / "ends.json", time.monotonic() + seconds
        (machine.folder / "enough").touch()
        while not path.exists():
            assert machine.process is not None
            assert machine.process.poll() in {None, 0}, (machine.folder / "errors.txt").read_text()[-4000:]
            assert time.monotonic() < end, f"tasks are not over: {self.unfinished(name)}"
            time.sleep(0.05)
        return {
            name: TaskResult.model_validate(end, strict=False) for name, end in json.loads(path.read_text()).items()
        }

    def unfinished(self, name: str) -> dict[str, list[str]]:
        """Return a submitter's tasks that are not over, with the marks of each."""
        with JournalReader.open(self.machines[name].folder / "journal.db") as reader:
            names = [line.id for line in reader.tasks() if line.outcome is None]
        return {name: [mark for mark in self.marks() if mark.startswith(f"{name}.")] for name in names}

    def marks(self) -> list[str]:
        """Return the marks of all machines."""
        return [mark for machine in self.machines.values() for mark in fleet_machine.marks_of(machine.folder)]

    def close(self) -> None:
        """End everything."""
        for machine in self.machines.values():
            machine.kill()
            machine.link.close()


KINDS = ("kill", "kill", "halt", "cut", "block")
"""The kinds of faults on loopback; the server is only killed and halted."""


@dataclass(frozen=True)
class Fault:
    """A fault that befalls a part of the fleet for some time."""

    kind: str
    """``kill``, ``halt``, ``cut``, ``block`` or ``degrade``."""
    victim: str
    """A machine, or ``server``."""
    pause: float
    """The seconds until the next one begins."""
    seconds: float
    """The seconds until it is over."""


def faults(seed: int, number: int, victims: list[str], kinds: tuple[str, ...] = KINDS) -> Iterator[Fault]:
    """Make random faults."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    for _ in range(number):
        victim = chance.choice([*victims, "server"])
        kind = chance.choice(("kill", "kill", "halt") if victim == "server" and kinds is KINDS else kinds)
        seconds = {"kill": chance.uniform(0, 1.5), "halt": chance.choice((0.3, 2.0, 6.0))}.get(
            kind, chance.uniform(2, 7)
        )
        yield Fault(kind, victim, chance.uniform(0.1, 2.0), seconds)


def halts(seed: int, number: int, victims: list[str]) -> Iterator[Fault]:
    """Make halts of machines that are longer than the time after which one counts as away."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    for _ in range(number):
        yield Fault("halt", chance.choice(victims), pause=chance.uniform(0.5, 3.0), seconds=4.0)


class Chaos:
    """Has faults befall a fleet, several at once if they concern several parts."""

    def __init__(self, lab: FleetLab) -> None:
        self._lab = lab
        self._threads: dict[str, threading.Thread] = {}
        self.counts: Counter[str] = Counter()

    def befall(self, fault: Fault) -> None:
        """Begin a fault once an earlier one of the same part is over."""
        if (earlier := self._threads.get(fault.victim)) is not None:
            earlier.join()
        self.counts[f"{fault.kind} {fault.victim}"] += 1
        thread = threading.Thread(target=self._server_fault if fault.victim == "server" else self._fault, args=[fault])
        self._threads[fault.victim] = thread
        thread.start()
        time.sleep(fault.pause)

    def end(self) -> None:
        """Wait until all faults are over."""
        for thread in self._threads.values():
            thread.join()

    def _fault(self, fault: Fault) -> None:
        machine = self._lab.machines[fault.victim]
        match fault.kind:
            case "kill":
                machine.kill()
                time.sleep(fault.seconds)
                machine.start()
            case "halt":
                machine.send(signal.SIGSTOP)
                time.sleep(fault.seconds)
                machine.send(signal.SIGCONT)
            case _:
                self._break(machine.link, fault)

    def _break(self, link: Way, fault: Fault) -> None:
        {"cut": link.cut, "block": link.block, "degrade": link.degrade}[fault.kind]()
        time.sleep(fault.seconds)
        link.mend()

    def _server_fault(self, fault: Fault) -> None:
        server = self._lab.server
        if fault.kind not in {"kill", "halt"}:
            self._break(self._lab.make_link("server"), fault)
        elif fault.kind == "kill":
            server.stop()
            time.sleep(fault.seconds)
            server.start()
        elif server.process is not None:
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(fault.seconds)
            server.process.send_signal(signal.SIGCONT)


def random_tasks(seed: int, number: int, machines: list[str], name: str = "desk") -> list[dict[str, Any]]:
    """Make tasks of a submitter for random windows of machines, and for any machine.

    A HostAgent plans two subtasks of some.
    """
    chance = random.Random(f"{seed} {name}")  # noqa: S311 - not for secrets
    return [_random_task(chance, f"{name}-{index}", machines) for index in range(number)]


def _random_task(chance: random.Random, name: str, machines: list[str]) -> dict[str, Any]:
    if len(machines) > 1 and chance.random() < 0.25:
        parts = [
            f"target={_target(chance, machine)} {_words(chance, name + letter)}"
            for letter, machine in zip("ab", chance.sample(machines, 2), strict=True)
        ]
        side = " side=1" if chance.random() < 0.5 else ""
        work: dict[str, Any] = {"request": f"{parts[0]}{side}{fleet_machine.BETWEEN}{parts[1]}"}
    else:
        work = {"target": _target(chance, chance.choice(machines)), "request": _words(chance, name)}
        if work["target"] == ANY and chance.random() < 0.3:
            work["needs"] = {"site": chance.choice(["near", "far"])}
        elif work["target"] == ANY and chance.random() < 0.5:
            work["checks"] = [{"program": "fine"}]
    ways = ({"cancel": True}, {"pause": chance.choice((0.1, 1.0, 3.0))}, *[{}] * 8)
    return {"id": name, **work, **chance.choice(ways)}


def _target(chance: random.Random, machine: str) -> str:
    if chance.random() < 0.35:
        return ANY
    return f"{machine}:memo:{machine}{chance.randrange(fleet_machine.WINDOWS)}"


def _words(chance: random.Random, name: str) -> str:
    words = [
        f"name={name} marks={chance.randint(1, 3)} think={chance.choice((0, 0.05, 0.2))}",
        f"hold={chance.choice((0, 0.02, 0.1))} ask={int(chance.random() < 0.2)}",
        *(["size=250000"] if chance.random() < 0.05 else []),
        *(["sign=1"] if chance.random() < 0.25 else []),
    ]
    return " ".join(words)
