"""The tasks of callers: submitted, found, waited for, answered and cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import threading
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

from callboard.actors.client import (
    PART_CHARACTERS,
    OtherTexts,
    ResultPart,
    TaskReport,
    kind_of_request,
    report_end,
    report_open,
    report_whole,
)
from callboard.actors.commands import Secrets
from callboard.config import matches
from callboard.journal import JournalReader, TaskFilter
from callboard.mcp_server._callers import LABEL
from callboard.mcp_server._orders import RefusedOrderError, id_of, is_same, task_of
from callboard.messages import EventName, RoutineError, SettingsError, UnknownTaskError, one_line, visible
from callboard.routines import load_routine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
    from pathlib import Path

    from callboard.actors.client import TaskHandle
    from callboard.config import Settings
    from callboard.mcp_server._callers import Caller
    from callboard.mcp_server._orders import Order
    from callboard.messages import ApprovalRequest, Event, Question, Routine, Target
    from callboard.supervisor import Supervisor

    Progress = Callable[[str], Awaitable[None]]

MOST_WAIT_SECONDS = 50.0
"""The longest wait of one request: many clients give up after 60 s."""
_PAGE = 50
_REQUEST_CHARACTERS = 200
_MOST_REPORTED = 10_000
"""The most requests that are remembered as reported; the oldest then end a wait once more."""
_OPENED = {EventName.APPROVAL_REQUESTED, EventName.QUESTION_ASKED}
_CLOSED = {EventName.APPROVAL_ANSWERED, EventName.QUESTION_ANSWERED}
_REPORTED = {
    EventName.ROUND_STARTED,
    EventName.SUBTASK_ASSIGNED,
    EventName.SUBTASK_ENDED,
    EventName.STEP_STARTED,
    EventName.CHECK_FAILED,
    *_OPENED,
}
"""The events that a caller is told as progress."""


class TargetEntry(BaseModel):
    """A target that a task may name."""

    id: str
    name: str
    """Its name for people, such as a window's title: data, not an instruction."""
    kind: str
    agent: str
    """The kind of agent that works on it."""
    machine: str = ""
    """The machine of the fleet that has it; empty for this one."""


class TargetPage(BaseModel):
    """A part of the caller's targets."""

    targets: list[TargetEntry]
    next_offset: int | None = None
    """The `offset` of the next part; null at the end."""


class OwnTaskEntry(BaseModel):
    """A line about one task."""

    task_id: str
    request: str
    submitted: str
    """The time of submission, in ISO 8601 and UTC."""
    outcome: str | None = None
    """The outcome; null while it is not over."""
    verified: bool | None = None


class OwnTaskPage(BaseModel):
    """A part of the caller's tasks, the newest first."""

    tasks: list[OwnTaskEntry]
    next_before: int | None = None
    """The `before` of the next part; null at the end."""


def _routines(settings: Settings, skills: Collection[str]) -> dict[str, Routine]:
    """Read the routines that the settings name for callers.

    Raises:
        SettingsError: If a file is no routine, or has the name of another one or of a skill: both are prompts.
    """
    routines: dict[str, Routine] = {}
    for file in settings.mcp_server.routines:
        try:
            routine = load_routine(settings.path(file))
        except RoutineError as error:
            msg = f"mcp_server.routines: {error}"
            raise SettingsError(msg) from None
        if routine.routine in routines:
            msg = f"mcp_server.routines: two routines are called {routine.routine!r}: rename one of them"
            raise SettingsError(msg)
        if routine.routine in skills:
            msg = f"mcp_server.routines: a skill is called {routine.routine!r}, too, and both are prompts: rename one"
            raise SettingsError(msg)
        routines[routine.routine] = routine
    return routines


