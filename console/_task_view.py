"""A task as its page shows it.

It has subtasks in a tree with their times, steps, calls and requests.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from callboard.config import term, text
from callboard.console._file_changes import changed_files
from callboard.history import (
    Tone,
    agent_label,
    lines_of,
    lines_of_reply,
    lines_of_result,
    status_words,
    step_checks,
    step_words,
)
from callboard.messages import (
    ApprovalRequest,
    Assign,
    Event,
    EventName,
    Outcome,
    Question,
    StepDone,
    number_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from callboard.history import Entry, Line, TaskHistory
    from callboard.messages import Action, CommandResult, StepRecord, Timestamp

UNREADABLE = (ArithmeticError, LookupError, TypeError, ValueError)
"""The errors of facts that no version of this program writes."""
MOST_ENTRIES = 200
"""The most entries of a task that a page shows; the latest are shown, and the earlier ones by pages of their own."""

SCALE = 1000
"""The width of the time bars' drawing, in its own units."""


@dataclass(frozen=True)
class CallView:
    """A call of a tool, with its result and the rules' verdict."""

    tool: str
    arguments: str
    """Its arguments as JSON, complete."""
    control: str
    lines: tuple[Line, ...]
    verdicts: tuple[str, ...]
    pictures: tuple[str, ...] = ()
    """The digests of the pictures in its answer."""


@dataclass(frozen=True)
class EntryView:
    """One entry of a task's history."""

    number: int
    at: Timestamp
    run_id: str
    agent: str
    head: Line
    lines: tuple[Line, ...]
    step: int = 0
    """The number of the step; 0 for another entry."""
    state: str = ""
    """The state in which the step ran."""
    before: str = ""
    """The digest of the picture that the agent saw; empty without one."""
    after: str = ""
    """The digest of the picture that it saw next."""
    calls: tuple[CallView, ...] = ()
    checks: tuple[Line, ...] = ()
    usage: str = ""
    asks: ApprovalRequest | Question | None = None
    """The request, if this is one that is open."""


@dataclass
class RunView:
    """A HostAgent's rounds or a subtask, as a row of the tree."""

    run_id: str
    number: int
    address: str
    request: str
    depth: int
    state: str = ""
    """The latest state of the agent's machine."""
    outcome: Outcome | None = None
    begun: Timestamp | None = None
    ended: Timestamp | None = None
    steps: int = 0
    machine: str = ""
    after: tuple[int, ...] = ()
    bar: tuple[int, int, int] = (0, 0, 0)
    """The begin of its wait, the begin of its work, and its end, on the scale of the drawing."""

    @property
    def agent(self) -> str:
        """The agent and its machine, for people."""
        return agent_label(self.address, self.machine)

    @property
    def tone(self) -> Tone:
        """The meaning of its state."""
        if self.outcome is None:
            return Tone.WAITING if self.begun is None else Tone.PLAIN
        return Tone.GOOD if self.outcome is Outcome.FINISHED else Tone.BAD

    @property
    def words(self) -> str:
        """Its outcome, or what it does."""
        if self.outcome is not None:
            return term("outcome", self.outcome)
        return text("member_waits" if self.begun is None else "member_works")


@dataclass
class TaskView:
    """A task as its page shows it."""

    history: TaskHistory
    runs: list[RunView]
    entries: list[EntryView]
    earlier: int
    """The number of entries before those that are shown."""
    span: float
    """The time of the bars' scale, in seconds."""
    files: list[str] = field(default_factory=list)


def task_view(history: TaskHistory, now: Timestamp, *, until: int | None = None, most: int = MOST_ENTRIES) -> TaskView:
    """Make the view of a task.

    Args:
        history: The task.
        now: The present, for work that is not over.
        until: The number of the first entry after those that are shown; None for the latest.
        most: The most entries that are shown.
    """
    runs = _runs(history, now)
    last = len(history.entries) if until is None else max(0, min(until, len(history.entries)))
    first = max(0, last - most)
    facts = _StepFacts(history)
    entries = [_entry_view(number, entry, facts) for number, entry in enumerate(history.entries[first:last], first + 1)]
    end = history.ended if history.ended is not None else now
    return TaskView(history, runs, entries, first, max(0.001, end - history.submitted), changed_files(history))


