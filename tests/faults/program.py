"""The program to kill: a host program whose tasks work on documents.

    python -c "import program; program.main()" ORDER

lives once, as ordered in JSON. Its status is the way in which that life ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import script
import world

from callboard import Event, EventName, ModelRequest, Settings, Supervisor, Task, TaskHandle
from callboard.actors.processing import CallRecord
from callboard.actors.states import WAS_DONE, WAS_NOT_DONE
from callboard.journal import FileJournal, Row
from callboard.messages import Intent, JournalError, Question
from callboard.surfaces import EffectGuard
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import Faults, kill_process

with contextlib.suppress(ImportError):  # only some systems have it, those that have fork
    import resource

SECONDS = 60.0
"""The longest time without progress, in seconds."""

DONE, BROKEN, SUSPENDED, FULL = 0, 1, 3, 4
"""The ways in which a life ends that is not killed."""


def note(path: Path, **fields: Any) -> None:
    """Write a line that outlives this process."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


def model(folder: Path, life: int) -> Callable[[ModelRequest], Any]:
    """Make the model of all agents. It decides by the request alone, and the record of its calls outlives it."""

    def decide(request: ModelRequest) -> Any:
        turn = 1 + sum(record.step == 1 for record in request.memory[1:]) if request.address == "host/turn" else 1
        asked = {"run": request.run_id, "round": turn, "step": request.step, "call": request.call}
        note(folder / "calls.jsonl", life=life, **asked)
        said = script.decided(request)
        if said == script.SILENCE:
            threading.Event().wait()
        return {"Status": "CONTINUE", "Actions": said} if isinstance(said, list) else said

    return decide


class Person:
    """Answers, approves, pauses and cancels; its memory outlives it."""

    def __init__(self, folder: Path, handles: dict[str, TaskHandle]) -> None:
        self._folder = folder
        self._handles = handles
        """Of the tasks that are not over, by their names."""
        self._memory = folder / "person.jsonl"

    def begin(self) -> None:
        """Go on from the point of the kill."""
        for name in self._handles:
            if name not in {"held", "turn"}:
                self._handles[name].resume()
            self.attend(name)

    def attend(self, name: str) -> None:
        """Give a task a person's attention; one that waits for a pause to end is resumed when no other is left."""
        handle = self._handles[name]
        for approval in handle.approvals():
            handle.pause()
            handle.approve(approval.id, by="a person")
            handle.resume()
        for question in handle.questions():
            self._asked(name, handle, question)
        if name == "held" and self._memory.exists():
            handle.cancel("a person has no use for it")
        if name == "turn" and len(self._handles) == 1:
            handle.resume()

    def _asked(self, name: str, handle: TaskHandle, question: Question) -> None:
        if WAS_DONE in question.questions[0].choices:
            handle.answer(question.id, self._look(question), by="a person")
        elif name == "gone":
            handle.cancel("a person has no use for it")
        elif name != "late":
            if name in {"held", "turn"}:
                handle.pause()
            if name == "held":
                note(self._memory, held="is paused")
            handle.answer(question.id, "this one", by="a person")

    def _look(self, question: Question) -> str:
        """Say of an action in doubt whether it stands in the documents, where only a person can tell."""
        read = world.contents(self._folder / "workspace")
        there = {*world.marks(read), *read}
        return WAS_DONE if any(f"'{mark}'" in question.questions[0].text for mark in there) else WAS_NOT_DONE


def live(folder: Path, order: dict[str, Any]) -> int:
    """Submit tasks, or the same ones again, and wait until all are over, or for the time that was ordered."""
    settings = Settings.load(
        journal={"path": folder / "journal.db", "durability": order.get("durability", "full")},
        documents={"workspace": folder / "workspace"},
        limits=order.get("limits", {}),
    )
    decide = model(folder, order["life"])
    heard: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    if "stop_after" in order:
        threading.Timer(order["stop_after"], heard.put, [None]).start()
    supervisor = Supervisor.start(settings, models={"host": decide, "app": decide})
    with supervisor:
        supervisor.subscribe(heard.put)
        tasks = {name: script.tasks(order["life"])[name] for name in order.get("tasks", script.ALL)}
        handles = {name: submit(supervisor, task, folder) for name, task in tasks.items()}
        status = attended(handles, heard, folder)
        if status == DONE:
            for name in script.TWICE:
                if name in tasks and not submit(supervisor, tasks[name], folder).done():
                    msg = f"{name} was over, and was taken again"
                    raise RuntimeError(msg)
    silent = "callboard-model-app/word/slow.docx"  # its model never answers, and its thread can't be ended
    left = [what for what in supervisor.stop() if what != silent]
    if left:
        msg = f"left behind: {left}"
        raise RuntimeError(msg)
    return status