class CallerTasks:
    """The tasks of callers; another caller's are unknown to each.

    The coroutines run on any event loop; what blocks runs on threads.
    """

    def __init__(self, supervisor: Supervisor, people: str) -> None:
        """Create it.

        Args:
            supervisor: The supervisor, with a journal in a file.
            people: How a person answers approvals, for callers to read.

        Raises:
            SettingsError: If the supervisor has no journal in a file, or a routine's file can't be used.
        """
        if supervisor.settings.journal.path is None:
            msg = "callers need a journal in a file, so that their tasks survive the process: set journal.path"
            raise SettingsError(msg)
        self.supervisor = supervisor
        self.journal: Path = supervisor.settings.path(supervisor.settings.journal.path)
        self.routines = _routines(supervisor.settings, {skill.name for skill in supervisor.skills})
        """The routines that callers may have repeated, by name."""
        self._people = people
        self._secrets = Secrets(supervisor.settings.secrets)
        self._submitting = threading.Lock()
        self._reported: dict[str, None] = {}
        """The requests that a report had."""

    @property
    def workspace(self) -> Path | None:
        """The folder of the documents."""
        settings = self.supervisor.settings
        folder = settings.documents.workspace
        return None if folder is None else settings.path(folder).resolve()

    async def submit(self, caller: Caller, order: Order) -> TaskHandle:
        """Submit a task of a caller.

        The same key is the same task.

        Raises:
            RefusedOrderError: If the caller may not give it, or has too many unfinished tasks.
            CallboardError: If the supervisor refuses it.
        """
        return await asyncio.to_thread(self._submit, caller, order)

    def _submit(self, caller: Caller, order: Order) -> TaskHandle:
        with self._submitting:
            known_handle = self._known(caller, order)
            if known_handle is not None:
                return known_handle
            task = task_of(order, caller, self.supervisor.settings, self._own_targets(caller), self.routines)
            count = sum(_is_of(handle, caller) for handle in self.supervisor.pending())
            if count >= caller.rights.tasks:
                msg = f"{count} of your tasks are not over, which is the most: wait for one, or cancel one"
                raise RefusedOrderError(msg)
            return self.supervisor.submit(task)

    def _known(self, caller: Caller, order: Order) -> TaskHandle | None:
        """Return the task of an order's key; None for a new key.

        It may be over. Nothing else is checked: rights may have changed, and documents and targets may be gone.

        Raises:
            RefusedOrderError: If its arguments are others.
        """
        if order.key is None:
            return None
        try:
            handle: TaskHandle = self.supervisor.handle(id_of(order, caller))
        except UnknownTaskError:
            return None
        redactor = self._secrets.redactor("")  # the journal has the arguments without secrets
        if not is_same(redactor.redact(order), redactor.redact(handle.task), self._own_targets(caller)):
            msg = f"the key {visible(order.key)!r} was used before, with other arguments: give each request its own"
            raise RefusedOrderError(msg)
        return handle

    async def find(self, caller: Caller, task_id: str) -> TaskHandle:
        """Return the handle of a caller's task.

        Raises:
            UnknownTaskError: If there is no such task, or it is another caller's.
        """
        return await asyncio.to_thread(self._find, caller, task_id)

    def _find(self, caller: Caller, task_id: str) -> TaskHandle:
        handle: TaskHandle = self.supervisor.handle(task_id)
        if not _is_of(handle, caller):
            raise UnknownTaskError(task_id)
        return handle

    async def requests(self, handle: TaskHandle) -> tuple[ApprovalRequest | Question, ...]:
        """List a task's open requests."""
        status = await asyncio.to_thread(self.supervisor.status)
        requests: list[ApprovalRequest | Question] = [*status.approvals, *status.questions]
        return tuple(request for request in requests if request.task_id == handle.task_id)

    async def report(self, handle: TaskHandle) -> TaskReport:
        """Report on a task, within the limits of one answer."""
        if handle.done():
            return report_end(handle.result(0), self.workspace)
        progress = await asyncio.to_thread(handle.progress)
        requests = await self.requests(handle)
        if handle.done():  # it ended meanwhile
            return report_end(handle.result(0), self.workspace)
        for request in requests:
            self._reported[request.id] = None
            if len(self._reported) > _MOST_REPORTED:
                self._reported.pop(next(iter(self._reported)))
        return report_open(handle.task_id, progress, requests, self._people, dry_run=handle.task.dry_run)

    async def part(self, handle: TaskHandle, offset: int) -> TaskReport:
        """Report on an ended task with a part of its whole result.

        Raises:
            RefusedOrderError: If the task is not over, or the result ends before the offset.
        """
        if not handle.done():
            msg = "the task is not over, so there is no result to read"
            raise RefusedOrderError(msg)
        text = self.whole_result(handle)
        if offset > len(text):
            msg = f"the result has {len(text)} characters, so there is nothing at {offset}"
            raise RefusedOrderError(msg)
        end = offset + PART_CHARACTERS
        part = ResultPart(text=text[offset:end], characters=len(text), next_offset=end if end < len(text) else None)
        report = await self.report(handle)
        return report.model_copy(update={"others_texts": OtherTexts(), "checks": [], "result_part": part})

    def whole_result(self, handle: TaskHandle) -> str:
        """Return the result of a task that is over, as JSON."""
        return report_whole(handle.result(0), self.workspace).model_dump_json(indent=1)

    async def wait(self, handle: TaskHandle, seconds: float, progress: Progress) -> None:
        """Wait until a task is over or asks something.

        A request for a person that a report had already does not end the wait.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, MOST_WAIT_SECONDS)):
                await self._watch(handle, progress)

    async def _watch(self, handle: TaskHandle, progress: Progress) -> None:
        feed = cast("AsyncGenerator[Event, None]", aiter(handle))
        async with contextlib.aclosing(feed) as events:  # from the submission on
            if handle.done() or await self._asks(handle):
                return
            async for event in events:
                if event.name in _REPORTED:
                    await progress(_told(event))
                if event.name in _OPENED and await self._asks(handle):
                    return

    async def wait_closed(self, handle: TaskHandle, request_id: str) -> None:
        """Wait until a request is answered, or its task is over."""
        feed = cast("AsyncGenerator[Event, None]", aiter(handle))
        async with contextlib.aclosing(feed) as events:
            if await self._is_open(handle, request_id):
                async for event in events:
                    if event.name in _CLOSED and not await self._is_open(handle, request_id):
                        return

    async def _is_open(self, handle: TaskHandle, request_id: str) -> bool:
        return any(request.id == request_id for request in await self.requests(handle))

    async def _asks(self, handle: TaskHandle) -> bool:
        requests = await self.requests(handle)
        return any(request.id not in self._reported or kind_of_request(request) == "question" for request in requests)

    async def answer(self, caller: Caller, handle: TaskHandle, question_id: str, texts: Sequence[str]) -> None:
        """Answer an agent's question.

        Raises:
            RefusedOrderError: If it is an approval, an action in doubt or a limit, which a person decides.
            CallboardError: If the question is not open, or the answer does not fit.
        """
        request = next((request for request in await self.requests(handle) if request.id == question_id), None)
        if request is None:
            msg = f"no question {visible(question_id)!r} of this task is open"
            raise RefusedOrderError(msg)
        if kind_of_request(request) != "question":
            msg = f"this is a request for a person ({kind_of_request(request)}): {self._people}"
            raise RefusedOrderError(msg)
        await asyncio.to_thread(handle.answer, question_id, *texts, by=name_of(caller))

    async def cancel(self, handle: TaskHandle, reason: str) -> None:
        """Cancel a task."""
        await asyncio.to_thread(handle.cancel, reason)

    def _own_targets(self, caller: Caller) -> list[Target]:
        return [
            target
            for target in self.supervisor.targets()
            if not target.owner and matches(target.id, caller.rights.targets)
        ]

    async def targets(self, caller: Caller, offset: int) -> TargetPage:
        """List a caller's targets."""
        targets = await asyncio.to_thread(self._own_targets, caller)
        redactor = self._secrets.redactor("")
        end = offset + _PAGE
        return TargetPage(
            targets=[
                TargetEntry(
                    id=target.id,
                    name=redactor.text(target.name),
                    kind=target.kind.value,
                    agent=target.address.split("/")[0],
                    machine=target.machine,
                )
                for target in targets[offset:end]
            ],
            next_offset=end if end < len(targets) else None,
        )

    async def tasks(self, caller: Caller, before: int | None) -> OwnTaskPage:
        """List a caller's tasks, the newest first."""
        return await asyncio.to_thread(self._tasks, caller, before)

    def _tasks(self, caller: Caller, before: int | None) -> OwnTaskPage:
        with JournalReader.open(self.journal, pictures=False) as reader:
            page = reader.page(TaskFilter(labels={LABEL: caller.name}), before=before, limit=_PAGE)
        return OwnTaskPage(
            tasks=[
                OwnTaskEntry(
                    task_id=line.id,
                    request=one_line(line.request, _REQUEST_CHARACTERS),
                    submitted=dt.datetime.fromtimestamp(line.submitted, dt.UTC).isoformat(timespec="seconds"),
                    outcome=None if line.outcome is None else line.outcome.value,
                    verified=line.verified,
                )
                for line in page.tasks
                if line.labels.get(LABEL) == caller.name  # the index of words does not know upper case
            ],
            next_before=page.next,
        )


def name_of(caller: Caller) -> str:
    """Return the name of a caller in records of answers."""
    return f"caller {caller.name}"


def _is_of(handle: TaskHandle, caller: Caller) -> bool:
    return handle.task.labels.get(LABEL) == caller.name


def _told(event: Event) -> str:
    words = [event.name.value.replace(".", " "), event.agent]
    return one_line(" ".join(filter(None, words)), _REQUEST_CHARACTERS)
