"""The metrics: counters, histograms and gauges, fed by the events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.config import install_command
from callboard.messages import EventName, Fact, Outcome, SettingsError, phases_of

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

    Table = dict[str, tuple[str, tuple[str, ...]]]

COUNTERS: Table = {
    "tasks_submitted": ("Tasks that were accepted.", ()),
    "tasks_recovered": ("Tasks of another process that were resumed from the journal.", ()),
    "tasks": ("Tasks that are over.", ("outcome",)),
    "subtasks": ("Subtasks that are over.", ("agent", "outcome")),
    "steps": ("Steps that ran.", ("agent",)),
    "steps_failed": ("Steps that failed.", ("agent",)),
    "model_calls": ("Calls of models.", ("agent", "model", "result")),
    "model_tokens": ("Input and output tokens of models.", ("agent", "model", "direction")),
    "model_cost": ("Cost of the model calls with a known price.", ("agent", "model")),
    "model_calls_unpriced": ("Answers with an unknown price.", ("agent", "model")),
    "tool_calls": ("Tool calls.", ("tool", "status")),
    "policy_verdicts": ("Verdicts of the policy on actions.", ("verdict",)),
    "approvals": ("Approvals that were settled.", ("answer",)),
    "agent_crashes": ("Agents that crashed or hung.", ("agent",)),
    "runs_stalled": ("Runs that nothing would have continued.", ("agent",)),
    "moves_refused": ("Illegal moves of a state machine.", ("agent",)),
    "messages_stale": ("Messages that came too late, and were dropped.", ()),
    "journal_failures": ("Failures to write the journal.", ()),
    "thread_blocked": ("Times that a thread that must not block was blocked.", ()),
}
"""The counters, and their labels."""

HISTOGRAMS: Table = {
    "task_seconds": ("From a task's submission to its end.", ()),
    "step_seconds": ("Steps that ran.", ("agent",)),
    "phase_seconds": ("Phases of steps.", ("agent", "phase")),
    "model_call_seconds": ("Calls of models.", ("agent", "model")),
    "tool_call_seconds": ("Tool calls.", ("tool",)),
}
"""The histograms of durations, and their labels."""

GAUGES = {
    "tasks_running": "Tasks that are not over.",
    "subtasks_queued": "Subtasks that wait for their target.",
    "approvals_open": "Approvals that wait for a person.",
    "questions_open": "Questions that wait for a person.",
    "targets_abandoned": "Targets with a call that does not return.",
}
"""The gauges."""

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_COUNTED = {
    EventName.TASK_SUBMITTED: "tasks_submitted",
    EventName.TASK_RECOVERED: "tasks_recovered",
    EventName.TASK_ENDED: "tasks",
    EventName.SUBTASK_ENDED: "subtasks",
    EventName.STEP_ENDED: "steps",
    EventName.STEP_FAILED: "steps_failed",
    EventName.COMMAND_ENDED: "tool_calls",
    EventName.POLICY_DECIDED: "policy_verdicts",
    EventName.APPROVAL_ANSWERED: "approvals",
    EventName.AGENT_CRASHED: "agent_crashes",
    EventName.RUN_STALLED: "runs_stalled",
    EventName.STATE_REFUSED: "moves_refused",
    EventName.MESSAGE_STALE: "messages_stale",
    EventName.JOURNAL_FAILED: "journal_failures",
    EventName.THREAD_BLOCKED: "thread_blocked",
}
_TIMED = {
    EventName.TASK_ENDED: "task_seconds",
    EventName.STEP_ENDED: "step_seconds",
    EventName.PHASE_ENDED: "phase_seconds",
    EventName.COMMAND_ENDED: "tool_call_seconds",
}
_CALLS = {
    EventName.MODEL_ANSWERED: "answered",
    EventName.MODEL_REPAIRED: "sent_back",
    EventName.MODEL_FAILED: "failed",
}
_BEGINS = {
    EventName.TASK_SUBMITTED: "tasks_running",
    EventName.TASK_RECOVERED: "tasks_running",
    EventName.SUBTASK_QUEUED: "subtasks_queued",
    EventName.APPROVAL_REQUESTED: "approvals_open",
    EventName.QUESTION_ASKED: "questions_open",
    EventName.TARGET_ABANDONED: "targets_abandoned",
}
_ENDS = {
    EventName.SUBTASK_ASSIGNED: "subtasks_queued",
    EventName.SUBTASK_ENDED: "subtasks_queued",
    EventName.STEP_STARTED: "subtasks_queued",  # no other event of a round shows it
    EventName.APPROVAL_ANSWERED: "approvals_open",
    EventName.QUESTION_ANSWERED: "questions_open",
    EventName.TARGET_FREED: "targets_abandoned",
}


class Metrics:
    """The metrics of one supervisor, in a registry of their own.

    A sink of the event stream: it never blocks. The stream calls `see` on one thread at a time; any thread may call
    `text`.
    """

    def __init__(self) -> None:
        """Create the metrics.

        Raises:
            SettingsError: If prometheus_client is not installed.
        """
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ImportError as error:
            command = install_command("prometheus")
            msg = f"observe.metrics needs prometheus_client: {command}"
            raise SettingsError(msg, (command,)) from error
        registry = self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {
            name: Counter(name, what, labels, namespace="callboard", registry=registry)
            for name, (what, labels) in COUNTERS.items()
        }
        self._histograms: dict[str, Histogram] = {
            name: Histogram(name, what, labels, namespace="callboard", registry=registry, buckets=_SECONDS)
            for name, (what, labels) in HISTOGRAMS.items()
        }
        self._now: dict[str, dict[str, str]] = {name: {} for name in GAUGES}  # the present values, each with its task
        for name, what in GAUGES.items():
            Gauge(name, what, namespace="callboard", registry=registry).set_function(self._now[name].__len__)
        for outcome in Outcome:
            self._counters["tasks"].labels(outcome.value)  # there from the beginning: a rate needs its zero

    def text(self) -> str:
        """Format all metrics in Prometheus' text format."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry).decode()

    def see(self, event: Fact) -> None:
        """Count an event, and the phases of a step that ended."""
        name = event.name
        for phase in phases_of(event):
            self.see(phase)
        if name in _COUNTED:
            counter = _COUNTED[name]
            self._count(counter, *(_label(event, label) for label in COUNTERS[counter][1]))
        if name in _TIMED:
            histogram = _TIMED[name]
            self._time(histogram, event, *(_label(event, label) for label in HISTOGRAMS[histogram][1]))
        if name in _CALLS:
            self._see_call(event)
        if name is EventName.JUDGE_ANSWERED:
            self._see_judge(event)
        if name in _BEGINS:
            self._now[_BEGINS[name]][_key(event, _BEGINS[name])] = event.task_id
        if name in _ENDS:
            self._now[_ENDS[name]].pop(_key(event, _ENDS[name]), None)
        if name is EventName.TASK_ENDED:
            self._forget(event.task_id)

    def _forget(self, task_id: str) -> None:
        for tasks in self._now.values():
            for key in [key for key, task in tasks.items() if task == task_id]:
                del tasks[key]

    def _see_call(self, event: Fact) -> None:
        if event.duration is None:
            return  # an answer from before a crash; it was counted then
        kind, data = _label(event, "agent"), event.data
        model = str(data["model"])
        self._count("model_calls", kind, model, _CALLS[event.name])
        self._time("model_call_seconds", event, kind, model)
        if event.name is EventName.MODEL_FAILED and "cost" not in data:
            return
        self._see_usage(event)

    def _see_judge(self, event: Fact) -> None:
        """Count a judge's calls with an answer; others have own events."""
        calls, model = event.data["calls"], str(event.data["model"])
        if calls:
            self._count("model_calls", _label(event, "agent"), model, "judged", amount=calls)
            self._see_usage(event, calls)

    def _see_usage(self, event: Fact, calls: object = 1) -> None:
        """Count the tokens and the cost of model calls."""
        kind, data = _label(event, "agent"), event.data
        model = str(data["model"])
        for direction in ("input", "output"):
            self._count("model_tokens", kind, model, direction, amount=data[f"{direction}_tokens"])
        if data["cost"] is None:
            self._count("model_calls_unpriced", kind, model, amount=calls)
        else:
            self._count("model_cost", kind, model, amount=data["cost"])

    def _count(self, name: str, *labels: str, amount: object = 1) -> None:
        counter = self._counters[name]
        number = amount if isinstance(amount, int | float) else 0
        (counter.labels(*labels) if labels else counter).inc(max(0, number))

    def _time(self, name: str, event: Fact, *labels: str) -> None:
        histogram = self._histograms[name]
        (histogram.labels(*labels) if labels else histogram).observe(event.duration or 0.0)


def _label(event: Fact, name: str) -> str:
    match name:
        case "agent":
            return event.agent.partition("/")[0]
        case "phase":
            return event.phase
        case "answer":
            answer = event.data.get("answer")
            verdict = answer if isinstance(answer, dict) else {}
            return next((key for key in ("withdrawn", "expired", "approved") if verdict.get(key)), "rejected")
        case _:
            return str(event.data[name])


def _key(event: Fact, gauge: str) -> str:
    match gauge:
        case "tasks_running":
            return event.task_id
        case "subtasks_queued":
            return event.run_id
        case "targets_abandoned":
            return event.agent
        case _:
            content = event.data.get("request") or event.data.get("answer")
            return str(content.get("id", "")) if isinstance(content, dict) else ""