def submit(supervisor: Supervisor, task: Task, folder: Path) -> TaskHandle:
    """Submit a task, some of them twice: the second time it is the same one."""
    handle = supervisor.submit(task)
    note(folder / "accepted.jsonl", task=handle.task_id)
    if script.name(task.id) in script.TWICE:
        again = supervisor.submit(task.model_copy(update={"id": f"{task.id}-again"}) if task.key else task)
        if again.task_id != handle.task_id:
            msg = f"{task.id} was taken twice: as {handle.task_id} and {again.task_id}"
            raise RuntimeError(msg)
    return handle


def attended(handles: dict[str, TaskHandle], heard: queue.SimpleQueue[Event | None], folder: Path) -> int:
    """Attend to tasks until they are over."""
    person = Person(folder, handles)
    person.begin()
    while True:
        for name in [name for name, handle in handles.items() if handle.done()]:
            result = handles.pop(name).result(0)
            note(folder / "told.jsonl", task=result.task_id, result=result.model_dump(mode="json"))
            for other in handles:
                person.attend(other)
        if not handles:
            return DONE
        event = heard.get(timeout=SECONDS)
        if event is None:
            return SUSPENDED
        name = script.name(event.task_id)
        if name not in handles:
            continue
        if event.name is EventName.TASK_ENDED:
            handles[name].result(SECONDS)
        elif event.name in {EventName.QUESTION_ASKED, EventName.APPROVAL_REQUESTED}:
            person.attend(name)


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Note each change of a document, right after it."""
    writing = EffectGuard.writing

    @contextlib.contextmanager
    def noted(guard: EffectGuard, artifact: Path | None) -> Iterator[None]:
        with writing(guard, artifact):
            yield
            running = guard.lease.spent.running
            note(folder / "effects.jsonl", task=running.task_id, call=running.call_id, tool=running.tool)

    with mock.patch.object(EffectGuard, "writing", noted):
        yield


@contextlib.contextmanager
def forgetful() -> Iterator[None]:
    """Be the mutant: steps are written down after they ran, as usual elsewhere, and begun steps are not looked for."""
    keep = FileJournal.keep

    async def keep_but_intents(self: FileJournal, *rows: Row) -> None:
        await keep(self, *(row for row in rows if not isinstance(row.message, Intent)))  # earlier rows are kept

    def foresee(*_: Any) -> None:
        """Keep nothing."""

    with (
        mock.patch.object(FileJournal, "keep", keep_but_intents),
        mock.patch.object(CallRecord, "foresee", foresee),
        mock.patch.object(DocumentSurface, "settles", new=True),  # so no one compares the state with the one left
    ):
        yield


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Be another mutant: an action's answer is lost with the process that heard it."""
    foresee = CallRecord.foresee

    def without_answer(self: CallRecord, path: str, before: str, after: str, _answer: Any) -> None:
        foresee(self, path, before, after, None)

    with mock.patch.object(CallRecord, "foresee", without_answer):
        yield


MUTANTS = {"forgetful": forgetful, "deaf": deaf}


def soon(seconds: float) -> Callable[[], None]:
    """Make a function that ends the process some time later, or at once."""
    return threading.Timer(seconds, kill_process).start if seconds else kill_process


def begin(order: dict[str, Any]) -> int:
    """Live one life, as ordered; write down which places it passed, if it gets so far. Returns how it ended."""
    folder = Path(order["folder"])
    with contextlib.ExitStack() as around:
        around.enter_context(watched(folder))
        faults = around.enter_context(Faults())
        for when, kind, nth, *later in order.get("kills", ()):
            getattr(faults, when)(kind, soon(*later or [0.0]), nth=nth)
        if "mutant" in order:
            around.enter_context(MUTANTS[order["mutant"]]())
        if "file_size" in order:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_size"], resource.RLIM_INFINITY))
        try:
            status = live(folder, order)
        except JournalError:
            if "file_size" not in order:
                raise
            return FULL
        passed = sorted([*place, count] for place, count in faults.passed.items())
        (folder / f"passed-{order['life']}.json").write_text(json.dumps(passed), encoding="utf-8")
    return status


def main() -> NoReturn:
    """Live one life; a thread that can't be ended, as that of a silent model, ends with it."""
    order = json.loads(sys.argv[-1])
    status = BROKEN
    try:
        with world.lean(Path(order["template"])):
            status = begin(order)
    except BaseException:  # whatever it is, it is the end of this life
        traceback.print_exc()
    os._exit(status)
