"""The part of a routine's list that a run repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.messages import AgentStatus, steps_of
from callboard.routines._filling import placed_step
from callboard.routines._origins import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.messages import RoutineLoop, RoutineStep
    from callboard.routines._journaled_task import JournaledRun, JournaledStep


@dataclass(frozen=True)
class FollowedPart:
    """Entries that stay as written when the rest is recorded."""

    entries: tuple[RoutineStep | RoutineLoop, ...] = ()
    numbers: dict[int, int] = field(default_factory=dict)
    """The number of each step in the list, from 1, by its place in the run."""

    @property
    def size(self) -> int:
        """The number of steps in the list."""
        return len(steps_of(*self.entries))

    @property
    def literals(self) -> set[str]:
        """The texts that they have as they are, in place of references."""
        actions = (action for step in steps_of(*self.entries) for action in step.actions)
        values = (value for action in actions for _, value in parts("", action.arguments))
        return {value for value in values if isinstance(value, str) and "${" not in value}

    def among(self, kept: Sequence[JournaledStep]) -> tuple[int, dict[int, int]]:
        """Count its steps among a run's recorded ones, and number them.

        Of a loop, only the latest steps can be named after it.
        """
        places = [step.record.decision.routine_step for step in kept]
        latest = {self.numbers[place]: index for index, place in enumerate(places) if place in self.numbers}
        return sum(place in self.numbers for place in places), {index: number for number, index in latest.items()}


def followed_part(
    entries: Sequence[RoutineStep | RoutineLoop],
    run: JournaledRun,
    tree: dict[str, Any],
    missed: int,
    fits: Callable[[RoutineStep], bool] = lambda _: True,
) -> FollowedPart:
    """Find the entries before the one in which a run missed.

    Args:
        entries: The written list.
        run: The run that repeated it.
        tree: The values that references stand for.
        missed: The number of the step whose guard did not hold, or after which the result had another form.
        fits: Tells whether a step may stay as it is written.
    """
    kept: list[RoutineStep | RoutineLoop] = []
    size = 0
    for entry in entries:
        steps = steps_of(entry)
        ends = any(step.status == AgentStatus.FINISH for step in steps)
        if size + len(steps) >= missed or ends or not all(map(fits, steps)):
            break
        kept.append(entry)
        size += len(steps)
    results = {step.record.decision.routine_step: [result for _, result in step.calls] for step in run.steps}
    placed = (placed_step(kept, place, {**tree, "steps": {}}, results.get) for place in results if place)
    return FollowedPart(tuple(kept), {step.place: step.number for step in placed if step is not None})
