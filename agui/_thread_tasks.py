"""The tasks of people's threads: begun once, found again, answered and cancelled."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag_ui.core import TextPart, UserMessage

from callboard.actors.commands import Secrets
from callboard.agui._interrupts import RunRefusal, RunRefusedError, answer_to
from callboard.journal import JournalReader, TaskFilter
from callboard.messages import (
    AnswerRefusedError,
    EventName,
    NotWaitingError,
    SettingsError,
    Task,
    TaskRefusedError,
    UnknownTaskError,
    visible,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ag_ui.core import ResumeEntry, RunAgentInput

    from callboard.actors.client import TaskHandle
    from callboard.agui._interrupts import InterruptAnswer
    from callboard.config import Redactor
    from callboard.messages import ApprovalRequest, Event, Question
    from callboard.supervisor import Supervisor

LONGEST_ID = 200
"""The most characters of the id of a thread or a run."""
_LABEL = "agui_thread"
"""The label of a thread's tasks. Its value is a digest of the person and the thread."""
_MOST_TASKS = 20
"""The most unfinished tasks of one person."""
_PERSON_LABEL = "agui_person"
_REQUEST_CHARACTERS = 20_000
_OPTIONS = {"target": str, "dry_run": bool}
"""The values of `forwardedProps.callboard`, with their types."""
_CLOSED = {EventName.APPROVAL_ANSWERED, EventName.QUESTION_ANSWERED}


@dataclass(frozen=True)
class PersonThread:
    """A conversation of a person.

    Another person's thread of the same id is another one.
    """

    person: str
    thread_id: str

    @property
    def digest(self) -> str:
        """The value of the label of its tasks."""
        return _digest(self.person, self.thread_id)

    def task_id(self, run_id: str) -> str:
        """Return the id of the task that a run begins."""
        return f"agui-{_digest(self.person, self.thread_id, run_id)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Continuation:
    """A task of a run, and the events of earlier runs."""

    handle: TaskHandle
    past: tuple[Event, ...] = ()
    """The events that an earlier run has told; those after them are streamed."""
    notes: tuple[str, ...] = ()
    """Texts for the person, about answers that came too late."""


