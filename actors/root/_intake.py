"""The intake: tasks are looked at, all of them, then handed to the switchboard, and waited for."""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.actors.root._handle import Line, TaskHandle
from callboard.actors.root._requests import GetTasks, GiveSecrets, Submit
from callboard.messages import Message, Task, TaskRefusedError, UnknownTaskError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pykka

    from callboard.actors.commands import Secrets
    from callboard.actors.journal import Journal
    from callboard.messages import Seconds, Target, TaskResult


@dataclass(frozen=True)
class _Sent:
    """A task that was handed to the switchboard."""

    task: Task
    before: int
    """The number of the last event before it."""
    answer: pykka.Future[Any]


@dataclass(frozen=True)
class Intake:
    """Takes tasks, and finds those that were taken. For the host program's threads; it blocks."""

    send: Callable[[object], pykka.Future[Any]]
    """Tell the switchboard; its answer comes into the future."""
    answered: Callable[[pykka.Future[Any]], Any]
    """Wait for an answer of the switchboard's."""
    line: Line
    """How the handles reach it."""
    target: Callable[[Task], Target | None]
    """Find a task's target."""
    submitting: Callable[[str], None]
    """Hear which task is about to be submitted."""
    journal: Journal
    broken: concurrent.futures.Future[Exception]
    """Why the journal can't be written any more, once it can't."""
    secrets: Secrets
    seconds: Seconds
    """How long to wait until a task is safe."""

    def take(self, tasks: Sequence[Task]) -> list[TaskHandle | Exception]:
        """Look at tasks, then take them. Of one that is refused only when it is to be taken, its error is given.

        Raises:
            Exception: What is wrong with one of them, seen before any was taken.
        """
        for task in tasks:
            self._check(task)
        known = [self._known(task) for task in tasks]
        submits = self._submits([task for task, handle in zip(tasks, known, strict=True) if handle is None])
        for task, handle in zip(tasks, known, strict=True):
            if handle is not None:
                self._give_secrets(task, handle)
        sent = iter([self._send(submit) for submit in submits])
        return [handle or self._taken(next(sent)) for handle in known]

    def handle(self, task_id: str) -> TaskHandle:
        """Give the handle of a task: one that runs or waits, or one that is over, if the journal knows it.

        Raises:
            UnknownTaskError: If there is none.
            JournalError: If the journal can't be written any more, and the task is not over in it.
        """
        running = self.line.ask(GetTasks())
        if task_id in running:
            task, done = running[task_id]
            return TaskHandle(task, done, self.line, 0)
        ended = self.journal.ended(task_id)
        if ended is None:
            raise self.broken.result() if self.broken.done() else UnknownTaskError(task_id)
        over: concurrent.futures.Future[TaskResult] = concurrent.futures.Future()
        over.set_result(ended[1])
        return TaskHandle(ended[0], over, self.line, 0)

    def pending(self) -> tuple[TaskHandle, ...]:
        """Give the handles of all tasks that are not over."""
        return tuple(TaskHandle(task, done, self.line, 0) for task, done in self.line.ask(GetTasks()).values())

    def _check(self, task: Task) -> None:
        if not isinstance(task, Task):
            msg = f"submit takes a Task, not {type(task).__name__}: Task(request=...)"
            raise TypeError(msg)
        check_writable(task)
        self.secrets.check_id(task)

    def _submits(self, tasks: Sequence[Task]) -> list[Submit]:
        """Look up what tasks name: each target once, and each conversation that they go on with."""
        targets = {task.target: self.target(task) for task in {task.target: task for task in tasks}.values()}
        talks = {task.session: self.journal.conversation(task.session) for task in tasks if task.session is not None}
        return [Submit(task, targets[task.target], talks.get(task.session or "", ())) for task in tasks]

    def _send(self, submit: Submit) -> _Sent:
        before = self.line.stream.seq
        self.submitting(submit.task.id)
        return _Sent(submit.task, before, self.send(submit))

    def _taken(self, sent: _Sent) -> TaskHandle | Exception:
        """Wait until a task is taken, and safe; who submits gets the error, and the handles of the others."""
        try:
            return self._safe(sent)
        except Exception as error:  # noqa: BLE001 - an edge: it is raised where all are known
            return error

    def _safe(self, sent: _Sent) -> TaskHandle:
        try:
            task, done, safe = self.answered(sent.answer)
            safe.result(self.seconds)
        except (ValueError, TaskRefusedError):  # the same one was taken, and ended, in between
            known = self._known(sent.task)
            if known is None:
                raise
            self._give_secrets(sent.task, known)
            return known
        return TaskHandle(task, done, self.line, sent.before)

    def _known(self, task: Task) -> TaskHandle | None:
        """Find a task that the journal knows of the same id or key; other ids are made anew for each task."""
        if task.key is None and "id" not in task.model_fields_set:
            return None
        kept = self.secrets.as_kept(task)
        found = self.journal.find(kept)
        if found is None and kept.key != task.key:  # what its key quotes may have become a secret since
            found = self.journal.find(task)
        if found is None:
            return None
        handle = self.handle(found)
        before = self.secrets.as_kept(task, of=self.secrets.veil(found, handle.task))
        if found == task.id and before.model_dump_json() != kept.model_dump_json():
            msg = f"the task id {task.id!r} was used before, for another task: give each task its own, or none"
            raise TaskRefusedError(msg)
        return handle

    def _give_secrets(self, task: Task, handle: TaskHandle) -> None:
        if task.secrets and self.journal.survives and not handle.done():
            given = GiveSecrets(task.model_copy(update={"id": handle.task_id}))
            self.line.ask(given).result(self.seconds)


def check_writable(message: Message) -> None:
    """Refuse what can't be kept, before anything is done with it.

    Raises:
        ValueError: If a text in it is no Unicode, or it is nested too deep.
    """
    try:
        message.model_dump_json()
    except ValueError as error:
        msg = f"this {message.kind} can't be written down: {error}"  # type: ignore[attr-defined]
        raise ValueError(msg) from error
