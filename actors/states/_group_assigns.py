"""The assignments of an answer with several subtasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import Assign, AssignGroup, GroupMember

if TYPE_CHECKING:
    from callboard.actors.states._run import Run
    from callboard.messages import Decision, PlannedSubtask, Target


def group_of(run: Run, decision: Decision) -> AssignGroup:
    """Make an answer's assignments, numbered by their positions in it."""
    first = run.next_number
    assigns = tuple(
        _assigned(run, planned, index, _member(planned, first, before, stops_group=decision.stops_group))
        for index, (planned, before) in enumerate(zip(decision.group, earlier_positions(decision.group), strict=True))
    )
    return AssignGroup(task_id=run.assign.task_id, run_id=run.assign.run_id, assigns=assigns)


def earlier_positions(group: tuple[PlannedSubtask, ...]) -> list[set[int]]:
    """Return the positions, from 1, that each comes after, directly or not."""
    ancestors: list[set[int]] = []
    for planned in group:
        parents = {*planned.after, *planned.after_any}
        ancestors.append(parents.union(*(ancestors[position - 1] for position in parents)))
    return ancestors


def _member(planned: PlannedSubtask, first: int, before: set[int], *, stops_group: bool) -> GroupMember:
    def numbers(positions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(first + position - 1 for position in positions)

    return GroupMember(
        first=first,
        after=numbers(planned.after),
        after_any=numbers(planned.after_any),
        sees=numbers(tuple(sorted(before))),
        stops_group=stops_group,
    )


def assignment(run: Run, request: str, target: Target, number: int) -> Assign:
    """Make the assignment of a HostAgent's subtask."""
    assign = run.assign
    task = assign.run_id.removesuffix("0")  # a HostAgent's run is number 0 of its task: "task~0"
    run_id = f"{task}{number}"
    target = target.of_run(run_id)
    return Assign(
        task_id=assign.task_id,
        run_id=run_id,
        address=target.address,
        request=request,
        task_request=assign.task_request,
        round=assign.round,
        number=number,
        target=target,
        host=assign.address,
        session=assign.session,
        subtasks=run.subtasks,
        made=run.made,
        dry_run=assign.dry_run,
        limits=assign.limits,
    )


def _assigned(run: Run, planned: PlannedSubtask, index: int, member: GroupMember) -> Assign:
    """Make a member's assignment; the first has the index 0."""
    ends_plan = index == len(run.assign.plan) - 1
    changes = {
        "output_schema": run.assign.output_schema if ends_plan else None,
        "checks": planned.checks,
        "member": member,
    }
    return assignment(run, planned.request, planned.target, member.first + index).model_copy(update=changes)
