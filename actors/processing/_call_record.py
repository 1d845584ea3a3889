"""What a tool says during its call: kept in the journal, or told by an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.journal import Row
from callboard.messages import EventName, Foreseen, Note, Noted

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Command


class CallRecord:
    """The record of one call. A `CallKeeper`; its methods run on the tool's thread, and block."""

    def __init__(self, context: Context, run: Run, command: Command) -> None:
        self._context = context
        self._run = run
        self._command = command
        self.session = run.assign.session or run.assign.task_id

    def foresee(self, path: str, before: str, after: str, answer: JsonValue) -> None:
        """Note what the call is about to write, so that a crash leaves no doubt."""
        note = Foreseen(call_id=self._command.call_id, path=path, before=before, after=after, answer=answer)
        self._context.keep_now(self._run, note)

    def post(self, text: str) -> None:
        """Post a note of the tool to the blackboard."""
        command, services = self._command, self._context.services
        note = Note(task_id=command.task_id, text=text, author=command.tool, call_id=command.call_id)
        redacted = services.secrets.redact(command.task_id, note)
        services.journal.keep_now(Row(services.clock.steady(), command.task_id, "", redacted))

    def note(self, text: str) -> None:
        """Note what tells after a crash whether the call was done."""
        self._context.keep_now(self._run, Noted(call_id=self._command.call_id, text=text))

    def progress(self, text: str, share: float | None) -> None:
        """Tell how far the call is."""
        command = self._command
        shown = self._context.services.secrets.redactor(command.task_id).text(text)
        told = {} if share is None else {"share": share}
        self._context.tell(
            EventName.TOOL_PROGRESS, self._run, call=command.call_id, tool=command.tool, text=shown, **told
        )

    def artifact(self, content: bytes, suffix: str) -> Path:
        """Keep a file beside the journal."""
        command = self._command
        return self._context.services.journal.artifacts.keep(command.task_id, command.call_id, content, suffix)
