"""A machine of a fleet as a program, whose effects outlive it.

    python fleet_machine.py ORDER

lives once, as ordered in JSON. It serves, or it submits the tasks of its order until the file ``enough`` is there.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from callboard import ModelRequest, Settings, Supervisor, Task, TaskHandle, tool
from callboard.actors.states import WAS_DONE, WAS_NOT_DONE
from callboard.fleet import NatsEngine
from callboard.messages import (
    Effect,
    Look,
    NotWaitingError,
    Observation,
    Question,
    Target,
    UnknownTargetError,
    UnknownTaskError,
)
from callboard.surfaces import committing
from callboard.testing import MemoryServer

WINDOWS = 3
"""The windows of each machine."""
UNFINISHED = 12
"""The most tasks of a submitter that are under way at once."""


class MarkedWindows(MemoryServer):
    """Windows whose only effect is a line in a file.

    There is one for each time that it is done. The windows show nothing of it.
    """

    settles = False
    read = write = append = None  # type: ignore[assignment]
    folder = Path()

    def observe(self, target: Target, look: Look = Look()) -> Observation:
        """Return nothing that tells of marks."""
        return Observation(text=target.name, fingerprint="-", window={"title": target.name})

    @tool(effect=Effect.ONCE)
    def mark(self, target: str, name: str, seconds: float = 0.0) -> str:
        """Append a mark."""
        with committing():
            time.sleep(seconds)
            with (self.folder / f"{target.partition(':')[2]}.marks").open("a") as file:
                file.write(f"{name}\n")
                file.flush()
                os.fsync(file.fileno())
            time.sleep(seconds)
        return name


def worker(request: ModelRequest) -> dict[str, Any]:
    """Do what the words of the request say, one mark a step: ``name=t7 marks=2 think=0.1 ask=1``."""
    words = dict(word.split("=", 1) for word in request.request.split())
    marks = sum(bool(record.results) for record in request.memory)
    asks = sum(record.status == "PENDING" or record.decision.status == "PENDING" for record in request.memory)
    time.sleep(float(words.get("think", 0)))
    if int(words.get("ask", 0)) > asks and not marks:
        return {"Status": "PENDING", "Comment": "go on?"}
    if marks < int(words["marks"]):
        arguments = {"name": f"{words['name']}.{marks + 1}", "seconds": float(words.get("hold", 0))}
        return {"Status": "CONTINUE", "Function": "mark", "Args": arguments}
    return {"Status": "FINISH", "Result": "x" * int(words.get("size", 0)) or f"{words['name']} is done"}


def marks_of(folder: Path) -> list[str]:
    """Return the marks of a machine, in the order of each window."""
    return list(itertools.chain.from_iterable(path.read_text().split() for path in sorted(folder.glob("*.marks"))))


class Person:
    """Answers questions truthfully: it looks at the marks of the machine that asks."""

    def __init__(self, folder: Path, handle: TaskHandle) -> None:
        self._folder = folder
        self._handle = handle

    def attend(self) -> None:
        """Answer what is open."""
        for question in self._handle.questions():
            self._answer(question)
        for approval in self._handle.approvals():
            try:
                self._handle.approve(approval.id, by="a person")
            except NotWaitingError:
                continue

    def _answer(self, question: Question) -> None:
        text = "yes"
        if WAS_DONE in question.questions[0].choices:
            machine = question.address.split("/")[1] if question.address.startswith("remote/") else ""
            (name,) = re.findall(r"name='([^']+)'", question.questions[0].text)
            text = WAS_DONE if name in marks_of(self._folder.parent / machine) else WAS_NOT_DONE
            note(self._folder / "doubts.jsonl", name=name, machine=machine, answer=text)
        try:
            self._handle.answer(question.id, text, by="a person")
        except NotWaitingError:
            return


def note(path: Path, **fields: Any) -> None:
    """Write a line that outlives this process."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


class Submitter:
    """Submits tasks in their order, some at once, and sees them to their ends."""

    def __init__(self, folder: Path, supervisor: Supervisor) -> None:
        self._folder = folder
        self._supervisor = supervisor
        self._handles: dict[str, TaskHandle] = {}

    def run(self, tasks: list[dict[str, Any]]) -> None:
        """Submit tasks until the file ``enough`` is there."""
        for fields in tasks:
            while self._unfinished() >= UNFINISHED:
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
        cancels = fields.pop("cancel", False)
        while True:
            try:
                handle = self._supervisor.submit(Task(**fields))
            except UnknownTargetError:
                self._attend()
                continue
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
        for handle in tuple(self._handles.values()):
            if not handle.done():
                Person(self._folder, handle).attend()
        time.sleep(0.05)


def main(order: dict[str, Any]) -> None:
    """Live once."""
    name, folder = order["name"], Path(order["folder"])
    world = MarkedWindows(*(MemoryServer.window(f"{name}{number}") for number in range(WINDOWS)))
    world.folder = folder
    settings = Settings.load(
        journal={"path": str(folder / "journal.db")},
        log={"file": str(folder / "machine.log")},
        policy=[{"verdict": "allow"}],
        fleet={"name": name, "slots": order.get("slots", 8)},
    )
    engine = NatsEngine(order["url"], name, **order.get("engine", {}))
    with Supervisor.start(settings, models={"app": worker}, servers=[world], engine=engine) as supervisor:
        if order.get("serves"):
            supervisor.serve()
        if "tasks" in order:
            Submitter(folder, supervisor).run(json.loads(Path(order["tasks"]).read_text()))
        else:
            ended = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: ended.set())
            ended.wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
