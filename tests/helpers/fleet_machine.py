"""A machine of a fleet as a program, whose effects outlive it.

    python fleet_machine.py ORDER

lives once, as ordered in JSON. It serves, or it submits the tasks of its order until the file ``enough`` is there.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import signal
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

from callboard import ModelRequest, Settings, Supervisor, Task, TaskHandle, tool
from callboard.actors.states import WAS_DONE, WAS_NOT_DONE
from callboard.fleet import Bucket, NatsEngine, connection_options
from callboard.messages import (
    ANY_MACHINE,
    AgentKind,
    Effect,
    Look,
    NotWaitingError,
    Observation,
    Question,
    Target,
    TargetKind,
    UnknownTargetError,
    UnknownTaskError,
)
from callboard.surfaces import committing
from callboard.testing import MemoryServer

WINDOWS = 3
"""The windows of each machine."""
YARD = "yard"
"""The shell that each machine has, for the work of any machine."""
SITES = {"alpha": "near", "beta": "near", "gamma": "far"}
PICKY = "gamma"
"""The machine that refuses work with a check of a program."""
"""A label of each machine that serves."""
UNFINISHED = 12
"""The most tasks of a submitter that are under way at once, if its order does not say otherwise."""
BETWEEN = " | "
"""Separates the parts of a request that a HostAgent plans."""
APPROVED = "approved.txt"
"""The marks that a person of a submitter has approved, before the approval was sent."""


class CarelessEngine(NatsEngine):
    """An engine whose claims are written without compare-and-set."""

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        """Overwrite whatever claim is there."""
        if bucket is Bucket.CLAIMS:
            return await self.put(bucket, key, value)
        return await super().update(bucket, key, value, revision)


def set_times(times: dict[str, float]) -> None:
    """Change constants of modules, each by its name with the module's."""
    for name, seconds in times.items():
        module, _, constant = name.rpartition(".")
        setattr(importlib.import_module(module), constant, seconds)


class MarkedWindows(MemoryServer):
    """Windows and a shell whose only effect is a line in a file.

    There is one for each time that it is done. They show nothing of it.
    """

    settles = False
    read = write = append = None  # type: ignore[assignment]
    folder = Path()

    def observe(self, target: Target, look: Look = Look()) -> Observation:
        """Return nothing that tells of marks."""
        return Observation(text=target.name, fingerprint="-", window={"title": target.name})

    @tool(effect=Effect.ONCE, agents={AgentKind.APP, AgentKind.LINUX})
    def mark(self, target: str, name: str, seconds: float = 0.0) -> str:
        """Append a mark."""
        return self._append(target, name, seconds)

    @tool(effect=Effect.ONCE, agents={AgentKind.APP, AgentKind.LINUX})
    def sign(self, target: str, name: str, seconds: float = 0.0) -> str:
        """Append a mark, which tells if no person of the submitter has approved it."""
        path = self.folder.parent / name.partition("-")[0] / APPROVED
        is_approved = path.exists() and name in path.read_text().split()
        return self._append(target, name if is_approved else f"{name}.unapproved", seconds)

    def _append(self, target: str, name: str, seconds: float) -> str:
        with committing():
            time.sleep(seconds)
            append_line(self.folder / f"{target.rpartition(':')[2]}.marks", name)
            time.sleep(seconds)
        return name


