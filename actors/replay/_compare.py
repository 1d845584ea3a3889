"""Compare a replayed job's result, and its verdicts, with the recording."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.actors.states import STOPPED
from callboard.config import term, text
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    AssignGroup,
    EventName,
    Message,
    Question,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskEnding,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from callboard.actors.replay._tape import Tape
    from callboard.actors.states import Run
    from callboard.messages import Action, Outcome, PlannedSubtask, Task


@dataclass(frozen=True, slots=True)
class Transition:
    """One move of one agent's machine."""

    run_id: str
    address: str
    step: int
    """The step after which it was made."""
    source: str
    target: str
    by: str

    def __str__(self) -> str:
        return text("transition", source=self.source, target=self.target, cause=self.by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between a replay and its recording."""

    run_id: str
    """Empty for the task as a whole."""
    address: str
    step: int
    """The current step of the run; 0 for the task as a whole."""
    what: str
    """The thing that differs: a transition, a verdict, one fact of a step."""
    expected: str
    """The recorded value."""
    got: str
    """The replayed value."""
    because: tuple[str, ...] = ()
    """Context: the decision, the reason why an answer was sent back, requests without a recorded reply."""

    def __str__(self) -> str:
        where = f"{self.address}, step {self.step} of {self.run_id}" if self.run_id else "the task"
        lines = (f"{where}: {self.what}", f"  recorded: {self.expected}", f"  replayed: {self.got}")
        return "\n".join((*lines, *(f"  {reason}" for reason in self.because)))


class Differs(Exception):  # noqa: N818 - it carries a finding, and is no error
    """Ends a replay at its first difference."""

    def __init__(self, difference: Difference) -> None:
        self.difference = difference
        super().__init__(str(difference))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result of a replay."""

    task: Task
    transitions: tuple[Transition, ...]
    """All replayed transitions, in order, up to the first difference."""
    jobs: int
    """The number of replayed results of agents' jobs."""
    taken: int
    """The number of results taken from the recording: of steps that took too long, and of values that could not be
    serialized."""
    outcome: Outcome | None
    """The task's outcome; None if it was not over, or if there is a difference."""
    difference: Difference | None = None

    @property
    def same(self) -> bool:
        """True if the replay matches the recording."""
        return self.difference is None


LONG = 300
"""The longest excerpt of a value in a difference, in characters."""


def compare(tape: Tape, result: Message) -> None:
    """Compare a job's result with the recording.

    The verdicts on its way are compared, too.

    Raises:
        Differs: If they are not the same, with the first difference.
    """
    _compare_verdicts(tape, result)
    recorded, replayed = facts(tape.message), facts(result)
    for what in recorded | replayed:
        if recorded.get(what) != replayed.get(what):
            excerpts = shortly(recorded.get(what)), shortly(replayed.get(what))
            differs(tape.run, text(f"differs_{what}"), *excerpts, tuple(reasons(tape, result)))
    if tape.answers:
        reason = tape.sent_back()
        sent_back = text("was_sent_back_for", reason=reason) if reason else text("was_sent_back")
        differs(tape.run, text("differs_sent_back"), sent_back, text("it_counts"), decided_on(tape.message))


def _compare_verdicts(tape: Tape, result: Message) -> None:
    recorded = [event.data for event in tape.events if event.name is EventName.POLICY_DECIDED]
    for event in tape.emitted:
        if event.name is not EventName.POLICY_DECIDED:
            continue
        match = ("tool", "arguments")
        same = next((old for old in recorded if all(old[key] == event.data[key] for key in match)), None)
        if same is None:
            continue
        recorded.remove(same)
        if same["verdict"] != event.data["verdict"]:
            what = text("differs_verdict", tool=event.data["tool"])
            expected, got = map(_verdict_words, (same, event.data))
            differs(tape.run, what, expected, got, tuple(reasons(tape, result)))


def _verdict_words(ruling: Mapping[str, Any]) -> str:
    return text("ruling", verdict=term("verdict", str(ruling["verdict"])), reason=ruling["reason"])


def differs(run: Run, what: str, expected: str, got: str, because: tuple[str, ...] = ()) -> None:
    """End the replay.

    Raises:
        Differs: Always.
    """
    assign = run.assign
    raise Differs(
        Difference(
            run_id=assign.run_id,
            address=assign.address,
            step=run.steps + 1,
            what=what,
            expected=expected,
            got=got,
            because=because,
        )
    )


def facts(message: Message) -> dict[str, JsonValue]:  # noqa: C901 - one match, a case a message
    """Return the facts of a job's result to compare, by name.

    Usage, times and the wording of failures are left out. A difference is described by the text of the name.
    """
    kind = getattr(message, "kind", "")
    named: dict[str, JsonValue] = {"kind": kind}
    match message:
        case StepDone(record=record):
            decision = record.decision
            named |= {
                "step_state": record.status,
                "status": decision.status,
                "actions": [_shown(action) for action in decision.actions],
                "target": decision.target.id if decision.target is not None else "",
                "subtask": decision.subtask,
                "subtasks": [_described(planned) for planned in decision.group],
                "questions": [question.text for question in decision.questions],
                "annotated": list(decision.reannotate),
                "results": [f"{result.tool}: {result.status.value}" for result in record.results],
                "held": [_shown(action) for action in message.held],
                "held_by": message.held_by.value,
                "value": decision.result,
                "resumed": record.resumed,
            }
        case StepFailure():
            named |= {"outcome": message.outcome.value}
        case Question():
            limit = message.limit
            named |= {
                "questions": [question.text for question in message.questions] if limit is None else [],
                "limit": "" if limit is None else text("limit_of_node", kind=limit.kind, node=limit.node),
                "doubt": message.in_doubt,
            }
        case ApprovalRequest():
            named |= {
                "approvals": [_shown(action) for action in message.actions],
                "at_deadline": message.at_deadline.value,
            }
        case Answer():
            named |= {"has_answer": not message.nobody}
        case ApprovalAnswer():
            named |= {"approved": message.approved}
        case Assign():
            named |= {
                "subtask": message.request,
                "target": message.target.id if message.target is not None else "",
                "number": message.number,
            }
        case AssignGroup(assigns=assigns):
            named["subtasks"] = [_member(assign) for assign in assigns]
        case SubtaskEnding(result=result):
            named |= _ending(result.outcome, result.output, result.artifacts)
        case RoundEnding():
            named |= _ending(message.outcome, message.output, message.artifacts)
        case _:
            pass
    return named


def _ending(outcome: Outcome, output: JsonValue, artifacts: tuple[str, ...]) -> dict[str, JsonValue]:
    """Return the facts of an ending to compare.

    A step that a stop interrupted is in no job's result.
    """
    named: dict[str, JsonValue] = {"outcome": outcome.value}
    return named if outcome in STOPPED else named | {"output": output, "files": list(artifacts)}


def _described(planned: PlannedSubtask) -> JsonValue:
    return {"target": planned.target.id, **planned.model_dump(include={"request", "after", "after_any"})}


def _shown(action: Action) -> str:
    arguments = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in action.arguments.items())
    return f"{action.tool}({arguments})"


def shortly(value: JsonValue) -> str:
    """Format a value, cut where it is long."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "; ".join(map(str, value))
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (words if len(words) <= LONG else f"{words[:LONG]} …") or text("nothing_there")


def reasons(tape: Tape, result: Message) -> Iterator[str]:
    """Return the context of a job that took another course."""
    yield from decided_on(tape.message)
    for event in tape.emitted:
        if event.name is EventName.MODEL_REPAIRED:
            yield text("answer_sent_back", reason=event.data["reason"])
    yield from dict.fromkeys(tape.missing)
    if isinstance(result, StepFailure):
        yield text("step_ended_by", reason=result.causes[-1].reason)


def decided_on(message: Message | None) -> tuple[str, ...]:
    """Describe a step's decision."""
    if not isinstance(message, StepDone):
        return ()
    decision = message.record.decision
    actions = shortly([_shown(action) for action in decision.actions]) if decision.actions else text("no_action")
    return (text("decided_on", status=decision.status, actions=actions),)


def _member(assign: Assign) -> dict[str, JsonValue]:
    """Return the facts of a subtask that is assigned with others."""
    return {**facts(assign), "order": None if assign.member is None else assign.member.model_dump(mode="json")}
