"""Traces: one for each task, in OpenTelemetry's conventions for generative AI.

Task > round or subtask > step > phase > model call or tool call. The traces are built from events. An event marks the
end of a phase or a call and has its duration, so a span is made with both its times once it is over. Tracing never
delays the work itself.
"""

from __future__ import annotations

import collections
import math
import threading
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from callboard.actors.observe import _gen_ai_names as names
from callboard.config import COMPATIBLE, install_command, output_redactor
from callboard.messages import Event, EventName, Outcome, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span, SpanContext, TracerProvider

    from callboard.config import Settings


_REMARKS = {
    EventName.TASK_CANCELLING: ("outcome",),
    EventName.TASK_PAUSED: (),
    EventName.TASK_RESUMED: (),
    EventName.SUBTASK_QUEUED: ("ahead",),
    EventName.STATE_CHANGED: ("source", "target", "by"),
    EventName.STATE_REFUSED: ("source", "target", "by"),
    EventName.PHASE_RETRIED: (),
    EventName.POLICY_DECIDED: ("tool", "verdict"),
    EventName.COMMAND_LATE: ("tool",),
    EventName.COMMAND_IN_DOUBT: ("tool", "probe"),
    EventName.LIST_CUT: ("ran",),
    EventName.LOOP_NOTICED: ("count",),
    EventName.APPROVAL_REQUESTED: (),
    EventName.APPROVAL_ANSWERED: (),
    EventName.QUESTION_ASKED: (),
    EventName.QUESTION_ANSWERED: (),
}
"""Events that become span events, with those of their attributes that hold no text of a task."""

_NO_FAULT = {Outcome.FINISHED, Outcome.CANCELLED, Outcome.REJECTED}
"""Outcomes that are no failure: the work was done, or a person did not want it."""
_CALLERS = 10_000
"""The largest number of remembered submissions whose ``task.submitted`` has not come yet."""


@dataclass(frozen=True)
class _OpenSpan:
    """A span that is not over."""

    span: Span
    start: float
    """The earliest start of a span within it: a duration and the wall clock may differ by microseconds."""


@dataclass(frozen=True)
class _SpanCall:
    """A model call or a tool call.

    Its span waits for that of its phase.
    """

    name: str
    start: float
    end: float
    attributes: dict[str, Any]
    error: str = ""
    outside: bool = False
    """Whether the call left the process, as far as is known: a model's."""


@dataclass
class _Run:
    open: _OpenSpan
    agent: str
    step: _OpenSpan | None = None
    calls: list[_SpanCall] = field(default_factory=list)

    @property
    def inmost(self) -> _OpenSpan:
        return self.step or self.open


@dataclass
class _Task:
    open: _OpenSpan
    runs: dict[str, _Run] = field(default_factory=dict)