def _runs(history: TaskHistory, now: Timestamp) -> list[RunView]:
    """Return the runs in the order of their numbers, with their bars."""
    views: dict[str, RunView] = {}
    planned = [assign for _, group in history.groups for assign in group.assigns]
    has_host = any(not assign.number for assign in history.assigned)
    for assign in (*history.assigned, *planned):
        view = views.get(assign.run_id) or _run_view(assign, has_host=has_host)
        views[assign.run_id] = view
        if assign.request:
            view.request = assign.request
    for assign in planned:
        views[assign.run_id].after = () if assign.member is None else assign.member.after
    assigned_at = _assigned_times(history)
    for event in history.events:
        if event.run_id in views:
            _advance(views[event.run_id], event)
    end = history.ended if history.ended is not None else now
    for run_id, view in views.items():
        result = history.results.get(run_id)
        view.begun = history.begun_at.get(run_id, view.begun)
        view.ended = history.ended_at.get(run_id)
        if result is not None:
            view.outcome, view.machine = result.outcome, result.machine
            view.steps = max(view.steps, result.usage.steps)
        elif not view.number and history.result is not None:
            view.outcome, view.ended = history.result.outcome, history.ended
        view.bar = _bar(history.submitted, end, assigned_at.get(run_id, history.submitted), view)
    return sorted(views.values(), key=lambda view: view.number)


def _assigned_times(history: TaskHistory) -> dict[str, Timestamp]:
    times: dict[str, Timestamp] = {}
    for at, group in history.groups:
        for assign in group.assigns:
            times.setdefault(assign.run_id, at)
    for entry in history.entries:
        if isinstance(entry.message, Assign):
            times.setdefault(entry.run_id, entry.at)
    return times


def _run_view(assign: Assign, *, has_host: bool) -> RunView:
    return RunView(
        run_id=assign.run_id,
        number=number_of(assign.run_id),
        address=assign.address,
        request=assign.request,
        depth=1 if has_host and assign.number else 0,
    )


def _advance(view: RunView, event: Event) -> None:
    match event.name:
        case EventName.STATE_CHANGED:
            view.state = str(event.data["target"])
        case EventName.STEP_STARTED if event.step is not None:
            view.steps = max(view.steps, event.step)
        case EventName.MACHINE_CHOSEN:
            view.machine = str(event.data["machine"])
        case _:
            pass


def _bar(begin: Timestamp, end: Timestamp, assigned: Timestamp, view: RunView) -> tuple[int, int, int]:
    """Return the parts of a bar on the scale of the drawing.

    They are the begin of its wait, the begin of its work, and its end.
    """
    span = max(0.001, end - begin)
    last = end if view.ended is None else view.ended
    times = (assigned, last if view.begun is None else view.begun, last)
    first, second, third = (min(SCALE, max(0, round((at - begin) / span * SCALE))) for at in times)
    return first, max(first, second), max(first, second, third)


class _StepFacts:
    """The facts about steps that stand beside their records."""

    def __init__(self, history: TaskHistory) -> None:
        """Collect the events of each step, and the picture after each."""
        self._events: dict[tuple[str, int], list[Event]] = defaultdict(list)
        for event in history.events:
            if event.step is not None and event.name in {EventName.POLICY_DECIDED, EventName.MODEL_ANSWERED}:
                self._events[event.run_id, event.step].append(event)
        pictured: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for entry in history.entries:
            if isinstance(entry.message, StepDone):
                record = entry.message.record
                pictured[entry.run_id].append((record.step, digest_of(record.observation.picture)))
        self._after = {
            (run_id, step): picture
            for run_id, pictures in pictured.items()
            for (step, _), (_, picture) in itertools.pairwise(pictures)
        }

    def after(self, run_id: str, step: int) -> str:
        """Return the digest of the picture that the agent saw next."""
        return self._after.get((run_id, step), "")

    def verdicts(self, run_id: str, step: int, tool: str, action: Action | None) -> tuple[str, ...]:
        """Return the verdicts of the rules on a call of a step.

        A record of a verdict has the beginning of the arguments. Where none fits, those on all calls of the tool count.
        """
        rulings = [event.data for event in self._events[run_id, step] if event.name is EventName.POLICY_DECIDED]
        rulings = [ruling for ruling in rulings if ruling["tool"] == tool]
        if action is not None:
            rulings = [ruling for ruling in rulings if _is_ruling_on(action, ruling)] or rulings
        return tuple(map(_verdict, rulings))

    def usage(self, run_id: str, step: int) -> str:
        """Describe the model calls of a step."""
        parts = []
        for event in self._events[run_id, step]:
            if event.name is EventName.MODEL_ANSWERED:
                data = event.data
                cost = data.get("cost")
                tokens = {name: data[name] for name in ("model", "input_tokens", "output_tokens")}
                amounts = [text("step_usage", **tokens)]
                amounts += [text("small_price", cost=cost)] if isinstance(cost, float) and cost else []
                amounts += [text("seconds", seconds=event.duration)] if event.duration else []
                parts.append(", ".join(amounts))
        return "; ".join(parts)


