"""Repeat a routine: its next answer while the guards hold, and the reason once one does not."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.messages import AgentStatus, Board, Effect, Outcome, RoutineMiss, RoutineMissError, agent_kind, number_of
from callboard.models import ModelAnswer, resolve, results_tree
from callboard.routines._control_guard import held_controls
from callboard.routines._expected import check_result, expected_of
from callboard.routines._filling import PlacedStep, placed_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from callboard.messages import (
        CommandResult,
        Control,
        Routine,
        RoutineAction,
        RoutineLoop,
        RoutineStep,
        RoutineSubtask,
        StepRecord,
        SubtaskResult,
    )
    from callboard.models import ModelRequest

AGAIN, DONE, STOP = "try again", "it is done, go on", "stop"
"""The answers of a person who is asked about a step that can't be repeated."""
_MOST_TARGETS = 10
_LONGEST = 150
"""The most characters of each half of a reason that a person is shown."""


_answer = functools.partial(ModelAnswer, cost=0.0, must_succeed=False, omission="", replayed=True)


class _LeftError(Exception):
    """The routine is left at a step."""

    def __init__(self, number: int, expected: str, found: str) -> None:
        self.miss = RoutineMiss(step=number, expected=expected, found=found)


@dataclass(frozen=True)
class _Progress:
    """The steps of an agent so far."""

    records: Sequence[StepRecord]
    reply: str
    """A person's answer to the question with which the last step ended; empty without one."""

    @property
    def asked(self) -> bool:
        """Whether the last step asked a person."""
        return bool(self.records) and self.records[-1].decision.status == AgentStatus.PENDING

    @property
    def place(self) -> int:
        """The place of the next step."""
        if self.asked:
            return self.records[-1].decision.routine_step + (self.reply == DONE)
        return 1 + max((record.decision.routine_step for record in self.records), default=0)

    def open_end(self, request: ModelRequest) -> str:
        """Say why the work is not over after the last step."""
        refused = [check.name for record in self.records[-1:] for check in record.failed_checks]
        if refused:
            return f"a check that does not hold: {refused[0]}"
        return request.reasons[-1] if request.reasons else "the agent asked once more"

    def results(self, place: int) -> list[CommandResult]:
        """The results of the step at a place, those after an approval included."""
        records = (record for record in self.records if record.decision.routine_step == place)
        return [result for record in records for result in record.results]


