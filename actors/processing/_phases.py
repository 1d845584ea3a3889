"""The interfaces of the four phases.

A phase gets the results of earlier phases as arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from callboard.messages import Held

if TYPE_CHECKING:
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, CommandResult, Decision, Observation, StepRecord


@dataclass(frozen=True)
class Acted:
    """The result of ACTION_EXECUTION."""

    decision: Decision
    """The decision; its target is replaced if the actions created one."""
    results: tuple[CommandResult, ...] = ()
    held: tuple[Action, ...] = ()
    """Actions that did not run because of a pause or a missing approval."""
    held_by: Held = Held.NOT
    held_why: str = ""
    """The rule that requires an approval."""
    left: str = ""
    """The surface's fingerprint when a pause held the actions; empty if the surface may change by itself."""


class Collect(Protocol):
    """DATA_COLLECTION: observe the target."""

    async def __call__(self, context: Context, run: Run) -> Observation:
        """Return the observation."""
        ...


class Decide(Protocol):
    """LLM_INTERACTION: ask the model, and check its answer."""

    async def __call__(self, context: Context, run: Run, observation: Observation) -> Decision:
        """Return a decision that is legal in the run's state."""
        ...


class Act(Protocol):
    """ACTION_EXECUTION: run the decided actions that the policy allows."""

    async def __call__(self, context: Context, run: Run, observation: Observation, decision: Decision) -> Acted:
        """Return the results and the held actions."""
        ...


class Remember(Protocol):
    """MEMORY_UPDATE: record the step."""

    async def __call__(self, context: Context, run: Run, observation: Observation, acted: Acted) -> StepRecord:
        """Return the step's record."""
        ...


@dataclass(frozen=True)
class Strategies:
    """One strategy for each phase: level 2 of one kind of agent."""

    collect: Collect
    decide: Decide
    act: Act
    remember: Remember
