"""The submission of tasks: checks, hand-over to the root, and waits."""

from __future__ import annotations

import concurrent.futures
import functools
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.actors.client._client import check_writable
from callboard.actors.client._handle import TaskHandle
from callboard.actors.client._undo import undo
from callboard.actors.commands import OutputType
from callboard.actors.root import ConfirmTask, GetTasks, GiveOutputType, GiveSecrets, Submit
from callboard.messages import (
    REMOTE,
    Answer,
    NotAllTakenError,
    OutputT,
    RequestExpired,
    Routine,
    RoutineError,
    SettingsError,
    SupervisorStoppedError,
    Task,
    TaskRefusedError,
    UndoRefusedError,
    UnknownTaskError,
    agent_kind,
)
from callboard.routines import looked_at, stop_reason, tool_problems, with_routine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pykka

    from callboard.actors.client._client import RootClient
    from callboard.actors.commands import Secrets, TargetLookup, Toolbox
    from callboard.actors.observe import Traces
    from callboard.actors.processing import CheckInputs
    from callboard.actors.runtime import Budgets, EventStream, WaitingRequests
    from callboard.journal import Journal
    from callboard.messages import Question, Seconds, TaskResult
    from callboard.models import TaskModels


@dataclass(frozen=True)
class _Sent:
    """A task that was sent to the root."""

    submit: Submit
    previous_seq: int
    """The number of the last event before it."""
    answer: pykka.Future[Any]


