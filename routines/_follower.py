"""Repeat a routine while its guards hold.

It gives the next answer, or the reason why the routine is left.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.messages import (
    AgentStatus,
    Effect,
    Outcome,
    ResultStatus,
    RoutineMiss,
    RoutineMissError,
    RoutineStep,
    agent_kind,
    changed_fact,
    number_of,
    tool_of_absent_target,
)
from callboard.models import ModelAnswer, resolve
from callboard.routines._control_guard import held_controls
from callboard.routines._expected import check_result, expected_of
from callboard.routines._filled_guard import action_guard, filled_facts
from callboard.routines._filling import PlacedStep, placed_step
from callboard.routines._routine_progress import STOP, LeftError, RoutineProgress
from callboard.routines._screen import folders_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from callboard.messages import (
        CommandResult,
        Control,
        Routine,
        RoutineAction,
        RoutineLoop,
        RoutineSubtask,
        StepRecord,
        SubtaskResult,
    )
    from callboard.models import ModelRequest

_CONTROL = re.compile(r"\$\{controls\.(\d+)\.")
_MOST_TARGETS = 10
_LONGEST = 150
"""The most characters of each half of a reason that a person is shown."""


_answer = functools.partial(ModelAnswer, cost=0.0, must_succeed=False, omission="", replayed=True)


@dataclass(frozen=True)
class RoutineFollower:
    """A routine that stands before the models of a task.

    It has no state: a restarted process goes on at the same step.
    """

    routine: Routine
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    strict: bool = False
    """Whether a miss fails the task, in place of asking a model or a person."""
    dry_run: bool = False
    """Whether the task only plans its actions. Its steps can't be told further than they need no earlier ones."""

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
        progress = self._progress(request)
        if progress is None:
            return None
        try:
            return self._next_answer(request, progress)
        except LeftError as error:
            if self.dry_run and AgentStatus.FINISH in request.statuses and _passed_over(request, progress):
                return self._unknown(progress.place, error.miss)
            if has_model and not self.strict:
                return error.miss
            return self._without_model(request, progress, error)

    def _unknown(self, place: int, miss: RoutineMiss) -> ModelAnswer:
        """End a dry run at a step that needs actual results."""
        comment = (
            f"a dry run can't tell the steps of the routine {self.routine.routine} from step {miss.step} on, because "
            f"it did nothing before: expected {miss.expected[:_LONGEST]}; found {miss.found[:_LONGEST]}"
        )
        content = {"Status": AgentStatus.FINISH.value, "Comment": comment}
        return _answer(content=content, routine_step=place)

    def waits(self, request: ModelRequest) -> bool:
        """Return whether only the guard of the next step does not hold.

        The screen may still be on its way there: a routine acts faster than the model or the person that was recorded.
        """
        progress = self._progress(request)
        if progress is None:
            return False
        try:
            self._next_answer(request, progress)
        except LeftError as error:
            return error.by_guard and not (self.dry_run and _passed_over(request, progress))
        return False

    def _progress(self, request: ModelRequest) -> RoutineProgress | None:
        """Return the steps so far; None if a model has taken over.

        It may do later steps in its own way.
        """
        records = _own_records(request)
        if records and not records[-1].decision.routine_step:
            return None
        return RoutineProgress(records, request.replies)

    def _next_answer(self, request: ModelRequest, progress: RoutineProgress) -> ModelAnswer:
        tree = self._tree(request)
        placed = self._placed(request, progress, tree)
        if progress.asked and not progress.reply:
            raise LeftError(placed.number, "a person's word to go on", "; ".join(progress.replies) or "none")
        content = self._content(request, placed, tree)
        if request.reasons:  # after the guard: else they may be those against a model's answer
            raise LeftError(placed.number, "an answer that can be used", request.reasons[-1])
        plain, usual = {tool.name for tool in request.tools if not tool.has_form}, self.routine.values({})
        try:
            guards = tuple(
                action_guard(action, placed.number, tree, has_form=action.tool not in plain, usual=usual)
                for action in placed.step.actions
            )
        except LookupError as error:
            raise LeftError(placed.number, "the results of earlier steps", str(error.args[0])) from error
        return _answer(content=content, routine_step=placed.place, guards=guards)

    def _placed(self, request: ModelRequest, progress: RoutineProgress, tree: dict[str, Any]) -> PlacedStep:
        """Check the results of the last step, and return the next one."""
        steps, place, number = self._steps(request), progress.place, 0
        try:
            before = None if place == 1 else placed_step(steps, place - 1, tree, progress.results_of)
            if before is not None:
                number = before.number
                if not progress.asked:
                    _check_results(before, progress, tree)
                    _check_look(before, progress, request)
                    self._check_subtasks(before, request)
            placed = placed_step(steps, place, tree, progress.results_of)
        except LookupError as error:
            raise LeftError(number + 1, "the results of earlier steps", str(error.args[0])) from error
        if placed is None:
            found = progress.open_end()
            raise LeftError(number + 1, "the work to be over", found, place=place - 1, is_over=True)
        return placed

    def _check_subtasks(self, placed: PlacedStep, request: ModelRequest) -> None:
        """Leave the routine if an assigned subtask did not finish."""
        for part in placed.step.assign:
            results = [
                done for done in request.subtasks if self.index_of(done.number, done.request) == part.subtask - 1
            ]
            if results and results[-1].outcome is not Outcome.FINISHED:
                why = "; ".join(cause.reason for cause in results[-1].causes[:1])
                found = f"it {results[-1].outcome.value.replace('_', ' ')}{why and f': {why}'}"
                expected = f"that subtask {part.subtask} finishes"
                raise LeftError(placed.number, expected, found, place=placed.place)

    def _steps(self, request: ModelRequest) -> Sequence[RoutineStep | RoutineLoop]:
        """Return the steps of the agent that asks."""
        if request.is_host:
            return _with_checked_end(self.routine.host)
        index = self.index_of(number_of(request.run_id), request.request)
        subtask = None if index is None else self.routine.subtasks[index]
        target = "" if request.target is None else request.target.id
        if subtask is None or self._known_target(subtask) not in {None, target}:
            raise LeftError(1, "a subtask of the routine", f"{request.request!r} on {target!r}")
        return _with_checked_end(subtask.steps)

    def _known_target(self, subtask: RoutineSubtask) -> str | None:
        """Return the target of a subtask.

        None if only the HostAgent's results name it.
        """
        try:
            return str(resolve(subtask.target, self.parameters))
        except LookupError:
            return None

    def index_of(self, number: int, request: str) -> int | None:
        """Return the place of a subtask in the routine, from 0.

        It is found by its number among the assigned ones, else by its request.
        """
        requests = [resolve(subtask.request, self.parameters) for subtask in self.routine.subtasks]
        if not self.routine.host:
            return 0  # the only one, whose request may be the caller's own
        for subtask in self.routine.assigned[number - 1 : number]:
            if requests[subtask - 1] == request:
                return subtask - 1
        return requests.index(request) if requests.count(request) == 1 else None

    def _tree(self, request: ModelRequest) -> dict[str, Any]:
        """Return the values that references stand for, without a step's own."""
        indices = [(self.index_of(done.number, done.request), done) for done in request.subtasks]
        subtasks = {str(index + 1): outcome_of(done) for index, done in indices if index is not None}
        return {**self.parameters, "subtasks": subtasks, "steps": {}, "window": folders_of(request.observation)}

    def _content(self, request: ModelRequest, placed: PlacedStep, tree: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, once the guard of the step holds."""
        step, number = placed.step, placed.number
        if step.status not in request.statuses:
            raise LeftError(number, f"the status {step.status}", f"only {', '.join(request.statuses)}")
        tree |= {} if placed.item is None else {"item": placed.item}
        try:
            once = {tool.name for tool in request.tools if tool.effect is Effect.ONCE}
            found = held_controls(
                _with_values(step, tree),
                request.observation,
                request.target,
                once={number for action in step.actions if action.tool in once for number in _controls_of(action)},
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
            raise LeftError(number, error.expected, error.found, by_guard=True) from error
        except LookupError as error:
            raise LeftError(number, "the results of earlier steps", str(error.args[0])) from error

    def _assignments(self, request: ModelRequest, placed: PlacedStep, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a HostAgent's answer that hands over subtasks.

        A target that a dry run did not make is named, too: the run ends there.
        """
        subtasks = []
        for part in placed.step.assign:
            subtask = self.routine.subtasks[part.subtask - 1]
            target = resolve(subtask.target, tree)
            offered = [each.id for each in request.observation.targets if agent_kind(each.address) == subtask.kind]
            if target not in offered and not tool_of_absent_target(_own_records(request), (), target):
                there = ", ".join(offered[:_MOST_TARGETS]) or "none"
                raise LeftError(placed.number, f"the {subtask.kind} target {target!r}", there)
            words = {"Current Sub-Task": resolve(subtask.request, self.parameters), "ControlText": target}
            subtasks.append({**words, "After": list(part.after), "AfterAny": list(part.after_any)})
        if len(subtasks) == 1:
            return {key: subtasks[0][key] for key in ("Current Sub-Task", "ControlText")}
        return {"Sub-Tasks": subtasks, "StopAtFailure": placed.step.stops_group} if subtasks else {}

    def _without_model(self, request: ModelRequest, progress: RoutineProgress, error: LeftError) -> ModelAnswer:
        """Ask a person about a miss, or fail."""
        miss = error.miss
        of = f" of subtask {number_of(request.run_id)}" if self.routine.host and not request.is_host else ""
        reason = (
            f"the routine {self.routine.routine} stopped at step {miss.step}{of}: "
            f"expected {miss.expected[:_LONGEST]}; found {miss.found[:_LONGEST]}"
        )
        once = {tool.name for tool in request.tools if tool.effect is Effect.ONCE}
        choices = progress.choices(error, once)
        stopped = progress.asked and not progress.reply
        can_ask = request.attended and AgentStatus.PENDING in request.statuses and choices != [STOP]
        if self.strict or stopped or not can_ask:
            content: dict[str, Any] = {"Status": AgentStatus.FAIL.value, "Comment": reason}
            return _answer(content=content, routine_miss=miss)
        question = {"text": reason, "choices": choices}
        content = {"Status": AgentStatus.PENDING.value, "Comment": reason, "Questions": [question]}
        return _answer(content=content, routine_step=error.place or progress.place, routine_miss=miss)


def _passed_over(request: ModelRequest, progress: RoutineProgress) -> bool:
    """Return whether a dry run left out earlier actions."""
    results = (result for record in progress.records for result in record.results)
    return bool(request.subtasks) or any(result.status is ResultStatus.DRY_RUN for result in results)


def _own_records(request: ModelRequest) -> Sequence[StepRecord]:
    return request.memory[len(request.memory) - request.step + 1 :]


def _check_look(placed: PlacedStep, progress: RoutineProgress, request: ModelRequest) -> None:
    """Leave the routine if a step left the view unaltered."""
    records = progress.records_of(placed.place)
    dry = any(result.status is ResultStatus.DRY_RUN for result in progress.results_of(placed.place) or ())
    if placed.step.alters and records and not dry:
        if records[-1].observation.fingerprint != request.observation.fingerprint:
            return
        expected = f"that {' and '.join(action.tool for action in placed.step.actions)} changes the view"
        raise LeftError(placed.number, expected, "the same view", place=placed.place, by_guard=True)


def _check_results(placed: PlacedStep, progress: RoutineProgress, tree: Mapping[str, Any]) -> None:
    """Leave the routine if a step was not done as recorded.

    Folders are those before it, since it may have changed them.
    """
    results = progress.results_of(placed.place) or ()
    folders = [folders_of(record.observation) for record in progress.records_of(placed.place)[-1:]]
    values = {**tree, "window": folders[0] if folders else {}, **({} if placed.item is None else {"item": placed.item})}
    for number, action in enumerate(placed.step.actions):
        result = results[number] if number < len(results) else None
        missed = None if result is None else result.missed or _changed_fact(placed, action, result, values)
        if missed is not None:
            raise LeftError(placed.number, missed.expected, missed.found, place=placed.place)
        expected = f"the recorded form of the result of {action.tool}"
        difference = (
            f"{action.tool} was not done"
            if result is None
            else check_result(action.expect or expected_of(result), result)
        )
        if difference:
            raise LeftError(placed.number, expected, difference, place=placed.place)


def _changed_fact(
    placed: PlacedStep, action: RoutineAction, result: CommandResult, tree: Mapping[str, Any]
) -> RoutineMiss | None:
    """Compare the facts after an action with the recorded ones."""
    if action.expect is None or result.status is not ResultStatus.SUCCESS:
        return None
    return changed_fact(placed.number, filled_facts(action.expect.leaves, tree), result.left)


def outcome_of(done: SubtaskResult) -> dict[str, Any]:
    """Return the parts of a subtask's result that references may lead into."""
    return {
        "outcome": done.outcome.value,
        "output": done.output,  # as it is: a copy for each step would cost as much as it is long
        "comment": done.comment,
        **{name: list(getattr(done, name)) for name in ("artifacts", "made", "changed")},
    }


def _with_values(step: RoutineStep, tree: Mapping[str, Any]) -> RoutineStep:
    """Return a step whose guard has the values of this run."""
    controls = tuple(
        [
            control.model_copy(
                update={
                    name: str(resolve(value, tree)) if isinstance(value, str) else value
                    for name, value in control.model_dump().items()
                }
            )
            for control in step.controls
        ]
    )
    return step.model_copy(update={"window": str(resolve(step.window, tree)), "controls": controls})


def _with_checked_end(entries: Sequence[RoutineStep | RoutineLoop]) -> Sequence[RoutineStep | RoutineLoop]:
    """Put the actions of the last step into one before it.

    Their results are then checked before the end.
    """
    last = entries[-1]
    if not isinstance(last, RoutineStep) or last.status != AgentStatus.FINISH or not last.actions:
        return entries
    if _CONTROL.search(str(last.result)):  # after the actions it may be gone
        return entries
    acting = last.model_copy(update={"status": AgentStatus.CONTINUE.value, "result": None})
    return (*entries[:-1], acting, RoutineStep(status=last.status, result=last.result))


def _controls_of(action: RoutineAction) -> set[int]:
    """Return the places of the controls that an action names."""
    named = {int(number) for number in _CONTROL.findall(str(action.arguments))}
    return named if action.control is None else named | {action.control}


def _call(action: RoutineAction, found: Sequence[Control], tree: Mapping[str, Any]) -> dict[str, Any]:
    call = {"function": action.tool, "arguments": resolve(action.arguments, tree)}
    if action.control is None:
        return call
    control = found[action.control]
    return {**call, "control_id": control.id, "control_name": control.name}