class ThreadTasks:
    """The tasks of threads. Its methods block."""

    def __init__(self, supervisor: Supervisor) -> None:
        """Create it.

        Raises:
            SettingsError: If the supervisor has no journal in a file.
        """
        settings = supervisor.settings
        if settings.journal.path is None:
            msg = "front ends need a journal in a file, so that their tasks survive the process: set journal.path"
            raise SettingsError(msg)
        self._supervisor = supervisor
        self._journal: Path = settings.path(settings.journal.path)
        self._submitting = threading.Lock()
        self.redactor: Redactor = Secrets(settings.secrets).redactor("")
        folder = settings.documents.workspace
        self.workspace: Path | None = None if folder is None else settings.path(folder).resolve()

    def begin(self, thread: PersonThread, run: RunAgentInput) -> Continuation:
        """Return the task of a run.

        It is a new one, an earlier one, or one that a person's answers continue.

        Raises:
            RunRefusedError: If the run is refused.
            CallboardError: If the supervisor refuses it.
        """
        with self._submitting:
            if run.resume:
                return self._resumed(thread, run.resume)
            known_handle = self._known(thread.task_id(run.run_id))
            if known_handle is not None:
                return Continuation(self._same(known_handle, run))
            return Continuation(self._new(thread, run))

    def _known(self, task_id: str) -> TaskHandle | None:
        with contextlib.suppress(UnknownTaskError):
            return self._supervisor.handle(task_id)
        return None

    def _same(self, handle: TaskHandle, run: RunAgentInput) -> TaskHandle:
        """Return a run's task, if it was to do the same.

        A front end that only follows it again may have answers after the request.

        Raises:
            RunRefusedError: If it was to do something else.
        """
        if not run.messages or not isinstance(run.messages[-1], UserMessage):
            return handle
        options, task = _options_of(run), handle.task
        given = (self.redactor.text(_request_of(run)), options.get("target"), options.get("dry_run", False))
        if given != (self.redactor.text(task.request), task.target, task.dry_run):
            msg = "this runId was used before for another request: give each run its own"
            raise RunRefusedError(RunRefusal.RUN_ID_USED, msg)
        return handle

    def _new(self, thread: PersonThread, run: RunAgentInput) -> TaskHandle:
        request, options = _request_of(run), _options_of(run)
        open_handle = self._open_task(thread)
        if open_handle is not None:
            if self.requests(open_handle):
                msg = "this thread waits for answers to its interrupts: send them as `resume`"
                raise RunRefusedError(RunRefusal.INTERRUPTS_PENDING, msg)
            msg = "a task of this thread is at work: follow it by the runId that began it, or cancel it"
            raise RunRefusedError(RunRefusal.BUSY, msg)
        owner = _digest(thread.person)
        if sum(handle.task.labels.get(_PERSON_LABEL) == owner for handle in self._supervisor.pending()) >= _MOST_TASKS:
            msg = f"{_MOST_TASKS} of your tasks are not over, which is the most: wait for one, or cancel one"
            raise RunRefusedError(RunRefusal.TOO_MANY_TASKS, msg)
        labels = {_LABEL: thread.digest, _PERSON_LABEL: owner}
        task = Task(id=thread.task_id(run.run_id), request=request, labels=labels, **options)
        previous = None if task.target is not None else self._latest_task(thread)
        if previous is not None and previous.task.target is None:
            with contextlib.suppress(TaskRefusedError):  # its conversation is no longer kept
                return self._supervisor.submit(task.model_copy(update={"session": previous.session}))
        return self._supervisor.submit(task)

    def _open_task(self, thread: PersonThread) -> TaskHandle | None:
        handles = (handle for handle in self._supervisor.pending() if handle.task.labels.get(_LABEL) == thread.digest)
        return next(handles, None)

    def _latest_task(self, thread: PersonThread) -> TaskHandle | None:
        with JournalReader.open(self._journal, pictures=False) as reader:
            lines = reader.page(TaskFilter(labels={_LABEL: thread.digest}), limit=1).tasks
        return self._known(lines[0].id) if lines else None

    def requests(self, handle: TaskHandle) -> tuple[ApprovalRequest | Question, ...]:
        """List a task's open requests."""
        if handle.done():
            return ()
        status = self._supervisor.status()
        requests: list[ApprovalRequest | Question] = [*status.approvals, *status.questions]
        return tuple(self.redactor.redact(request) for request in requests if request.task_id == handle.task_id)

    def cancel(self, thread: PersonThread) -> bool:
        """Cancel the unfinished task of a thread; return whether there was one."""
        handle = self._open_task(thread)
        return handle is not None and handle.cancel(f"cancelled by {visible(thread.person)}")

    def _resumed(self, thread: PersonThread, entries: list[ResumeEntry]) -> Continuation:
        """Take a person's answers; all are checked before the first is taken.

        Raises:
            RunRefusedError: If one does not fit, or is for no request of this thread.
        """
        handle = self._open_task(thread) or self._latest_task(thread)
        ids = [entry.interrupt_id for entry in entries]
        if handle is None or len(set(ids)) != len(ids) or not all(id_.startswith(f"{handle.task_id}~") for id_ in ids):
            raise RunRefusedError(
                RunRefusal.UNKNOWN_INTERRUPT, "an answer is for no interrupt of this thread, or for one twice"
            )
        requests = {request.id: request for request in self.requests(handle)}
        answers = {
            id_: answer_to(requests[id_], entry) for id_, entry in zip(ids, entries, strict=True) if id_ in requests
        }
        if set(ids) - answers.keys() - self._closings(handle, ids).keys():
            raise RunRefusedError(RunRefusal.UNKNOWN_INTERRUPT, "an answer is for no interrupt of this thread")
        taken_ids = {id_ for id_, answer in answers.items() if _is_taken(handle, id_, answer, thread.person)}
        closings = self._closings(handle, ids)
        late_entries = [entry for entry in entries if entry.interrupt_id in closings.keys() - taken_ids]
        notes = [_late_note(closings[entry.interrupt_id], entry) for entry in late_entries]
        last_seq = max((event.seq for event in closings.values()), default=0)
        past = tuple(event for event in self._events(handle) if event.seq <= last_seq)
        return Continuation(handle, past, tuple(filter(None, notes)))

    def _closings(self, handle: TaskHandle, ids: list[str]) -> dict[str, Event]:
        """Return the events that closed requests, by the requests' ids."""
        events = (event for event in self._events(handle) if event.name in _CLOSED)
        answers: list[tuple[Any, Event]] = [(event.data.get("answer"), event) for event in events]
        return {answer["id"]: event for answer, event in answers if isinstance(answer, dict) and answer["id"] in ids}

    def _events(self, handle: TaskHandle) -> list[Event]:
        with JournalReader.open(self._journal, pictures=False) as reader:
            return list(reader.events(handle.task_id))