class Traces:
    """Makes a trace of each task.

    A subscriber: the tracer provider exports its spans. ``supervisor.subscribe(Traces(provider))`` uses a provider of
    one's own.
    """

    def __init__(self, provider: TracerProvider | None = None, settings: Settings | None = None) -> None:
        """Create the subscriber.

        Args:
            provider: Makes the spans; by default the one that the host program has set for its process.
            settings: Their secrets are redacted in the texts of failures; they also hold the kinds of providers and
                the version of the conventions.

        Raises:
            SettingsError: If OpenTelemetry's interface is not installed.
        """
        try:
            from opentelemetry import context, trace
        except ImportError as error:
            command = install_command("otel")
            msg = f"observe.traces needs opentelemetry-api: {command}"
            raise SettingsError(msg, (command,)) from error
        self._api = trace
        self._no_parent = context.Context()
        self._tracer = trace.get_tracer("callboard", tracer_provider=provider)
        self._settings = settings
        self._conventions = names.CURRENT if settings is None else settings.observe.gen_ai_conventions
        self._redactor = output_redactor(settings)
        self._tasks: dict[str, _Task] = {}
        self._callers: collections.OrderedDict[str, SpanContext] = collections.OrderedDict()
        self._lock = threading.Lock()

    def submitting(self, task_id: str) -> None:
        """Remember the host program's current span when it submits a task.

        The task's trace gets a link to this span.
        """
        caller = self._api.get_current_span().get_span_context()
        if not caller.is_valid:
            return
        with self._lock:
            self._callers[task_id] = caller
            while len(self._callers) > _CALLERS:
                self._callers.popitem(last=False)

    def __call__(self, event: Event) -> None:
        """Receive an event."""
        self.see(event)

    def see(self, event: Event) -> None:  # noqa: C901, PLR0912 - one match, the catalogue
        """Begin or end an event's spans, or add the event.

        Some events are added to a span.
        """
        match event.name:
            case EventName.TASK_SUBMITTED | EventName.TASK_RECOVERED:
                self._task(event)
            case EventName.ROUND_STARTED | EventName.SUBTASK_ASSIGNED | EventName.RUN_RECOVERED:
                self._begin_run(event)
            case EventName.STEP_STARTED:
                self._begin_step(event)
            case EventName.MODEL_ANSWERED | EventName.MODEL_REPAIRED | EventName.MODEL_FAILED:
                self._model_call(event)
            case EventName.JUDGE_ANSWERED if event.data["calls"]:
                self._model_call(event)
            case EventName.COMMAND_ENDED:
                self._tool_call(event)
            case EventName.PHASE_ENDED:
                self._end_phase(event)
            case EventName.STEP_ENDED | EventName.STEP_FAILED:
                self._end_step(event)
            case EventName.ROUND_ENDED | EventName.SUBTASK_ENDED:
                self._end_run(event)
            case EventName.TASK_ENDED:
                self._end_task(event)
            case EventName.AGENT_CRASHED:
                self._crash(event)
            case EventName.SUPERVISOR_STOPPED | EventName.EVENTS_MISSED:
                self._tell_all(event)
            case _ if event.name in _REMARKS:
                self._remark(event)
            case _:
                pass

    # Tasks

    def _task(self, event: Event) -> _Task:
        """Return a task's spans.

        They begin with the first event of the task.
        """
        open_task = self._tasks.get(event.task_id)
        if open_task is not None:
            return open_task
        with self._lock:
            caller = self._callers.pop(event.task_id, None)
        labels = event.data.get("labels")
        attributes = {
            **names.workflow_attributes("task", self._conventions),
            "callboard.task.id": event.task_id,
            "callboard.task.recovered": event.name is not EventName.TASK_SUBMITTED,
            **{f"callboard.label.{key}": value for key, value in (labels if isinstance(labels, dict) else {}).items()},
        }
        span = self._tracer.start_span(
            f"{names.INVOKE_WORKFLOW} task",
            self._no_parent,
            links=[] if caller is None else [self._api.Link(caller)],
            attributes=self._redactor.redact(attributes),
            start_time=_ns(event.at),
        )
        new_task = self._tasks[event.task_id] = _Task(_OpenSpan(span, event.at))
        return new_task

    def _end_task(self, event: Event) -> None:
        task = self._tasks.pop(event.task_id, None)
        if task is None:
            return
        for run in reversed(task.runs.values()):
            self._close_run(run, event.at)
        self._ended(task.open.span, event)
        task.open.span.end(_ns(event.at))

    # Rounds and subtasks

    def _begin_run(self, event: Event) -> None:
        task = self._task(event)
        if event.run_id in task.runs:
            self._add(task.runs[event.run_id].inmost, event, ())  # after a crash
            return
        kind, _, conversation_id = event.agent.partition("/")
        hosts = task.runs.get(f"{event.task_id}~0") or task.runs.get(f"{event.task_id}/0")  # of an earlier journal
        parent = task.open if hosts is None else hosts.open
        if kind == "host":
            task.open.span.set_attribute(names.CONVERSATION, conversation_id)
        attributes = {
            **names.agent_attributes(kind, event.agent, self._conventions),
            "callboard.run.id": event.run_id,
            **_some(event, "round"),
        }
        task.runs[event.run_id] = _Run(
            self._begin(parent, f"{names.INVOKE_AGENT} {kind}", event.at, attributes), event.agent
        )

    def _end_run(self, event: Event) -> None:
        run = self._run(event)
        if run is None:
            return
        del self._tasks[event.task_id].runs[event.run_id]
        self._ended(run.open.span, event)
        self._close_run(run, event.at)

    def _close_run(self, run: _Run, at: float) -> None:
        self._close_step(run, at)
        run.open.span.end(_ns(at))

    def _run(self, event: Event) -> _Run | None:
        task = self._tasks.get(event.task_id)
        return None if task is None else task.runs.get(event.run_id)

    # Steps

    def _begin_step(self, event: Event) -> None:
        run = self._run(event)
        if run is None:
            return
        self._close_step(run, event.at)
        attributes = {"callboard.step": event.step or 0, "callboard.state": event.state}
        run.step = self._begin(run.open, "step", event.at, attributes)

    def _end_step(self, event: Event) -> None:
        run = self._run(event)
        if run is None:
            return
        if event.name is EventName.STEP_FAILED:
            self._fail(run.inmost.span, "step_failed", _first(event.data.get("causes")))
        elif run.step is not None:
            run.step.span.set_attributes(_some(event, "status"))
        self._close_step(run, event.at)

    def _close_step(self, run: _Run, at: float) -> None:
        self._make_calls(run, run.inmost)
        if run.step is not None:
            run.step.span.end(_ns(at))
            run.step = None

    # Phases and calls

    def _end_phase(self, event: Event) -> None:
        run = self._run(event)
        if run is None:
            return
        attributes = {"callboard.phase": event.phase, "callboard.state": event.state}
        phase = self._begin(run.inmost, event.phase, event.at - (event.duration or 0.0), attributes)
        self._make_calls(run, phase, event.at)
        if "error" in event.data:
            self._fail(phase.span, "phase_failed", str(event.data["error"]))
        phase.span.end(_ns(max(phase.start, event.at)))

    def _make_calls(self, run: _Run, parent: _OpenSpan, until: float = math.inf) -> None:
        """Make the spans of the calls that ended within a phase.

        A step's phases come together, at the end of the step. Without `until`, make those of all remaining calls,
        within their step: a crash lost their phase.
        """
        calls, run.calls = run.calls, [call for call in run.calls if call.end > until]
        for call in (call for call in calls if call.end <= until):
            call_span = self._begin(parent, call.name, call.start, call.attributes, outside=call.outside)
            if call.error:
                self._fail(call_span.span, str(call.attributes["error.type"]), call.error)
            call_span.span.end(_ns(max(call_span.start, call.end)))

    def _model_call(self, event: Event) -> None:
        run, data = self._run(event), event.data
        if run is None or event.duration is None:  # an answer from before a crash has no duration
            return
        provider, model = provider_and_model(str(data["model"]), self._settings)
        failed = {EventName.MODEL_FAILED: "error", EventName.MODEL_REPAIRED: "reason"}.get(event.name)
        attributes: dict[str, Any] = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: provider,
            names.REQUEST_MODEL: model,
            names.OUTPUT_TYPE: "json",
        }
        if event.name is not EventName.MODEL_FAILED:
            attributes[names.RESPONSE_MODEL] = data.get("answered_by") or model
        if "cost" in data:
            attributes[names.INPUT_TOKENS] = data["input_tokens"]
            attributes[names.OUTPUT_TOKENS] = data["output_tokens"]
            attributes |= {} if data["cost"] is None else {"callboard.cost": data["cost"]}
        error = "" if failed is None else str(data[failed])
        if failed is not None:
            attributes["error.type"] = "no_answer" if event.name is EventName.MODEL_FAILED else "invalid_answer"
        start = event.at - event.duration
        run.calls.append(_SpanCall(f"{names.CHAT} {model}", start, event.at, attributes, error, outside=True))

    def _tool_call(self, event: Event) -> None:
        run, data = self._run(event), event.data
        if run is None:
            return
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: data["tool"],
            names.TOOL_TYPE: "function",
            names.TOOL_CALL: data["call"],
            "callboard.tool.status": data["status"],
        }
        error = str(data["error"]) if data["status"] == "failure" else ""
        if error:
            attributes["error.type"] = "tool_failure"
        start = event.at - (event.duration or 0.0)
        run.calls.append(_SpanCall(f"{names.EXECUTE_TOOL} {data['tool']}", start, event.at, attributes, error))

    # Span events

    def _remark(self, event: Event) -> None:
        task, run = self._tasks.get(event.task_id), self._run(event)
        where = run.inmost if run is not None else None if task is None else task.open
        if where is not None:
            self._add(where, event, _REMARKS[event.name])

    def _crash(self, event: Event) -> None:
        runs = (run for task in self._tasks.values() for run in task.runs.values() if run.agent == event.agent)
        for run in runs:
            self._fail(run.inmost.span, "agent_crashed", _first(event.data.get("causes")))
            self._add(run.open, event, ("restart",))
            self._close_step(run, event.at)
        if event.agent == "supervisor":
            self._tell_all(event)

    def _tell_all(self, event: Event) -> None:
        """Add a supervisor's event to all tasks.

        If the supervisor is down, their traces end with it.
        """
        for task in self._tasks.values():
            self._add(task.open, event, ("count",))
        if event.name is EventName.EVENTS_MISSED:
            return
        for task in self._tasks.values():
            for run in reversed(task.runs.values()):
                self._close_run(run, event.at)
            task.open.span.end(_ns(event.at))
        self._tasks.clear()

    def _add(self, where: _OpenSpan, event: Event, keys: tuple[str, ...]) -> None:
        where.span.add_event(event.name.value, _some(event, *keys), _ns(max(where.start, event.at)))

    def _begin(
        self, parent: _OpenSpan, name: str, at: float, attributes: Mapping[str, Any], *, outside: bool = False
    ) -> _OpenSpan:
        start = max(parent.start, at)
        kind = self._api.SpanKind.CLIENT if outside else self._api.SpanKind.INTERNAL
        within = self._api.set_span_in_context(parent.span, self._no_parent)
        return _OpenSpan(self._tracer.start_span(name, within, kind, dict(attributes), start_time=_ns(start)), start)

    def _ended(self, span: Span, event: Event) -> None:
        outcome = Outcome(str(event.data["outcome"]))
        span.set_attribute("callboard.outcome", outcome.value)
        if outcome not in _NO_FAULT:
            self._fail(span, outcome.value, _first(event.data.get("causes")))

    def _fail(self, span: Span, what: str, why: str) -> None:
        span.set_attribute("error.type", what)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, self._redactor.text(why)))


