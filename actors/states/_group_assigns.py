"""The assignments of an answer with several subtasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import Assign, AssignGroup, GroupMember

if TYPE_CHECKING:
    from callboard.actors.states._run import Run
    from callboard.messages import Decision, PlannedSubtask


def group_of(run: Run, decision: Decision) -> AssignGroup:
    """Make an answer's assignments, numbered by their places in it."""
    first = run.next_number
    seen = _seen(decision.group)
    assigns = tuple(
        _assigned(run, planned, place, _member(planned, first, seen[place], stops_group=decision.stops_group))
        for place, planned in enumerate(decision.group)
    )
    return AssignGroup(task_id=run.assign.task_id, run_id=run.assign.run_id, assigns=assigns)


def _seen(group: tuple[PlannedSubtask, ...]) -> list[set[int]]:
    """Return the places, from 1, that each comes after, directly or not."""
    seen: list[set[int]] = []
    for planned in group:
        before = {*planned.after, *planned.after_any}
        seen.append(before.union(*(seen[place - 1] for place in before)))
    return seen


def _member(planned: PlannedSubtask, first: int, seen: set[int], *, stops_group: bool) -> GroupMember:
    def numbers(places: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(first + place - 1 for place in places)

    return GroupMember(
        first=first,
        after=numbers(planned.after),
        after_any=numbers(planned.after_any),
        sees=numbers(tuple(sorted(seen))),
        stops_group=stops_group,
    )


def _assigned(run: Run, planned: PlannedSubtask, place: int, member: GroupMember) -> Assign:
    """Make the assignment of the subtask at a place, from 0."""
    assign, number = run.assign, member.first + place
    task = assign.run_id.removesuffix("0")  # a HostAgent's run is number 0 of its task: "task~0"
    return Assign(
        task_id=assign.task_id,
        run_id=f"{task}{number}",
        address=planned.target.address,
        request=planned.request,
        task_request=assign.task_request,
        round=assign.round,
        number=number,
        target=planned.target,
        host=assign.address,
        session=assign.session,
        subtasks=run.subtasks,
        made=run.made,
        dry_run=assign.dry_run,
        limits=assign.limits,
        output_schema=assign.output_schema if assign.plan and place == len(assign.plan) - 1 else None,
        checks=planned.checks,
        member=member,
    )
