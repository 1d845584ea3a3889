"""Make a routine from the journal of a finished task."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from callboard.messages import (
    OPEN,
    AgentStatus,
    RecordedRun,
    Routine,
    RoutineAssignment,
    RoutineError,
    RoutineParameter,
    RoutineStep,
    RoutineSubtask,
    TargetKind,
    agent_kind,
    plain_problems,
)
from callboard.routines._expected import expected_of
from callboard.routines._followed_part import FollowedPart
from callboard.routines._journaled_task import journaled_task
from callboard.routines._origins import Origins, key_of
from callboard.routines._own_references import OwnReferences
from callboard.routines._parameter_values import ParameterValues
from callboard.routines._proposed_parameters import answered, documents_in, proposed_parameters
from callboard.routines._recording_remarks import remarks_on
from callboard.routines._screen import dialogs_of, window_of
from callboard.routines._step_draft import StepDraft
from callboard.routines._steps_writer import StepsWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.journal import Row
    from callboard.messages import Action, Assign, Check, CommandResult, Target, Task
    from callboard.routines._journaled_task import JournaledRun, JournaledStep, JournaledTask


@dataclass(frozen=True)
class RoutineRecording:
    """A routine that was made from a task."""

    routine: Routine
    remarks: tuple[str, ...] = ()
    """Remarks for the person who saves it: parts that may not fit other data."""
    old_data: tuple[str, ...] = ()
    """Remarks on lists that hold data of this run, which each repetition would hand over: reasons not to save it."""
    proposals: dict[str, str] = field(default_factory=dict)
    """Values of the request that may be parameters, by a proposed name."""


def record(rows: Iterable[Row], *, name: str, parameters: Mapping[str, str] | None = None) -> RoutineRecording:
    """Make a routine from the rows of a finished task.

    The names of its documents are parameters, whether they are given or not.

    Args:
        rows: All rows of the task.
        name: The routine's name.
        parameters: The values that differ from run to run, by name.

    Raises:
        RoutineError: If no routine can be made of the task, or a parameter's value does not occur in it.
    """
    task = journaled_task(rows)
    given = dict(parameters or {})
    asked = answered(task, given)
    documents = documents_in(task, given)
    values = {**given, **asked, **documents}
    return RoutineRecorder(task, values, name).recording(set(given), documents, asked)


class RoutineRecorder:
    """Writes one task as a routine."""

    def __init__(
        self,
        task: JournaledTask,
        values: Mapping[str, str],
        name: str,
        *,
        lists: Mapping[str, JsonValue] = MappingProxyType({}),
        followed: Mapping[int, FollowedPart] = MappingProxyType({}),
    ) -> None:
        """Create it.

        Args:
            task: The task.
            values: The values of the parameters that are texts, by name.
            name: The routine's name.
            lists: The values of the parameters that are lists.
            followed: The parts that stay as a routine has them, by the number of the run.
        """
        self._task = task
        self._name = name
        self._values = dict(values)
        self._lists, self._followed = lists, followed
        self._parameters = ParameterValues(values)
        self._new_numbers = {run.assign.number: new for new, run in enumerate(task.subtasks, 1)}
        self._unseen: list[str] = []
        self._old_data: list[str] = []

    def recording(self, given: set[str], documents: Mapping[str, str], asked: Mapping[str, str]) -> RoutineRecording:
        """Return the routine, with remarks and proposals."""
        task, result = self._task.task, self._task.result
        request = _request_of(task)
        routine = Routine(
            routine="recorded",
            request=self._parameters.inside(request),
            host=() if self._task.host is None else self._host_steps(self._task.host),
            subtasks=tuple(map(self._subtask, self._task.subtasks)),
            checks=tuple(self._check(check) for check in task.all_checks),
            recorded=RecordedRun(
                task=task.id,
                verified=result.verified is True,
                model_calls=result.usage.model_calls,
                cost=result.usage.cost,
                seconds=round(result.seconds, 3),
            ),
        )
        text = routine.model_dump_json()
        unused = next((name for name in given if f"${{{name}}}" not in text), None)
        if unused is not None:
            msg = (
                f"the parameter {unused}: {self._values[unused]!r} occurs in no request, target, argument or check of "
                f"the task {task.id}: give the value as it was there"
            )
            raise RoutineError(msg)
        questions = {answer: question for question, answer in self._task.answers}
        made = {
            name: RoutineParameter(
                value=value, document=name in documents, description=questions.get(value, "") if name in asked else ""
            )
            for name, value in self._values.items()
            if f"${{{name}}}" in text
        }
        routine = _validated({**dict(routine), "routine": self._name, "parameters": made})
        proposals = proposed_parameters(self._task, request, self._values)
        remarks = tuple(remarks_on(routine, self._task, self._unseen))
        return RoutineRecording(routine, remarks, tuple(self._old_data), proposals)

    def _check(self, check: Check) -> dict[str, JsonValue]:
        content = check.model_dump(mode="json", exclude_defaults=True)
        return {key: self._parameters.throughout(value) for key, value in content.items()}

    def _subtask(self, run: JournaledRun) -> RoutineSubtask:
        return RoutineSubtask(
            target=self._target(run.assign),
            kind=agent_kind(run.assign.address),
            request=self._parameters.inside(run.assign.request),
            steps=self._steps(run, run.steps, frozenset(run.sees)),
        )

    def _target(self, assign: Assign) -> str:
        """Name the target of a subtask.

        A window that has another id in each run is named by the step that opened it.
        """
        target = assign.target
        if target is None:
            msg = f"subtask {assign.number} of the task {assign.task_id} has no target in the journal"
            raise RoutineError(msg)
        host = self._task.host
        if host is None or "document" in target.binds:
            return self._parameters.inside(target.id)
        number = 0
        for step in self._host_kept(host):
            number += 1
            for place, (action, result) in enumerate(step.calls):
                window = result.value.get("id") if isinstance(result.value, dict) else None
                if window != target.id:
                    continue
                if step.record.decision.status == AgentStatus.ASSIGN:  # opened for this subtask
                    return self._parameters.inside(_application(step, action) or target.id)
                return f"${{steps.{number}.results.{place}.value.id}}"
        return self._parameters.inside(target.id)

    def _host_kept(self, host: JournaledRun) -> list[JournaledStep]:
        return [step for step in host.steps if self._kept(host, step)]

    def _host_steps(self, host: JournaledRun) -> Any:
        assigned = _assignments(self._task, host)
        entries = self._steps(host, self._host_kept(host), frozenset(), assigned)
        last = entries[-1] if entries else None
        if isinstance(last, RoutineStep) and last.status == AgentStatus.FINISH:
            result = self._handed_over(last.result) or last.result
            return (*entries[:-1], last.model_copy(update={"result": result}))
        result = self._handed_over(self._task.result.output) or None  # of a plan, whose rounds end with their subtasks
        return (*entries, RoutineStep(status=AgentStatus.FINISH.value, result=result))

    def _handed_over(self, result: JsonValue) -> str:
        """Return the reference to the last subtask's output.

        It is empty if the task has another result.
        """
        done = self._task.subtasks[-1].result
        same = done is not None and result is not None and key_of(done.output) == key_of(result)
        return f"${{subtasks.{len(self._task.subtasks)}.output}}" if same else ""

    def _kept(self, run: JournaledRun, step: JournaledStep) -> bool:
        decision = step.record.decision
        if step.calls or step.final:
            return True
        if decision.status == AgentStatus.ASSIGN:
            return any(number in self._new_numbers for number in _assignments(self._task, run)[id(step)])
        return not decision.actions and decision.status not in {AgentStatus.FINISH, AgentStatus.PENDING}

    def _steps(
        self,
        run: JournaledRun,
        steps: Iterable[JournaledStep],
        visible: frozenset[int],
        assigned: Mapping[int, list[int]] | None = None,
    ) -> Any:
        kept = [step for step in steps if self._kept(run, step)]
        origins = Origins()
        for name, value in self._lists.items():
            origins.add_parameter(name, value)
        for subtask in self._task.subtasks:
            number, result = subtask.assign.number, subtask.result
            if result is not None and (run.assign.number == 0 or number in visible):
                origins.add_output(number, self._new_numbers[number], result.output)
        drafts = []
        for index, step in enumerate(kept):
            origins.add_screen(index, step.record.observation)
            drafts.append(self._draft(run, kept, index, visible, assigned))
            origins.add_step(index, self._calls(run, step))
        followed = self._followed.get(run.assign.number, FollowedPart())
        writer = StepsWriter(drafts, origins, self._parameters)
        entries = writer.entries(followed, kept)
        agent = f"subtasks.{self._new_numbers[run.assign.number]}.steps" if run.assign.number else "host"
        self._old_data += [
            f"{agent}.{data.tail} holds {data.number} values that were read in this run, such as {data.sample!r}: each "
            "repetition would hand over this old data; let the model refer to results, or a step for each item"
            for data in writer.old_data
        ]
        return entries

    def _calls(self, run: JournaledRun, step: JournaledStep) -> list[tuple[Action, CommandResult]]:
        """Return the actions to repeat: not those that an assignment makes itself."""
        if run.assign.number or step.record.decision.status != AgentStatus.ASSIGN:
            return step.calls
        return [call for call in step.calls if not (call[1].opens and _application(step, call[0]))]

    def _draft(
        self,
        run: JournaledRun,
        kept: list[JournaledStep],
        index: int,
        visible: frozenset[int],
        assigned: Mapping[int, list[int]] | None,
    ) -> StepDraft:
        step = kept[index]
        decision, observation = step.record.decision, step.record.observation
        is_host = not run.assign.number
        own = OwnReferences(run, kept, index, self._new_numbers)
        status = decision.status
        if (status == AgentStatus.FINISH and not step.final) or status == AgentStatus.PENDING:
            status = AgentStatus.CONTINUE.value
        draft = StepDraft(
            index,
            str(status),
            observation,
            thought=decision.thought,
            window="" if is_host else window_of(observation, run.assign.target),
            dialogs=() if is_host else dialogs_of(observation),
            result=decision.result if status == AgentStatus.FINISH else None,
            own_result=own.result,
            looked_different=not is_host and _differs(kept[index : index + 2]),
            visible=frozenset(step.ended) if is_host else visible,
        )
        if assigned is not None and status == AgentStatus.ASSIGN:
            draft.assign = self._assignments(step, assigned[id(step)])
            draft.stops_group = decision.stops_group and len(draft.assign) > 1
        for action, result in self._calls(run, step):
            hazards = self._task.hazards_of(run, step, action.tool)
            if not draft.add(action, expected_of(result), own.of(action), hazards, result.relied_on):
                self._unseen.append(f"{run.assign.address}, step {step.record.step}: {action.tool}")
        return draft

    def _assignments(self, step: JournaledStep, numbers: list[int]) -> tuple[RoutineAssignment, ...]:
        group = step.record.decision.group
        kept = [place for place, number in enumerate(numbers, 1) if number in self._new_numbers]
        places = {place: new for new, place in enumerate(kept, 1)}
        return tuple(
            RoutineAssignment(
                subtask=self._new_numbers[numbers[place - 1]],
                after=tuple(places[before] for before in group[place - 1].after if before in places) if group else (),
                after_any=tuple(places[before] for before in group[place - 1].after_any if before in places)
                if group
                else (),
            )
            for place in kept
        )


def _validated(fields: Mapping[str, Any]) -> Routine:
    """Return a routine, if the names that the caller chose are valid.

    Raises:
        RoutineError: If they are not.
    """
    try:
        return Routine.model_validate(fields)
    except ValidationError as error:
        raise RoutineError("\n".join(plain_problems(error.errors(include_url=False)))) from None


def _request_of(task: Task) -> str:
    return task.request if task.request.strip() else "; ".join(step.request for step in task.plan)


def _application(step: JournaledStep, action: Action) -> str:
    """Return the application that an assignment started; or empty."""
    values = {value for value in action.arguments.values() if isinstance(value, str)}

    def starts(target: Target) -> bool:
        tools = {target.start, f"{OPEN}{target.server}"}
        is_application = target.kind is TargetKind.APPLICATION and action.tool in tools
        return is_application and not values.isdisjoint({target.id, target.name})

    return next((target.id for target in step.record.observation.targets if starts(target)), "")


def _assignments(task: JournaledTask, host: JournaledRun) -> dict[int, list[int]]:
    """Return the subtasks of each ASSIGN, by the identity of its step."""
    numbers = sorted(run.assign.number for run in (*task.subtasks, *task.left_out))
    assigned: dict[int, list[int]] = {}
    for step in host.steps:
        if step.record.decision.status == AgentStatus.ASSIGN:
            count = len(step.record.decision.group) or 1
            assigned[id(step)], numbers = numbers[:count], numbers[count:]
    return assigned


def _differs(steps: Sequence[JournaledStep]) -> bool:
    """Return whether the surface looked different at the second of two steps."""
    looks = [step.record.observation.fingerprint for step in steps]
    return len(looks) == 2 and looks[0] != looks[1]