def digest_of(picture: bytes | None) -> str:
    """Return the digest of a picture.

    The picture may have been read as its digest. Empty without one.
    """
    if picture is None:
        return ""
    return (picture if len(picture) == hashlib.sha256().digest_size else hashlib.sha256(picture).digest()).hex()


def _entry_view(number: int, entry: Entry, facts: _StepFacts) -> EntryView:
    message = entry.message
    head, *lines = lines_of(message)
    lines += lines_of_reply(message, entry.reply)
    asks = message if isinstance(message, ApprovalRequest | Question) and entry.reply is None else None
    view = EntryView(number, entry.at, entry.run_id, agent_label(entry.agent), head, tuple(lines), asks=asks)
    if not isinstance(message, StepDone):
        return view
    record = message.record
    return replace(
        view,
        lines=tuple(step_words(record)),
        step=record.step,
        state=record.status,
        before=digest_of(record.observation.annotated or record.observation.picture),
        after=facts.after(entry.run_id, record.step),
        calls=tuple(_calls(record, functools.partial(facts.verdicts, entry.run_id, record.step))),
        checks=tuple(step_checks(record)),
        usage=facts.usage(entry.run_id, record.step),
    )


def _is_ruling_on(action: Action, ruling: Mapping[str, Any]) -> bool:
    control = "" if action.control is None else action.control.id
    arguments = json.dumps(action.arguments, ensure_ascii=False)
    return bool(ruling["control"] == control and arguments.startswith(ruling["arguments"]))


def _verdict(ruling: Mapping[str, Any]) -> str:
    words = text("ruling", verdict=term("verdict", ruling["verdict"]), reason=ruling["reason"])
    return text("waived", verdict=words, reason=ruling["waived"]) if ruling.get("waived") else words


def _calls(record: StepRecord, verdicts: Callable[[str, Action | None], tuple[str, ...]]) -> Iterator[CallView]:
    names = {control.id: control.name for control in record.observation.controls}
    for action, result in record.calls:
        _, *lines = lines_of_result(action, result)
        head = (status_words(result), _tone(result))
        yield CallView(
            tool=result.tool,
            arguments=_arguments(action),
            control=_control_name(action, names),
            lines=(head, *lines),
            verdicts=verdicts(result.tool, action),
            pictures=tuple(digest_of(picture) for picture in result.pictures),
        )
    for action in record.not_run:
        yield CallView(
            tool=action.tool,
            arguments=_arguments(action),
            control=_control_name(action, names),
            lines=((text("not_run"), Tone.QUIET),),
            verdicts=verdicts(action.tool, action),
        )


def _control_name(action: Action | None, names: dict[str, str]) -> str:
    """Return the name of an action's control, or its id."""
    if action is None or action.control is None:
        return ""
    return action.control.name or names.get(action.control.id) or action.control.id


def _tone(result: CommandResult) -> Tone:
    return next(iter(lines_of_result(None, result)))[1]


def _arguments(action: Action | None) -> str:
    return "" if action is None or not action.arguments else pretty(action.arguments)


def pretty(value: object) -> str:
    """Format a value as JSON on several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2)