def _is_taken(handle: TaskHandle, request_id: str, answer: InterruptAnswer, person: str) -> bool:
    """Give an answer to a task; return whether it came in time.

    Raises:
        RunRefusedError: If it does not fit.
    """
    try:
        if answer.is_approval and answer.approved:
            handle.approve(request_id, by=person)
        elif answer.is_approval:
            handle.reject(request_id, answer.reason, by=person)
        elif answer.texts:
            handle.answer(request_id, *answer.texts, by=person)
    except NotWaitingError:
        return False
    except AnswerRefusedError as error:
        raise RunRefusedError(RunRefusal.INVALID_ANSWER, str(error)) from None
    return True


def _late_note(event: Event, entry: ResumeEntry) -> str:
    """Describe the end of a request that was closed otherwise before."""
    answer: Any = event.data["answer"]
    payload = entry.payload if entry.status == "resolved" and isinstance(entry.payload, dict) else {}
    if event.name is EventName.APPROVAL_ANSWERED:
        if answer.get("approved") is (payload.get("approved") is True):
            return ""
        end = {True: "approved", False: "rejected"}.get(answer.get("approved"), "closed without a person")
    else:
        texts = list(answer.get("texts", ()))
        if texts == [payload.get(f"answer_{number}") for number in range(1, len(texts) + 1)]:
            return ""
        end = f"answered with {', '.join(map(repr, texts))}" if texts else "closed without an answer"
    by = f" by {answer['by']}" if answer.get("by") else ""
    return f"Your answer came too late: {entry.interrupt_id} was {end}{by}."


def _request_of(run: RunAgentInput) -> str:
    """Return the text of a run's last message.

    Raises:
        RunRefusedError: If it is not a person's, not text alone, empty, or too long.
    """
    message = run.messages[-1] if run.messages else None
    if not isinstance(message, UserMessage):
        raise RunRefusedError(RunRefusal.INVALID_INPUT, "the last message must be a user's: it is the request")
    parts = message.content
    if not isinstance(parts, str):
        if not all(isinstance(part, TextPart) for part in parts):
            raise RunRefusedError(RunRefusal.INVALID_INPUT, "only texts are taken, and no pictures or files")
        parts = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    if not parts.strip() or len(parts) > _REQUEST_CHARACTERS:
        raise RunRefusedError(RunRefusal.INVALID_INPUT, f"a request has 1 to {_REQUEST_CHARACTERS} characters")
    return parts


def _options_of(run: RunAgentInput) -> dict[str, Any]:
    """Return the fields of the task that `forwardedProps.callboard` sets.

    Raises:
        RunRefusedError: If it sets others, or values of other types.
    """
    options = run.forwarded_props.get("callboard", {}) if isinstance(run.forwarded_props, dict) else {}
    if not isinstance(options, dict) or any(not isinstance(options[name], _OPTIONS.get(name, ())) for name in options):
        raise RunRefusedError(
            RunRefusal.INVALID_INPUT, "forwardedProps.callboard may set target (a text) and dry_run (a truth)"
        )
    return options
