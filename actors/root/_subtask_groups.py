"""Subtasks that were assigned together, and the order of their hand-overs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.root._tasks import SettleGroups
from callboard.messages import AssignGroup, Cancel, Outcome, with_results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._task_control import TaskControl
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.messages import Assign, SubtaskResult


@dataclass(frozen=True, kw_only=True, eq=False)
class SubtaskGroups:
    """Hand over the members of groups, in their order.

    A member that can't begin any more is ended. Everything is decided from the task's record alone, so that a restart
    goes on where the last process ended. Runs on the root's thread.
    """

    tasks: TaskBook
    recorder: Recorder
    handover: HandOver
    task_control: TaskControl

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(AssignGroup, self._assign)
        dispatch.on(SettleGroups, self._settle_again)

    def _assign(self, group: AssignGroup) -> None:
        """Take the subtasks of a HostAgent's answer."""
        record = self.tasks.get(group.task_id)
        if record is None or record.stopping is not None:
            self.recorder.stale(group)
            return
        for assign in group.assigns:
            if not record.knows(assign.run_id):  # else its HostAgent crashed, and repeats its last message
                record.runs[assign.run_id] = record.planned[assign.run_id] = assign
                self.recorder.planned(assign)
        self.settle(record)

    def _settle_again(self, request: SettleGroups) -> None:
        record = self.tasks.get(request.task_id)
        if record is not None:
            self.settle(record)

    def settle(self, record: TaskRecord) -> None:
        """End members that can't begin, and hand over ready ones.

        They begin in the order of their numbers, at most `limits.parallel_subtasks` at once.
        """
        if record.stopping is not None or record.lacks:
            return  # a task that lacks something here is settled when it is resumed
        for cancel in self._stops(record):
            self.task_control.cancel_run(record, cancel)
        for assign in sorted(record.planned.values(), key=lambda planned: planned.number):
            results = {result.number: result for result in record.subtasks}
            if not _is_due(assign, results):
                continue
            unfinished = _unfinished_before(assign, results)
            if unfinished is not None:
                reason = f"it comes after subtask {unfinished.number}, which ended as {unfinished.outcome.value}"
                self.task_control.cancel_run(
                    record, Cancel(task_id=assign.task_id, run_id=assign.run_id, reason=reason)
                )
            elif self.handover.has_room(record) and not self.handover.waits_for_sibling(record, assign):
                del record.planned[assign.run_id]
                earlier_results = (*assign.subtasks, *record.subtasks)
                self.handover.queue_run(record, with_results(assign, earlier_results, assign.made))

    def _stops(self, record: TaskRecord) -> Iterator[Cancel]:
        """Cancel the rest of each group that one of its members stops."""
        failures = sorted(
            (result for result in record.subtasks if result.outcome is not Outcome.FINISHED),
            key=lambda result: result.number,
        )
        for run in tuple(record.runs.values()):
            member = run.member
            if member is None or not member.stops_group:
                continue
            failure = next((result for result in failures if result.group == member.first), None)
            if failure is not None and run.run_id not in record.stopped_runs:
                record.stopped_runs.add(run.run_id)
                reason = f"subtask {failure.number} ended as {failure.outcome.value}, which stops its group"
                yield Cancel(task_id=run.task_id, run_id=run.run_id, reason=reason)


def _unfinished_before(assign: Assign, results: dict[int, SubtaskResult]) -> SubtaskResult | None:
    """Return the subtask that had to finish first and did not."""
    after = () if assign.member is None else assign.member.after
    before = (results[number] for number in after if number in results)
    return next((result for result in before if result.outcome is not Outcome.FINISHED), None)


def _is_due(assign: Assign, results: dict[int, SubtaskResult]) -> bool:
    """Return whether all have ended that a member comes after.

    A member that can't begin waits for them, too: its end may be all that another one waits for, which must see the
    same results whenever they ended.
    """
    return assign.member is None or all(number in results for number in assign.member.sees)