def append_line(path: Path, line: str) -> None:
    """Append a line that outlives this process, and the machine."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def words_of(request: str) -> dict[str, str]:
    """Return the words of a request by their names."""
    return dict(word.split("=", 1) for word in request.split())


def planner(request: ModelRequest) -> dict[str, Any]:
    """Assign the parts of the request, one after the other or side by side.

    A machine that is not known yet, after a start without the server, is waited for.
    """
    parts = [words_of(part) for part in request.request.split(BETWEEN)]
    if len(request.subtasks) == len(parts):
        return {"Status": "FINISH", "Result": " ".join(str(done.output)[:20] for done in request.subtasks)}
    if not {part["target"] for part in parts} <= {target.id for target in request.observation.targets}:
        time.sleep(0.2)
        return {"Status": "CONTINUE"}
    assigned = [
        {"ControlText": part["target"], "Current Sub-Task": text}
        for part, text in zip(parts, request.request.split(BETWEEN), strict=True)
    ]
    if "side" in parts[0]:
        return {"Status": "ASSIGN", "Sub-Tasks": assigned}
    return {"Status": "ASSIGN", **assigned[len(request.subtasks)]}


def worker(request: ModelRequest) -> dict[str, Any]:
    """Do what the words of the request say, one mark a step: ``name=desk-7 marks=2 think=0.1 ask=1``."""
    words = words_of(request.request)
    marks = sum(bool(record.results) for record in request.memory)
    can_ask = request.target is not None and request.target.kind is not TargetKind.SHELL
    asks = sum(record.status == "PENDING" or record.decision.status == "PENDING" for record in request.memory)
    time.sleep(float(words.get("think", 0)))
    if can_ask and int(words.get("ask", 0)) > asks and not marks:
        return {"Status": "PENDING", "Comment": "go on?"}
    if marks < int(words["marks"]):
        arguments = {"name": f"{words['name']}.{marks + 1}", "seconds": float(words.get("hold", 0))}
        return {"Status": "CONTINUE", "Function": "mark" if marks or "sign" not in words else "sign", "Args": arguments}
    return {"Status": "FINISH", "Result": "x" * int(words.get("size", 0)) or f"{words['name']} is done"}


def marks_of(folder: Path) -> list[str]:
    """Return the marks of a machine, in the order of each window."""
    return list(itertools.chain.from_iterable(path.read_text().split() for path in sorted(folder.glob("*.marks"))))


class Person:
    """Answers for one task, and truthfully: it looks at the marks of the machine that asks."""

    def __init__(self, folder: Path, handle: TaskHandle, patience: float) -> None:
        self._patience = patience
        self._folder = folder
        self._handle = handle
        self._first_looks: dict[str, float] = {}
        self._is_paused = False

    def attend(self, seconds: float | None) -> None:
        """Answer what is open; pause the task for some seconds once, or resume what an earlier life has paused."""
        if seconds and not self._is_paused:
            self._handle.pause()
            self._is_paused = True
        if self._waited("pause") >= (seconds or 0.0):
            self._handle.resume()
        for question in self._handle.questions():
            self._answer(question)
        for approval in self._handle.approvals():
            (name,) = {str(action.arguments["name"]) for action in approval.actions}
            if self._waited(approval.id) >= zlib.crc32(name.encode()) % 5 * self._patience:
                self._decide(approval.id, name)

    def _waited(self, key: str) -> float:
        now = time.monotonic()
        return now - self._first_looks.setdefault(key, now)

    def _decide(self, request_id: str, name: str) -> None:
        try:
            if is_refused(name):
                self._handle.reject(request_id, "not this one", by="a person")
                return
            append_line(self._folder / APPROVED, name)
            self._handle.approve(request_id, by="a person")
        except NotWaitingError:
            return

    def _answer(self, question: Question) -> None:
        text = "yes"
        if WAS_DONE in question.questions[0].choices:
            machine = question.address.split("/")[1] if question.address.startswith("remote/") else ""
            (name,) = re.findall(r"name='([^']+)'", question.questions[0].text)
            places = SITES if machine == ANY_MACHINE else [machine]
            is_done = any(name in marks_of(self._folder.parent / place) for place in places)
            text = WAS_DONE if is_done else WAS_NOT_DONE
            note(self._folder / "doubts.jsonl", name=name, machine=machine, answer=text)
        try:
            self._handle.answer(question.id, text, by="a person")
        except NotWaitingError:
            return


def is_refused(name: str) -> bool:
    """Return whether a person refuses a mark of a task that nothing plans."""
    task = name.partition(".")[0]
    return task[-1].isdigit() and zlib.crc32(task.encode()) % 4 == 0


def note(path: Path, **fields: Any) -> None:
    """Write a line that outlives this process."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