def _ns(at: float) -> int:
    return int(at * 1e9)


def _some(event: Event, *keys: str) -> dict[str, Any]:
    values_by_key = {key: event.data.get(key) for key in keys}
    return {f"callboard.{key}": value for key, value in values_by_key.items() if isinstance(value, str | int | float)}


def _first(causes: object) -> str:
    return str(causes[0]) if isinstance(causes, list) and causes else ""


_OURSELVES = "callboard"
_FILES = {"scripted", "recorded"}
"""Forms of a model's name that contain a file."""


def provider_and_model(name: str, settings: Settings | None = None) -> tuple[str, str]:
    """Return the provider of a model, and the model's name there.

    For a model from a file, it is the file's name alone: the path is private.

    Args:
        name: The model's name: ``PROVIDER:MODEL``, ``scripted:FILE``, ``recorded:FILE``, or a host program's own.
        settings: They hold the kind of a provider to which the user gave a name.
    """
    provider, _, model = name.partition(":")
    if not model:
        return _OURSELVES, name
    if provider in _FILES:
        return provider, PurePath(model.partition("?")[0]).name
    provider_settings = None if settings is None else settings.providers.get(settings.provider_of(name))
    kind = (provider_settings.kind if provider_settings is not None else None) or provider
    return names.PROVIDERS.get(kind, provider if kind == COMPATIBLE else kind), model
