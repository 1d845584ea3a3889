"""Propose changes of routines from runs that models repaired."""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.messages import Routine, RoutineMiss, Task
from callboard.models import resolve
from callboard.routines._followed_part import FollowedPart, followed_part
from callboard.routines._follower import RoutineFollower, outcome_of
from callboard.routines._journaled_task import journaled_task
from callboard.routines._proposed_parameters import answered, documents_in
from callboard.routines._readable_yaml import dump
from callboard.routines._recording import RoutineRecorder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.journal import Row
    from callboard.messages import RoutineStep, RoutineSubtask
    from callboard.routines._journaled_task import JournaledRun, JournaledTask

_OF_ONE_RUN = frozenset({"why", "id", "alike", "elsewhere", "before", "after", "proposal_for", "recorded"})
"""The members of a repair that may differ between two runs with the same repair."""


@dataclass(frozen=True)
class RoutineProposal:
    """A change of a routine that a model's repair proposes."""

    task: str
    """The id of the task that was repaired."""
    file: str
    """The routine's file; empty if the program had none."""
    routine: Routine
    """The routine that the task repeated."""
    proposed: Routine
    """The routine with the repair."""
    misses: tuple[RoutineMiss, ...] = ()
    """The steps that missed, the HostAgent's first."""
    verified: bool = False
    """Whether all checks of the task held."""
    remarks: tuple[str, ...] = ()
    """The parts that may not fit other data."""

    @property
    def difference(self) -> str:
        """The change as a unified difference of YAML; empty without one."""
        return difference(self.routine, self.proposed)

    @property
    def fingerprint(self) -> str:
        """A text that is equal for equal repairs, whatever the runs' values."""
        content = _without(self.proposed.model_dump(mode="json", exclude_defaults=True))
        text = json.dumps([self.routine.digest, content], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def difference(old: Routine, new: Routine) -> str:
    """Return the difference of two routines as a unified difference of YAML."""
    name = f"{old.routine}.routine"
    before, after = (dump(routine.model_copy(update={"proposal_for": ""})).splitlines()[1:] for routine in (old, new))
    lines = difflib.unified_diff(before, after, f"{name}.yaml", f"{name}.proposed.yaml", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def propose(rows: Iterable[Row]) -> RoutineProposal | None:
    """Propose a change of a routine from a task that models repaired.

    Everything that was repeated stays as it is written: the request, parameters, checks, subtasks, and within a
    repaired subtask the steps and loops before the one that missed. Programs that embed Callboard call it with the rows
    of `JournalReader.rows`, and write the proposal by `write_proposal`::

        with JournalReader.open(path) as reader:
            proposal = propose(reader.rows(task_id))

    Args:
        rows: All rows of the task, its events included: they have the hazards of its calls.

    Returns:
        The proposal; None if the task repeats no routine, or no model went on after a miss.

    Raises:
        RoutineError: If no routine can be made of the task, for instance because it did not finish.
    """
    journaled_rows = list(rows)
    task = next((row.message for row in journaled_rows if isinstance(row.message, Task)), None)
    if task is None or not isinstance(task.routine, Routine):
        return None
    missed = any(getattr(row.message, "routine_miss", None) is not None for row in journaled_rows)
    return _Repair(task, task.routine, journaled_task(journaled_rows)).proposal() if missed else None


class _Repair:
    """Joins the followed parts of a routine with a run's recorded ones."""

    def __init__(self, task: Task, routine: Routine, journaled: JournaledTask) -> None:
        self._task = task
        self._routine = routine
        self._journaled = journaled
        self._values = routine.values(task.parameters)
        self._follower = RoutineFollower(routine, self._values)
        self._aligned = self._count_aligned()

    def proposal(self) -> RoutineProposal | None:
        repaired = [run for run in self._journaled.runs if not _was_followed(run)]
        if not repaired:
            return None
        texts = {name: value for name, value in self._values.items() if isinstance(value, str) and value}
        asked = answered(self._journaled, texts)
        documents = documents_in(self._journaled, texts)
        recorder = RoutineRecorder(
            self._journaled,
            {**texts, **asked, **documents},
            self._routine.routine,
            lists={name: value for name, value in self._values.items() if isinstance(value, list | dict)},
            followed={run.assign.number: self._followed(run) for run in repaired},
        )
        recording = recorder.recording(set(), documents, asked)
        return RoutineProposal(
            task=self._task.id,
            file=self._task.routine_file,
            routine=self._routine,
            proposed=self._joined(recording.routine),
            misses=tuple(self._journaled.misses.values()),
            verified=self._journaled.result.verified is True,
            remarks=(*recording.old_data, *recording.remarks),
        )

    def _joined(self, recorded: Routine) -> Routine:
        host = self._journaled.host
        subtasks = tuple(
            self._subtask(index, run, recorded.subtasks[index]) for index, run in enumerate(self._journaled.subtasks)
        )
        kept_host = host is None or (_was_followed(host) and self._aligned == len(self._routine.subtasks))
        content: dict[str, Any] = {
            **dict(self._routine),
            "parameters": {**recorded.parameters, **self._routine.parameters},
            "host": self._routine.host if kept_host else recorded.host,
            "subtasks": subtasks,
            "proposal_for": self._routine.digest,
        }
        proposed = Routine.model_validate(content)
        used = proposed.model_dump_json(exclude={"parameters"})
        parameters = {
            name: parameter
            for name, parameter in proposed.parameters.items()
            if name in self._routine.parameters or f"${{{name}}}" in used
        }
        return proposed.model_copy(update={"parameters": parameters})

    def _subtask(self, index: int, run: JournaledRun, recorded: RoutineSubtask) -> RoutineSubtask:
        if index >= self._aligned:
            return recorded
        written = self._routine.subtasks[index]
        return written if _was_followed(run) else written.model_copy(update={"steps": recorded.steps})

    def _count_aligned(self) -> int:
        """Count the first subtasks that are those of the routine."""
        for index, run in enumerate(self._journaled.subtasks):
            target = "" if run.assign.target is None else run.assign.target.id
            there = index < len(self._routine.subtasks)
            if not there or self._follower.index_of(run.assign.number, run.assign.request) != index:
                return index
            if resolve(self._routine.subtasks[index].target, self._values) != target:
                return index
        return len(self._journaled.subtasks)

    def _followed(self, run: JournaledRun) -> FollowedPart:
        miss = self._journaled.misses.get(run.assign.run_id)
        tree = {**self._values, "subtasks": self._outcomes()}
        if run is self._journaled.host:
            missed = miss.step if miss is not None else 1
            return followed_part(self._routine.host, run, tree, missed, self._assigns_aligned)
        index = self._journaled.subtasks.index(run)
        if index >= self._aligned or miss is None:
            return FollowedPart()
        return followed_part(self._routine.subtasks[index].steps, run, tree, miss.step)

    def _assigns_aligned(self, step: RoutineStep) -> bool:
        return all(part.subtask <= self._aligned for part in step.assign)

    def _outcomes(self) -> dict[str, Any]:
        results = enumerate(run.result for run in self._journaled.subtasks[: self._aligned])
        return {str(index + 1): outcome_of(result) for index, result in results if result is not None}


def _was_followed(run: JournaledRun) -> bool:
    """Return whether the routine gave all answers of a run."""
    return all(step.record.decision.routine_step for step in run.steps)


def _without(value: Any) -> Any:
    """Leave out the members that belong to one run."""
    if isinstance(value, dict):
        return {key: _without(part) for key, part in value.items() if key not in _OF_ONE_RUN}
    return [_without(part) for part in value] if isinstance(value, list) else value