class Submitter:
    """Submits tasks in their order, some at once, and sees them to their ends."""

    def __init__(self, folder: Path, supervisor: Supervisor, *, at_once: int, patience: float) -> None:
        self._at_once = at_once
        self._patience = patience
        self._folder = folder
        self._supervisor = supervisor
        self._handles: dict[str, TaskHandle] = {}
        self._people: dict[str, Person] = {}
        self._pauses: dict[str, float] = {}
        """The seconds for which tasks are paused, by id."""

    def run(self, tasks: list[dict[str, Any]]) -> None:
        """Submit tasks until the file ``enough`` is there."""
        for fields in tasks:
            while self._unfinished() >= self._at_once:
                self._attend()
            if (self._folder / "enough").exists() and not self._is_known(fields["id"]):
                break
            self._handles[fields["id"]] = self._submit(fields)
        while self._unfinished():
            self._attend()
        ends = {name: handle.result().model_dump(mode="json") for name, handle in self._handles.items()}
        spare = self._folder / "ends.part"
        spare.write_text(json.dumps(ends))
        spare.rename(self._folder / "ends.json")

    def _submit(self, fields: dict[str, Any]) -> TaskHandle:
        cancels, pause = fields.pop("cancel", False), fields.pop("pause", None)
        pools = {f"{ANY_MACHINE}:{name}={value}" for name, value in fields.get("needs", {}).items()}
        while not pools <= {target.id for target in self._supervisor.targets()}:
            self._attend()
        while True:
            try:
                handle = self._supervisor.submit(Task(**fields))
            except UnknownTargetError:
                self._attend()
                continue
            self._people[handle.task_id] = Person(self._folder, handle, self._patience)
            if pause is not None:
                self._pauses[handle.task_id] = pause
            if cancels:
                handle.cancel("no longer")
            return handle

    def _is_known(self, name: str) -> bool:
        """Return whether an earlier life has submitted a task."""
        try:
            self._supervisor.handle(name)
        except UnknownTaskError:
            return False
        return True

    def _unfinished(self) -> int:
        return sum(not handle.done() for handle in self._handles.values())

    def _attend(self) -> None:
        for name, handle in tuple(self._handles.items()):
            if not handle.done():
                self._people[name].attend(self._pauses.get(name))
        time.sleep(0.05)


def main(order: dict[str, Any]) -> None:
    """Live once."""
    name, folder = order["name"], Path(order["folder"])
    windows = (MemoryServer.window(f"{name}{number}") for number in range(WINDOWS))
    world = MarkedWindows(*windows, *([MemoryServer.shell(YARD)] if order.get("serves") else []))
    world.folder = folder
    settings = Settings.load(
        journal={"path": str(folder / "journal.db")},
        log={"file": str(folder / "machine.log")},
        policy=[*([{"verdict": "approve", "tool": "sign"}] if order.get("serves") else []), {"verdict": "allow"}],
        limits={"steps": 1_000, "repeats": 1_000, "parallel_subtasks": 4},
        fleet={
            "url": order["url"],
            "name": name,
            "slots": order.get("slots", 8),
            "labels": {"site": SITES[name]} if order.get("serves") else {},
            "accept": {"programs": name != PICKY},
            **order.get("fleet", {}),
        },
    )
    set_times(order.get("times", {}))
    engine_class = CarelessEngine if order.get("careless") else NatsEngine
    engine = engine_class(order["url"], name, **order.get("engine", {}), **connection_options(settings))
    with Supervisor.start(
        settings,
        models={"app": worker, "linux": worker, "host": planner},
        servers=[world],
        checks={"fine": lambda: True},
        engine=engine,
    ) as supervisor:
        if order.get("serves"):
            supervisor.serve()
        if "tasks" in order:
            ways = {"at_once": order.get("at_once", UNFINISHED), "patience": order.get("patience", 0.5)}
            Submitter(folder, supervisor, **ways).run(json.loads(Path(order["tasks"]).read_text()))
        else:
            ended = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: ended.set())
            ended.wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
