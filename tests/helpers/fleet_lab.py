"""A fleet of processes on loopback, whose links can be cut, and what became of its tasks."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fleet_machine
from callboard.fleet import set_up
from callboard.journal import JournalReader
from callboard.messages import EventName, Outcome, Task, TaskResult
from nats_server import NatsServer
from support import PATIENCE

PROGRAM = Path(fleet_machine.__file__)


class Link:
    """A machine's way to the server, which can be cut or blocked."""

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
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._run(self._set_cut(is_cut=True))

    def block(self) -> None:
        """Carry nothing any more, as a cable that is pulled out."""
        self._loop.call_soon_threadsafe(self._flows.clear)

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
    link: Link
    order: dict[str, Any]
    process: subprocess.Popen[str] | None = None
    lives: int = 0

    def start(self) -> None:
        """Start it, on its journal."""
        self.folder.mkdir(parents=True, exist_ok=True)
        url = f"nats://127.0.0.1:{self.link.port}"
        order = {**self.order, "name": self.name, "folder": str(self.folder), "url": url}
        with (self.folder / "errors.txt").open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(order)], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.lives += 1

    def wait_until_ready(self) -> None:
        """Wait until it is started."""
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", (self.folder / "errors.txt").read_text()[-2000:]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it, wherever it is."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()

    def stop(self) -> int:
        """End it with its supervisor, and return its exit status."""
        assert self.process is not None
        self.send(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@dataclass
class FleetLab:
    """A server, machines, and the faults that befall them."""

    folder: Path
    server: NatsServer = field(init=False)
    machines: dict[str, MachineProcess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start the server."""
        self.server = NatsServer(self.folder / "jetstream")
        self.server.start()
        asyncio.run(set_up(self.server.url))

    def add(self, name: str, **order: Any) -> MachineProcess:
        """Start a machine."""
        machine = MachineProcess(name, self.folder / name, Link(self.server.port), order)
        self.machines[name] = machine
        machine.start()
        machine.wait_until_ready()
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
        self.server.stop()


@dataclass(frozen=True)
class Fault:
    """A fault that befalls a part of the fleet for some time."""

    kind: str
    """``kill``, ``halt``, ``cut`` or ``block``."""
    victim: str
    """A machine, or ``server``."""
    pause: float
    """The seconds until the next one begins."""
    seconds: float
    """The seconds until it is over."""


def faults(seed: int, number: int, victims: list[str]) -> Iterator[Fault]:
    """Make random faults."""
    chance = random.Random(seed)
    for _ in range(number):
        victim = chance.choice([*victims, "server"])
        kind = chance.choice(
            ("kill", "kill", "halt") if victim == "server" else ("kill", "kill", "halt", "cut", "block")
        )
        seconds = {"kill": chance.uniform(0, 1.5), "halt": chance.choice((0.3, 2.0, 6.0))}.get(
            kind, chance.uniform(2, 7)
        )
        yield Fault(kind, victim, chance.uniform(0.1, 2.0), seconds)


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
                (machine.link.cut if fault.kind == "cut" else machine.link.block)()
                time.sleep(fault.seconds)
                machine.link.mend()

    def _server_fault(self, fault: Fault) -> None:
        server = self._lab.server
        if fault.kind == "kill":
            server.stop()
            time.sleep(fault.seconds)
            server.start()
        elif server.process is not None:
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(fault.seconds)
            server.process.send_signal(signal.SIGCONT)


def problems(lab: FleetLab, tasks: list[dict[str, Any]], ends: dict[str, TaskResult], name: str = "desk") -> list[str]:
    """Return every violation of the promises, in words."""
    marks = {machine: fleet_machine.marks_of(lab.machines[machine].folder) for machine in lab.machines}
    return [
        *_marks_problems(marks, tasks, ends),
        *_order_problems(lab, tasks),
        *_journal_problems(lab, tasks, ends, name),
    ]


def _words(task: dict[str, Any]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in task["request"].split())


def _marks_problems(
    marks: dict[str, list[str]], tasks: list[dict[str, Any]], ends: dict[str, TaskResult]
) -> Iterator[str]:
    for task in tasks:
        if task["id"] not in ends:
            continue
        result, machine, most = ends[task["id"]], task["target"].partition(":")[0], int(_words(task)["marks"])
        mine = {place: [mark for mark in of if mark.partition(".")[0] == task["id"]] for place, of in marks.items()}
        elsewhere = {place: of for place, of in mine.items() if of and place != machine}
        if elsewhere:
            yield f"{task['id']} for {machine} was done on {elsewhere}"
        expected = [f"{task['id']}.{number + 1}" for number in range(most)]
        if result.outcome is Outcome.CANCELLED and task.get("cancel"):
            expected = expected[: result.actions]
        elif result.outcome is not Outcome.FINISHED:
            yield f"{task['id']} is {result.outcome}: {[cause.reason for cause in result.causes]}"
        if mine[machine] != expected:
            yield f"{task['id']} is {result.outcome} with the marks {mine[machine]} instead of {expected}"


def _order_problems(lab: FleetLab, tasks: list[dict[str, Any]]) -> Iterator[str]:
    numbers = {task["id"]: number for number, task in enumerate(tasks)}
    for machine in lab.machines.values():
        for path in machine.folder.glob("*.marks"):
            marks = path.read_text().split()
            order = [numbers[mark.partition(".")[0]] for mark in marks]
            if order != sorted(order):
                yield f"{path.name} has another order: {marks}"


def _journal_problems(
    lab: FleetLab, tasks: list[dict[str, Any]], ends: dict[str, TaskResult], name: str
) -> Iterator[str]:
    identity, results = "", dict[str, TaskResult]()
    for machine in lab.machines.values():
        with JournalReader.open(machine.folder / "journal.db") as reader:
            for line in reader.tasks():
                messages = [row.message for row in reader.rows(line.id)]
                kinds = Counter(type(message) for message in messages if isinstance(message, Task | TaskResult))
                if kinds != {Task: 1, TaskResult: 1}:
                    yield f"the journal of {machine.name} has of {line.id} {dict(kinds)}"
                events = Counter(message.name for message in messages if getattr(message, "kind", "") == "event")
                for event in (EventName.TASK_SUBMITTED, EventName.TASK_ENDED):
                    if events[event] > 1:  # a kill may come between an end and its event
                        yield f"{machine.name} has told {event} of {line.id} {events[event]} times"
                results.update({f"{machine.name} {line.id}": end for end in messages if isinstance(end, TaskResult)})
    for task in tasks:
        here = ends.get(task["id"])
        if here is None or task.get("cancel"):  # the machine may have no task if it was cancelled before
            continue
        machine = task["target"].partition(":")[0]
        theirs = [
            end
            for key, end in results.items()
            if key.startswith(f"{machine} r-") and end.task_id == _id_there(lab, name, task)
        ]
        if [(end.outcome, end.output, end.actions) for end in theirs] != [(here.outcome, here.output, here.actions)]:
            yield f"{task['id']} has other results on {machine}: {theirs}"


def _id_there(lab: FleetLab, name: str, task: dict[str, Any]) -> str:
    source = f"{name}/{journal_identity(lab.machines[name].folder / 'journal.db')}/{task['id']}~1"
    return f"r-{hashlib.sha256(source.encode()).hexdigest()[:24]}"


def journal_identity(path: Path) -> str:
    """Return the identity of a journal."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT value FROM marks WHERE name = 'identity'").fetchone()
    return f"{number:016x}"


def random_tasks(seed: int, number: int, machines: list[str]) -> list[dict[str, Any]]:
    """Make tasks for random windows of machines."""
    chance = random.Random(seed)
    return [
        {
            "id": f"t{index}",
            "target": f"{(machine := chance.choice(machines))}:memo:{machine}{chance.randrange(fleet_machine.WINDOWS)}",
            "request": " ".join(
                [
                    f"name=t{index} marks={chance.randint(1, 3)} think={chance.choice((0, 0.05, 0.2))}",
                    f"hold={chance.choice((0, 0.02, 0.1))} ask={int(chance.random() < 0.2)}",
                    *(["size=250000"] if chance.random() < 0.05 else []),
                ]
            ),
            **({"cancel": True} if chance.random() < 0.1 else {}),
        }
        for index in range(number)
    ]


if __name__ == "__main__":
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    lab = FleetLab(Path(sys.argv[3]))
    names = ["alpha", "beta"]
    engine = {"ack_seconds": 4.0}
    for name in names:
        lab.add(name, serves=True, engine=engine)
    tasks = random_tasks(seed, 5000, names)
    lab.submitter(tasks, engine=engine)
    chaos, begun = Chaos(lab), time.monotonic()
    try:
        for number, fault in enumerate(faults(seed, count, [*names, "desk"])):
            print(f"{time.monotonic() - begun:6.1f} {number} {fault}", flush=True)
            chaos.befall(fault)
        chaos.end()
        print(f"{time.monotonic() - begun:6.1f} faults over", dict(chaos.counts), flush=True)
        ends = lab.ends(seconds=60)
        print(f"{time.monotonic() - begun:6.1f} {len(ends)} tasks", Counter(end.outcome.value for end in ends.values()))
        for problem in problems(lab, tasks, ends):
            print("PROBLEM", problem)
    finally:
        lab.close()
