"""Record the notes, files and progress of a running call."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from callboard.actors.processing._approval_requests import question
from callboard.journal import Row
from callboard.messages import EventName, Foreseen, Note, Noted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import AskedQuestion, Command


class CallRecord:
    """The record of one call.

    It is a `CallKeeper` whose methods block the tool's thread.
    """

    def __init__(self, context: Context, run: Run, command: Command) -> None:
        self._context = context
        self._run = run
        self._command = command
        self.session = run.assign.session or run.assign.task_id
        self._question_count = 0
        self._kept_paths: set[str] = set()

    def foresee(self, path: str, before: str, after: str, answer: JsonValue) -> None:
        """Record a file write ahead.

        Its outcome is then known after a crash.
        """
        has_version = path in self._kept_paths
        self._kept_paths.discard(path)  # the next write of this call may find the bytes of this one
        note = Foreseen(
            call_id=self._command.call_id, path=path, before=before, after=after, answer=answer, kept=has_version
        )
        services, task_id = self._context.services, self._command.task_id
        services.may_change.foresee(task_id, note)
        services.own_files.foresee(task_id, note)
        self._context.keep_now(self._run, note)

    def keep_version(self, name: str, path: str, data: bytes) -> None:
        """Keep the bytes of a file beside the journal.

        They are not kept if the task may not change the file, or wrote them itself.
        """
        services, task_id = self._context.services, self._command.task_id
        versions = services.journal.versions
        if versions is not None and services.may_change.keeps(task_id, name, path, data):
            versions.keep(task_id, data)
            self._kept_paths.add(path)

    def post(self, text: str) -> None:
        """Post a note of the tool to the blackboard."""
        command, services = self._command, self._context.services
        note = Note(task_id=command.task_id, text=text, author=command.tool, call_id=command.call_id)
        redacted = services.secrets.redact(command.task_id, note)
        services.journal.keep_now(Row(services.clock.steady(), command.task_id, "", redacted))

    def note(self, text: str) -> None:
        """Record a note about a call.

        After a crash it helps to decide whether the call ran.
        """
        self._context.keep_now(self._run, Noted(call_id=self._command.call_id, text=text))

    def progress(self, text: str, share: float | None) -> None:
        """Emit the progress of the call."""
        command = self._command
        redacted_text = self._context.services.secrets.redactor(command.task_id).text(text)
        data = {} if share is None else {"share": share}
        self._context.tell(
            EventName.TOOL_PROGRESS, self._run, call=command.call_id, tool=command.tool, text=redacted_text, **data
        )

    def artifact(self, content: bytes, suffix: str, name: str = "") -> Path:
        """Store a file beside the journal."""
        command = self._command
        return self._context.services.journal.artifacts.keep(command.task_id, command.call_id, content, suffix, name)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Suspend the time limits of the call and its step."""
        lease = self._context.lease
        of_call = None if lease.guard is None else lease.guard.limit
        limits = [limit for limit in (self._context.meter.limit, of_call) if limit is not None]
        for limit in limits:
            limit.hold()
        lease.asking = True
        try:
            yield
        finally:
            lease.asking = False
            for limit in limits:
                limit.release()

    async def ask(self, questions: tuple[AskedQuestion, ...]) -> tuple[str, ...] | None:
        """Ask a person with the clocks of call, step and task suspended."""
        assign, services = self._run.assign, self._context.services
        redactor = services.secrets.redactor(assign.task_id)
        self._question_count += 1
        redacted = tuple(redactor.redact(plain_question) for plain_question in questions)
        asked_question = question(
            self._context, self._run, redacted, f"{self._command.call_id}~ask-{self._question_count}"
        )
        with self.waiting():
            answer = await services.people.ask(asked_question)
        if answer is None:
            return None
        if any(redactor.text(text) != text for text in answer.texts):
            msg = "the answer contains a secret of the task or the settings"
            raise ValueError(msg)
        return answer.texts
