"""Rounds and subtasks: assignments of HostAgents, and endings of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.root._run_endings import AgentlessRun
from callboard.messages import Assign, Cancel, EventName, Outcome, RoundEnding, SubtaskEnding

if TYPE_CHECKING:
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._run_endings import RunEnd, RunEndings
    from callboard.actors.root._subtask_groups import SubtaskGroups
    from callboard.actors.root._task_control import TaskControl
    from callboard.actors.root._task_end import TaskEnd
    from callboard.actors.root._tasks import TaskBook, TaskRecord


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """Begin rounds and subtasks, and take their endings.

    Runs on the root's thread.
    """

    tasks: TaskBook
    handover: HandOver
    outbox: Outbox
    recorder: Recorder
    run_endings: RunEndings
    task_control: TaskControl
    task_end: TaskEnd
    groups: SubtaskGroups

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(Assign, self._assign)
        dispatch.on(SubtaskEnding, self._end_subtask)
        dispatch.on(RoundEnding, self._end_round)
        dispatch.on(AgentlessRun, self.end_agentless)

    def begin_next(self, record: TaskRecord, *, first: bool = False) -> None:
        """Begin the next round of a task, or its only subtask.

        With `first` it goes to the front of the target's queue.
        """
        assign = record.next_assign()
        if not assign.number:
            self.recorder.emit_of(EventName.ROUND_STARTED, assign, round=record.round, request=assign.request)
        self.handover.queue_run(record, assign, first=first)

    def _assign(self, assign: Assign) -> None:
        """Hand a HostAgent's subtask over."""
        record = self.tasks.get(assign.task_id)
        if record is None or record.stopping is not None:
            self.recorder.stale(assign)
            return
        if record.knows(assign.run_id):
            return  # its HostAgent crashed, and repeats its last message after the restart
        record.runs[assign.run_id] = assign
        self.handover.queue_run(record, assign, is_journaled=True)

    def end(self, ending: RunEnd) -> None:
        """Take the ending of a run."""
        if isinstance(ending, RoundEnding):
            self._end_round(ending)
        else:
            self._end_subtask(ending)

    def end_agentless(self, request: AgentlessRun) -> None:
        """End a run without an agent, as if by its message."""
        ending = self.run_endings.ending(request)
        if ending is not None:
            self.end(ending)

    def _end_subtask(self, ending: SubtaskEnding) -> None:
        record, result = self._running(ending), ending.result
        if record is None:
            return
        self.recorder.ended(record.runs[ending.run_id], result)
        self.handover.leave(record, ending.run_id, ending.token)
        record.end_subtask(result)
        if record.target is None:
            self.outbox.send(record.host, ending.task_id, record.run_id, ending)
        if record.planned or result.outcome is not Outcome.FINISHED:
            self.groups.settle(record)
        self.task_end.end_if_over(record)

    def _end_round(self, ending: RoundEnding) -> None:
        record = self._running(ending)
        if record is None:
            return
        self.recorder.emit_of(
            EventName.ROUND_ENDED,
            record.runs[ending.run_id],
            round=record.round,
            outcome=ending.outcome.value,
            causes=[cause.reason for cause in ending.causes],
        )
        self.handover.leave(record, ending.run_id, ending.token)
        record.end_round(ending)
        if record.stopping is None and ending.outcome is Outcome.FINISHED and record.has_next_round:
            self.begin_next(record, first=True)
            return
        for run in tuple(record.runs.values()):
            orphaned = Cancel(task_id=ending.task_id, run_id=run.run_id, reason="its HostAgent ended")
            self.task_control.cancel_run(record, orphaned)
        self.task_end.end_if_over(record)

    def _running(self, ending: RunEnd) -> TaskRecord | None:
        record = self.tasks.running(ending.task_id, ending.run_id, ending.token)
        if record is None:
            self.recorder.stale(ending)
        return record