@dataclass(frozen=True)
class RoutineFollower:
    """A routine that stands before the models of a task.

    It has no state: a restarted process goes on at the same step.
    """

    routine: Routine
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    strict: bool = False
    """Whether a miss fails the task, in place of asking a model or a person."""

    @property
    def name(self) -> str:
        """The name in events."""
        return f"routine:{self.routine.routine}"

    def answer(self, request: ModelRequest, *, has_model: bool) -> ModelAnswer | RoutineMiss | None:
        """Give the answer that the routine has for a request.

        Without a model, a miss is put to a person, if one can be asked; else the answer is FAIL.

        Returns:
            The answer; the reason why the routine is left here, for the model that goes on; or None if a model has
            taken over already.
        """
        records = request.memory[len(request.memory) - request.step + 1 :]
        if any(not record.decision.routine_step for record in records):
            return None  # it may have done later steps in its own way
        progress = _Progress(records, self._reply(request))
        try:
            return self._next_answer(request, progress)
        except _LeftError as error:
            if has_model and not self.strict:
                return error.miss
            return self._without_model(request, progress, error.miss)

    def _next_answer(self, request: ModelRequest, progress: _Progress) -> ModelAnswer:
        tree = self._tree(request)
        placed = self._placed(request, progress, tree)
        if progress.asked and progress.reply not in {AGAIN, DONE}:
            raise _LeftError(placed.number, "a person's word to go on", progress.reply or "none")
        if request.reasons:
            raise _LeftError(placed.number, "an answer that can be used", request.reasons[-1])
        content = self._content(request, placed, tree)
        return _answer(content=content, routine_step=placed.place)

    def _placed(self, request: ModelRequest, progress: _Progress, tree: dict[str, Any]) -> PlacedStep:
        """Return the next step, after a look at the results of the one before."""
        number = 0
        places = {record.decision.routine_step for record in progress.records}
        results = {place: results_tree(progress.results(place)) for place in places}
        try:
            for placed in placed_steps(self._steps(request), tree, results):
                number = placed.number
                if placed.place == progress.place - 1 and not progress.asked:
                    _check_results(placed, progress.results(placed.place))
                    self._check_subtasks(placed, request)
                if placed.place == progress.place:
                    return placed
        except LookupError as error:
            raise _LeftError(number + 1, "the results of earlier steps", str(error.args[0])) from error
        raise _LeftError(number + 1, "the work to be over", progress.open_end(request))

    def _check_subtasks(self, placed: PlacedStep, request: ModelRequest) -> None:
        """Leave the routine if a subtask that a step handed over did not finish."""
        for part in placed.step.assign:
            results = [
                done for done in request.subtasks if self.index_of(done.number, done.request) == part.subtask - 1
            ]
            if results and results[-1].outcome is not Outcome.FINISHED:
                why = "; ".join(cause.reason for cause in results[-1].causes[:1])
                found = f"it {results[-1].outcome.value.replace('_', ' ')}{why and f': {why}'}"
                raise _LeftError(placed.number, f"that subtask {part.subtask} finishes", found)

    def _steps(self, request: ModelRequest) -> Sequence[RoutineStep | RoutineLoop]:
        """Return the steps of the agent that asks."""
        if request.is_host:
            return self.routine.host
        index = self.index_of(number_of(request.run_id), request.request)
        subtask = None if index is None else self.routine.subtasks[index]
        target = "" if request.target is None else request.target.id
        if subtask is None or self._known_target(subtask) not in {None, target}:
            raise _LeftError(1, "a subtask of the routine", f"{request.request!r} on {target!r}")
        return subtask.steps

    def _known_target(self, subtask: RoutineSubtask) -> str | None:
        """Return the target of a subtask; None if only the HostAgent's results name it."""
        try:
            return str(resolve(subtask.target, self.parameters))
        except LookupError:
            return None

    def index_of(self, number: int, request: str) -> int | None:
        """Return the place of a subtask in the routine: that of its number, else that of its request."""
        requests = [resolve(subtask.request, self.parameters) for subtask in self.routine.subtasks]
        if not self.routine.host:
            return 0  # the only one, whose request may be the caller's own
        if number <= len(requests) and requests[number - 1] == request:
            return number - 1
        return requests.index(request) if requests.count(request) == 1 else None

    def _tree(self, request: ModelRequest) -> dict[str, Any]:
        """Return the values that references stand for, but for those of a step."""
        indices = [(self.index_of(done.number, done.request), done) for done in request.subtasks]
        subtasks = {str(index + 1): outcome_of(done) for index, done in indices if index is not None}
        return {**self.parameters, "subtasks": subtasks, "steps": {}}

    def _content(self, request: ModelRequest, placed: PlacedStep, tree: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, once the guard of the step holds."""
        step, number = placed.step, placed.number
        if step.status not in request.statuses:
            raise _LeftError(number, f"the status {step.status}", f"only {', '.join(request.statuses)}")
        tree |= {} if placed.item is None else {"item": placed.item}
        try:
            once = {tool.name for tool in request.tools if tool.effect is Effect.ONCE}
            found = held_controls(
                _with_values(step, tree),
                request.observation,
                request.target,
                once={action.control for action in step.actions if action.control is not None and action.tool in once},
            )
            tree["controls"] = [control.model_dump(mode="json") for control in found]
            place = "end" if step.status == "FINISH" else f"step {number}"
            return {
                "Status": step.status,
                "Comment": f"{place} of the routine {self.routine.routine}",
                **({"Actions": [_call(action, found, tree) for action in step.actions]} if step.actions else {}),
                **self._assignments(request, placed, tree),
                **({} if step.result is None else {"Result": resolve(step.result, tree)}),
            }
        except RoutineMissError as error:
            raise _LeftError(number, error.expected, error.found) from error
        except LookupError as error:
            raise _LeftError(number, "the results of earlier steps", str(error.args[0])) from error

    def _assignments(self, request: ModelRequest, placed: PlacedStep, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a HostAgent's answer that hands over subtasks."""
        subtasks = []
        for part in placed.step.assign:
            subtask = self.routine.subtasks[part.subtask - 1]
            target = resolve(subtask.target, tree)
            offered = [each.id for each in request.observation.targets if agent_kind(each.address) == subtask.kind]
            if target not in offered:
                there = ", ".join(offered[:_MOST_TARGETS]) or "none"
                raise _LeftError(placed.number, f"the {subtask.kind} target {target!r}", there)
            words = {"Current Sub-Task": resolve(subtask.request, self.parameters), "ControlText": target}
            subtasks.append({**words, "After": list(part.after), "AfterAny": list(part.after_any)})
        if len(subtasks) == 1:
            return {key: subtasks[0][key] for key in ("Current Sub-Task", "ControlText")}
        return {"Sub-Tasks": subtasks, "StopAtFailure": placed.step.stops_group} if subtasks else {}

    def _without_model(self, request: ModelRequest, progress: _Progress, miss: RoutineMiss) -> ModelAnswer:
        """Ask a person about a miss, or fail."""
        reason = f"{self._stop} step {miss.step}: expected {miss.expected[:_LONGEST]}; found {miss.found[:_LONGEST]}"
        stopped = progress.asked and progress.reply not in {AGAIN, DONE}
        can_ask = request.attended and AgentStatus.PENDING in request.statuses
        if self.strict or stopped or not can_ask:
            content: dict[str, Any] = {"Status": AgentStatus.FAIL.value, "Comment": reason}
            return _answer(content=content, routine_miss=miss)
        question = {"text": reason, "choices": [AGAIN, DONE, STOP]}
        content = {"Status": AgentStatus.PENDING.value, "Comment": reason, "Questions": [question]}
        return _answer(content=content, routine_step=progress.place, routine_miss=miss)

    @property
    def _stop(self) -> str:
        """The beginning of the reason that a person is shown."""
        return f"the routine {self.routine.routine} stopped at"

    def _reply(self, request: ModelRequest) -> str:
        """Return a person's last answer about this routine; empty without one."""
        texts = [entry.text for entry in request.observation.shared if entry.board is Board.QUESTIONS]
        answers = [text for text in texts if self._stop in text]
        return next((choice for choice in (AGAIN, DONE, STOP) if answers and answers[-1].endswith(repr(choice))), "")


def _check_results(placed: PlacedStep, results: Sequence[CommandResult]) -> None:
    """Leave the routine if the results of a step have another form than the recorded ones."""
    for action, result in zip(placed.step.actions, results, strict=False):
        difference = check_result(action.expect or expected_of(result), result)
        if difference:
            raise _LeftError(placed.number, f"the recorded form of the result of {action.tool}", difference)


def outcome_of(done: SubtaskResult) -> dict[str, Any]:
    """Return the parts of a subtask's result that references may lead into."""
    return done.model_dump(mode="json", include={"outcome", "output", "comment", "artifacts", "made", "changed"})


def _with_values(step: RoutineStep, tree: Mapping[str, Any]) -> RoutineStep:
    """Return a step whose guard has the values of this run."""
    controls = tuple(
        [
            control.model_copy(
                update={
                    name: resolve(value, tree) if isinstance(value, str) else value
                    for name, value in control.model_dump().items()
                }
            )
            for control in step.controls
        ]
    )
    return step.model_copy(update={"window": resolve(step.window, tree), "controls": controls})


def _call(action: RoutineAction, found: Sequence[Control], tree: Mapping[str, Any]) -> dict[str, Any]:
    call = {"function": action.tool, "arguments": resolve(action.arguments, tree)}
    if action.control is None:
        return call
    control = found[action.control]
    return {**call, "control_id": control.id, "control_name": control.name}
