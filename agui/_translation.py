"""Events of a task in the words of AG-UI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from callboard.actors.client import report_end
from callboard.agui._interrupts import interrupt_of
from callboard.messages import CommandType, EventName, Outcome, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ag_ui.core import BaseEvent

    from callboard.messages import ApprovalRequest, Event, Question, Task, TaskResult

_TEXT_CHARACTERS = 4_000
_SHORT_CHARACTERS = 500
_OUTPUT_CHARACTERS = 20_000
_MOST_SUBTASKS = 200
"""The most subtasks in the state; further ones are not in it."""
_BEGINS_WORK = {EventName.ROUND_STARTED, EventName.SUBTASK_ASSIGNED, EventName.STEP_STARTED, EventName.RUN_RECOVERED}
_ENDS_WORK = {EventName.ROUND_ENDED, EventName.SUBTASK_ENDED}
_STATUS = {
    EventName.TASK_PAUSED: "paused",
    EventName.TASK_RESUMED: "working",
    EventName.TASK_CANCELLING: "cancelling",
}


class Translator:
    """Translates the events of one run's task.

    It keeps the state that the front end has, and closes all that it opened before the run ends.
    """

    def __init__(self, thread_id: str, run_id: str) -> None:
        self._thread_id = thread_id
        self._run_id = run_id
        self._open_steps: dict[str, str] = {}
        """The names of open steps, by the ids of the agents' runs."""
        self._state: dict[str, Any] = {}
        self._messages = 0

    def started(self) -> BaseEvent:
        """Begin the run."""
        return RunStartedEvent(thread_id=self._thread_id, run_id=self._run_id, protocol_version=PROTOCOL_VERSION)

    def snapshot(self, task: Task, past: Iterable[Event]) -> Iterator[BaseEvent]:
        """Tell the state, after the events of an earlier run."""
        request = one_line(task.request, _SHORT_CHARACTERS)
        self._state = {"taskId": task.id, "request": request, "status": "working", "steps": 0, "subtasks": {}}
        for event in past:
            for _ in self.of(event):
                pass
        self._open_steps.clear()  # they were closed at the end of that run
        yield StateSnapshotEvent(snapshot={"callboard": self._state})

    def of(self, event: Event) -> Iterator[BaseEvent]:
        """Translate an event; most have no counterpart."""
        if event.run_id and event.name in _BEGINS_WORK and event.run_id not in self._open_steps:
            name = f"{event.agent}#{event.number}"
            self._open_steps[event.run_id] = name
            yield StepStartedEvent(step_name=name)
        match event.name:
            case EventName.SUBTASK_QUEUED:
                yield self._changed("status", "queued")
            case EventName.SUBTASK_ASSIGNED:
                yield from self._subtask(event)
            case EventName.SUBTASK_ENDED if str(event.number) in self._state["subtasks"]:
                yield self._changed(f"subtasks/{event.number}/status", str(event.data["outcome"]))
            case EventName.STEP_STARTED:
                yield self._changed("steps", self._state["steps"] + 1)
            case EventName.STEP_ENDED if event.data.get("comment"):
                yield from self.text(str(event.data["comment"]), event.agent.partition("/")[0])
            case EventName.COMMAND_ENDED if event.data["type"] == CommandType.ACTION:
                yield from self._tool_call(event)
            case EventName.TASK_PAUSED | EventName.TASK_RESUMED | EventName.TASK_CANCELLING:
                yield self._changed("status", _STATUS[event.name])
            case _:
                pass
        if event.name in _ENDS_WORK and (name := self._open_steps.pop(event.run_id, "")):
            yield StepFinishedEvent(step_name=name)

    def _changed(self, path: str, value: Any) -> BaseEvent:
        *parents, key = path.split("/")
        part = self._state
        for parent in parents:
            part = part[parent]
        verb = "replace" if key in part else "add"
        part[key] = value
        return StateDeltaEvent(delta=[{"op": verb, "path": f"/callboard/{path}", "value": value}])

    def _subtask(self, event: Event) -> Iterator[BaseEvent]:
        if self._state["status"] == "queued":
            yield self._changed("status", "working")
        if len(self._state["subtasks"]) < _MOST_SUBTASKS:
            request = one_line(str(event.data["request"]), _SHORT_CHARACTERS)
            subtask = {"agent": event.agent, "request": request, "status": "working"}
            yield self._changed(f"subtasks/{event.number}", subtask)

    def _tool_call(self, event: Event) -> Iterator[BaseEvent]:
        call_id, status, error = (str(event.data[name]) for name in ("call", "status", "error"))
        yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=str(event.data["tool"]))
        yield ToolCallEndEvent(tool_call_id=call_id)
        content = one_line(f"{status}: {error}" if error else status, _TEXT_CHARACTERS)
        yield ToolCallResultEvent(message_id=self._message_id(), tool_call_id=call_id, content=content, role="tool")

    def text(self, text: str, name: str = "callboard") -> Iterator[BaseEvent]:
        """Tell a text, cut to a length."""
        message_id = self._message_id()
        short_text = text if len(text) <= _OUTPUT_CHARACTERS else f"{text[:_OUTPUT_CHARACTERS]}…"
        yield TextMessageStartEvent(message_id=message_id, role="assistant", name=name)
        yield TextMessageContentEvent(message_id=message_id, delta=short_text)
        yield TextMessageEndEvent(message_id=message_id)

    def _message_id(self) -> str:
        self._messages += 1
        return f"{self._run_id}~{self._messages}"

    def interrupted(self, requests: Sequence[ApprovalRequest | Question]) -> Iterator[BaseEvent]:
        """End the run with the requests that wait for a person."""
        yield self._changed("status", "input_required")
        yield from self._closed()
        outcome = RunFinishedInterruptOutcome(interrupts=[interrupt_of(request) for request in requests])
        yield self._finished(outcome)

    def ended(self, result: TaskResult, workspace: Path | None) -> Iterator[BaseEvent]:
        """End the run with the result of its task.

        All but a success and a cancel is an error.
        """
        report = report_end(result, workspace)
        output = report.others_texts.output
        text = output if isinstance(output, str) else "" if output is None else json.dumps(output, ensure_ascii=False)
        yield from self.text("\n\n".join(filter(None, (f"{report.summary}.", text or report.others_texts.output_part))))
        yield self._changed("status", result.outcome.value)
        yield from self._closed()
        if result.outcome in {Outcome.FINISHED, Outcome.CANCELLED}:
            is_success = result.outcome is Outcome.FINISHED
            outcome = RunFinishedSuccessOutcome() if is_success else RunFinishedCancelledOutcome()
            yield self._finished(outcome, report.model_dump(mode="json", exclude={"artifacts", "result_part"}))
        else:
            reasons = "; ".join(report.others_texts.causes) or report.summary
            yield self.failed(result.outcome.value, reasons)

    def failed(self, code: str, message: str) -> BaseEvent:
        """End the run with an error."""
        return RunErrorEvent(code=code, message=one_line(message, _TEXT_CHARACTERS))

    def _finished(self, outcome: Any, result: Any = None) -> BaseEvent:
        return RunFinishedEvent(thread_id=self._thread_id, run_id=self._run_id, outcome=outcome, result=result)

    def _closed(self) -> Iterator[BaseEvent]:
        for name in self._open_steps.values():
            yield StepFinishedEvent(step_name=name)
        self._open_steps.clear()