class Submission:
    """Submit tasks, and find submitted ones.

    For the host program's threads: all methods block.
    """

    def __init__(
        self,
        *,
        client: RootClient,
        stream: EventStream,
        lookup: TargetLookup,
        toolbox: Toolbox,
        models: TaskModels,
        journal: Journal,
        broken: concurrent.futures.Future[Exception],
        secrets: Secrets,
        budgets: Budgets,
        check_inputs: CheckInputs,
        waiting: WaitingRequests,
        abandon: Callable[[str], None],
        path_of: Callable[[str], Path],
        routine_misses: int,
        traces: Traces | None = None,
    ) -> None:
        """Create it.

        `broken` holds the error that broke the journal, if any; `path_of` gives the path of a file that a task names;
        `routine_misses` is the setting `routines.misses`.
        """
        self._path_of = path_of
        self._routine_misses = routine_misses
        self.abandon = abandon
        self.client = client
        self.stream = stream
        self.budgets = budgets
        self.waiting = waiting
        self._lookup = lookup
        self._toolbox = toolbox
        self._models = models
        self._journal = journal
        self._broken = broken
        self._secrets = secrets
        self._traces = traces
        self._check_inputs = check_inputs

    def submit(self, task: Task, output_type: type[OutputT] | None = None) -> TaskHandle[OutputT]:
        """Submit a task; see `Supervisor.submit`."""
        (outcome,) = self._take((task,), _prepared(output_type))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def submit_all(
        self, tasks: Iterable[Task], output_type: type[OutputT] | None = None
    ) -> tuple[TaskHandle[OutputT], ...]:
        """Submit tasks; see `Supervisor.submit_all`."""
        submitted_tasks = tuple(tasks)
        outcomes = self._take(submitted_tasks, _prepared(output_type))
        handles = tuple(outcome for outcome in outcomes if isinstance(outcome, TaskHandle))
        errors = [
            (task, outcome)
            for task, outcome in zip(submitted_tasks, outcomes, strict=True)
            if isinstance(outcome, Exception)
        ]
        if errors:
            raise NotAllTakenError(errors, handles)
        return handles

    def _take(
        self, tasks: Sequence[Task], output_type: OutputType[OutputT] | None
    ) -> list[TaskHandle[OutputT] | Exception]:
        """Check all tasks, then submit them.

        Returns:
            For each task its handle, or the error with which the root refused it.

        Raises:
            Exception: The first error of the checks; no task is submitted then.
        """
        for task in tasks:
            self._check(task)
        tasks = [self._with_routine(task) for task in tasks]
        tasks = [task if output_type is None else _with_schema(task, output_type) for task in tasks]
        self.client.check_open()
        existing_handles = [(task, self._existing_handle(task, output_type)) for task in tasks]
        submits = self._submits([task for task, handle in existing_handles if handle is None], output_type)
        for task, handle in existing_handles:
            if handle is not None:
                self._give(task, handle, output_type)
        outcomes = self._handles_of([self._send(submit) for submit in submits])
        return [handle or next(outcomes) for _, handle in existing_handles]

    def handle(self, task_id: str, output_type: type[OutputT] | None = None) -> TaskHandle[OutputT]:
        """Return the handle of a task; see `Supervisor.handle`."""
        prepared = _prepared(output_type)
        handle = self._handle(task_id, prepared)
        self._give(None, handle, prepared)
        return handle

    def _handle(self, task_id: str, output_type: OutputType[OutputT] | None) -> TaskHandle[OutputT]:
        running = self.client.ask(GetTasks())
        if task_id in running:
            task, done = running[task_id]
            return TaskHandle(task, done, self, 0, output_type)
        ended = self._journal.ended(task_id)
        if ended is None:
            raise self._broken.result() if self._broken.done() else UnknownTaskError(task_id)
        result_future: concurrent.futures.Future[TaskResult] = concurrent.futures.Future()
        result_future.set_result(ended[1])
        return TaskHandle(ended[0], result_future, self, 0, output_type)

    def build_model(self, task: Task) -> None:
        """Build a recovered task's own model if it was not built yet."""
        for name in task.models:
            self._models.build(name, recovered=True)

    def undo(self, task_id: str, files: Sequence[str]) -> dict[Path, bool]:
        """Bring back an ended task's files; see `Supervisor.undo`."""
        if not self.handle(task_id).done():
            msg = f"{task_id} is not over: cancel it first, or wait for its end"
            raise UndoRefusedError(msg)
        versions = self._journal.versions
        if versions is None:
            msg = f"{task_id} has no journal in a file, so no version of a file is kept"
            raise UndoRefusedError(msg)
        rows = self._journal.task_rows(task_id).result(self.client.seconds)
        return undo(rows, versions, task_id, files)

    def pending(self) -> tuple[TaskHandle, ...]:
        """Return the handles of all unfinished tasks."""
        return tuple(TaskHandle(task, done, self, 0) for task, done in self.client.ask(GetTasks()).values())

    def confirm(self, task_id: str) -> None:
        """Resume a recovered task, which the machine that submitted it still wants."""
        self.client.ask(ConfirmTask(task_id)).result(self.client.seconds)

    def decline(self, question: Question, by: str) -> None:
        """Answer a question of a task whose submitter asks no person.

        The agent decides itself then. About a limit or an action in doubt it can't: that ends as at a deadline.
        """
        if question.limit is None and not question.in_doubt:
            self.client.settle(Answer(id=question.id, task_id=question.task_id, nobody=True, by=by))
        else:
            self.client.tell(RequestExpired(id=question.id, task_id=question.task_id))

    def _check(self, task: Task) -> None:
        """Refuse an invalid task.

        Raises:
            TypeError: If it is not a `Task`.
            ValueError: If a text in it is not valid Unicode, or its id contains a secret.
        """
        if not isinstance(task, Task):
            msg = f"submit takes a Task, not {type(task).__name__}: Task(request=...)"
            raise TypeError(msg)
        check_writable(task)
        self._secrets.check_names(task)

    def _with_routine(self, task: Task) -> Task:
        """Fill in a task that repeats a routine.

        The routine of a task that was submitted before is that of its journal: the file may have changed since.

        Raises:
            TaskRefusedError: If its routine, or a parameter, can't be used.
        """
        if task.routine is None:
            return task
        file = str(self._path_of(task.routine).absolute()) if isinstance(task.routine, str) else task.routine_file
        existing_id = self._existing_id(task) if file else None
        existing_task = None if existing_id is None else self._handle(existing_id, None).task
        is_known = existing_task is not None and existing_task.routine_file == file
        if existing_task is not None and is_known:
            task = task.model_copy(update={"routine": existing_task.routine, "routine_file": file})
        try:
            filled_task = with_routine(task, self._path_of)
        except RoutineError as error:
            raise TaskRefusedError(str(error)) from None
        check_writable(filled_task)
        if isinstance(filled_task.routine, Routine) and not is_known:
            problem = next(tool_problems(filled_task.routine, self._toolbox.schemas), "")
            if problem:
                msg = f"the routine {filled_task.routine.routine} does not fit the tools that are there: {problem}"
                raise TaskRefusedError(msg)
        return filled_task

    def _submits(self, tasks: Sequence[Task], output_type: OutputType[Any] | None) -> list[Submit]:
        """Look up the targets and conversations that tasks name."""
        if not self._journal.survives and any(task.may_change for task in tasks):
            msg = (
                "may_change needs a journal in a file, beside which the version before a change is kept: set "
                "`journal.path`, or leave out may_change, so that each overwriting is approved"
            )
            raise TaskRefusedError(msg)
        for name in {name for task in tasks for name in task.models}:
            built = self._models.build(name)
            if isinstance(built, SettingsError):
                raise TaskRefusedError(str(built)) from built
        sessions = {task.session for task in tasks if task.session is not None}
        for task in tasks:
            if stopped := self._stop_reason(task):
                raise TaskRefusedError(stopped)
            if lacks := self._models.lacking_judge(task):
                raise TaskRefusedError(lacks)
            if lacking := self._check_inputs.lacking(task):
                raise TaskRefusedError("; ".join(lacking))
        with self.client.while_open():
            targets = self._lookup.targets(tasks)
            files = self._lookup.files(tasks)
            contents = [self._lookup.contents(task) for task in tasks]
        for task, target in zip(tasks, targets, strict=True):
            self._secrets.check_names(task, target)
            if task.routine is not None and target is not None and agent_kind(target.address) == REMOTE:
                msg = f"{target.id} is on another machine, where no routine is repeated: run it there"
                raise TaskRefusedError(msg)
        talks = {session: self._journal.conversation(session) for session in sessions}
        listed = functools.cache(self._lookup.listed)  # once for all rules of all tasks, if at all
        return [
            Submit(
                task,
                target,
                talks.get(task.session or "", ()),
                output_type,
                tuple(self._toolbox.unmatched(task.policy, listed)) if task.policy else (),
                *self._at_start(task, at_start, content),
            )
            for task, target, at_start, content in zip(tasks, targets, files, contents, strict=True)
        ]

    def _stop_reason(self, task: Task) -> str:
        """Return the reason against a task's routine; empty if it may run."""
        if not isinstance(task.routine, Routine) or not self._routine_misses:
            return ""
        runs = self._journal.routine_runs(task.routine.routine, looked_at(self._routine_misses))
        return stop_reason(task.routine, runs, self._routine_misses, task.routine_file)

    def _at_start(
        self, task: Task, files: Mapping[str, str] | None, contents: Mapping[str, bytes] | None
    ) -> tuple[Mapping[str, str] | None, Mapping[str, bytes] | None]:
        """Return digests of a task's files, and contents kept in memory.

        A journal in a file has the contents beside it.
        """
        if contents is None:
            return files, None
        versions = self._journal.versions
        if versions is not None:
            for data in contents.values():
                versions.keep(task.id, data)
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        return digests, contents if versions is None else None

    def _send(self, submit: Submit) -> _Sent:
        previous_seq = self.stream.seq
        if self._traces is not None:
            self._traces.submitting(submit.task.id)
        return _Sent(submit, previous_seq, self.client.send(submit))

    def _handles_of(self, sent: Sequence[_Sent]) -> Iterator[TaskHandle[Any] | Exception]:
        """Wait for the tasks one by one.

        Once the root has not answered in time, or has stopped, the other tasks are not waited for.
        """
        seconds = self.client.seconds
        for submission in sent:
            try:
                yield self._handle_of(submission, seconds)
            except Exception as error:  # an edge: the caller gets it, with the handles of the others
                if isinstance(error, TimeoutError | SupervisorStoppedError):
                    seconds = 0.0
                yield error

    def _handle_of(self, sent: _Sent, seconds: Seconds) -> TaskHandle[Any]:
        """Wait until a task is taken, and safe in the journal."""
        requested_task, output_type = sent.submit.task, sent.submit.output_type
        try:
            task, done, safe = self.client.answer(sent.answer, seconds)
            safe.result(seconds)
        except (ValueError, TaskRefusedError):  # the same task was taken, and ended, in between
            existing_handle = self._existing_handle(requested_task, output_type)
            if existing_handle is None:
                raise
            self._give(requested_task, existing_handle, output_type)
            return existing_handle
        if task is requested_task:
            return TaskHandle(task, done, self, sent.previous_seq, output_type)
        self._refuse_other(requested_task, task, output_type)
        same = TaskHandle(task, done, self, 0, output_type)  # an earlier task has its id or key
        self._give(requested_task, same, output_type)
        return same

    def _existing_handle(self, task: Task, output_type: OutputType[OutputT] | None) -> TaskHandle[OutputT] | None:
        """Find the handle of the task with the same id or key."""
        existing_id = self._existing_id(task)
        if existing_id is None:
            return None
        handle = self._handle(existing_id, output_type)
        self._refuse_other(task, handle.task, output_type)
        return handle

    def _existing_id(self, task: Task) -> str | None:
        """Find the journaled task with the same id or key.

        An id that the caller did not set is unique, and not looked up.
        """
        if task.key is None and "id" not in task.model_fields_set:
            return None
        redacted_task = self._secrets.as_kept(task)
        existing_id = self._journal.find(redacted_task)
        if existing_id is None and redacted_task.key != task.key:  # its key may quote a text that became a secret since
            existing_id = self._journal.find(task)
        return existing_id

    def _refuse_other(self, task: Task, existing_task: Task, output_type: OutputType[Any] | None) -> None:
        """Refuse a task whose id or key belongs to another one.

        Tasks with the same key may differ in their ids, labels, secrets, deadlines and priorities. The schema of an
        output type is not compared: it changes with a docstring, and the result is checked by the type.

        Raises:
            TaskRefusedError: If it does; the message describes both tasks, with secrets redacted.
        """
        if output_type is not None:
            task, existing_task = (
                compared_task.model_copy(update={"output_schema": None}) for compared_task in (task, existing_task)
            )
        redacted_task = self._secrets.as_kept(task)
        redacted_existing = self._secrets.as_kept(task, of=self._secrets.redact(existing_task.id, existing_task))
        if existing_task.id == task.id and redacted_existing.model_dump_json() != redacted_task.model_dump_json():
            msg = f"the task id {task.id!r} was used before, for another task: give each task its own, or none"
            raise TaskRefusedError(msg)
        if _asked_for(redacted_existing) != _asked_for(redacted_task):
            msg = (
                f"the key {redacted_task.key!r} was used before: the task {existing_task.id} was to "
                f"{_described(redacted_existing)}, this one is to {_described(redacted_task)}; give each request a key "
                "of its own"
            )
            raise TaskRefusedError(msg)

    def _give(self, task: Task | None, handle: TaskHandle[Any], output_type: OutputType[Any] | None) -> None:
        """Give an unfinished task what no journal keeps: secrets, output type."""
        if output_type is not None and not handle.done():
            self.client.ask(GiveOutputType(handle.task_id, output_type))
        if task is not None and task.secrets and self._journal.survives and not handle.done():
            message = GiveSecrets(task.model_copy(update={"id": handle.task_id}))
            self.client.ask(message).result(self.client.seconds)


def _prepared(output_type: type[OutputT] | None) -> OutputType[OutputT] | None:
    return None if output_type is None else OutputType(output_type)


def _with_schema(task: Task, output_type: OutputType[Any]) -> Task:
    """Put the schema of an output type into a task.

    Raises:
        ValueError: If the task has another schema.
    """
    if task.output_schema not in (None, output_type.schema):
        msg = f"the task has an output_schema, which is not that of {output_type.name}: leave it out"
        raise ValueError(msg)
    return task.model_copy(update={"output_schema": output_type.schema})


def _asked_for(task: Task) -> str:
    return task.model_dump_json(exclude={"id", "key", "labels", "secrets", "deadline", "priority", "routine_file"})


def _described(task: Task) -> str:
    requests = "; ".join([task.request] if task.request else [step.request for step in task.plan])
    on = f" on {task.target}" if task.target is not None else ""
    change = f", and may change {', '.join(task.may_change)}" if task.may_change else ""
    routine = task.routine
    by = f" by the routine {routine.routine} ({routine.digest})" if isinstance(routine, Routine) else ""
    return f"{requests!r:.200}{on}{by}{change}"
