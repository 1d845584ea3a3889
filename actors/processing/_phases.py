"""The four phases, typed: what one needs from another is an argument."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

from callboard.actors.commands import stopped
from callboard.actors.journal import Row
from callboard.actors.models import OperatorResponse
from callboard.actors.processing._asking import PeopleLine
from callboard.actors.processing._shared import SharedNotes
from callboard.actors.processing._targets import ListedTargets
from callboard.messages import AgentKind, EventName, Held, LeaseVoidError, Usage, maker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import JsonValue

    from callboard.actors.commands import Approved, Dispatcher, Policy, Secrets, Toolbox
    from callboard.actors.journal import Journal
    from callboard.actors.models import Model
    from callboard.actors.processing._spec import AgentSpec
    from callboard.actors.runtime import BudgetNode, Budgets, Clock, EffectGuard, EventStream, Lanes, Lease, TimeLimit
    from callboard.actors.states import AgentStateManager, OnTheWay, Run, Unfinished
    from callboard.config import Settings
    from callboard.messages import (
        Action,
        Command,
        CommandResult,
        Decision,
        Observation,
        StepRecord,
    )


@dataclass(frozen=True)
class Services:
    """What the strategies work with; one for each supervisor."""

    settings: Settings
    models: Mapping[str, Model]
    toolbox: Toolbox
    dispatcher: Dispatcher
    policy: Policy
    approved: Approved
    secrets: Secrets
    budgets: Budgets
    lanes: Lanes
    stream: EventStream
    journal: Journal
    clock: Clock
    prompts: Mapping[str, str]
    agents: Mapping[str, AgentSpec]
    """The kinds of agents that there are, by name."""
    shared: SharedNotes = field(default_factory=SharedNotes)
    people: PeopleLine = field(default_factory=PeopleLine)
    listed: ListedTargets = field(default_factory=ListedTargets)


_usage = maker(Usage)


@dataclass
class Meter:
    """Counts what one step uses, so that nothing is lost when a phase fails."""

    amounts: defaultdict[str, float] = field(default_factory=partial(defaultdict, int))
    """What was used, by the fields of `Usage`."""
    ran: list[tuple[CommandResult, Mapping[str, JsonValue]]] = field(default_factory=list)
    """What was done so far: the results, each with the arguments of its call."""
    start: float = 0.0
    """When the step began, by `time.perf_counter`."""
    running: Command | None = None
    """The command that runs now."""
    sent_back: bool = False
    """Whether a FINISH was sent back, because nothing had been done."""
    seen: Observation | None = None
    """What the step saw at its beginning."""
    limit: TimeLimit | None = None
    """The step's time limit; it stands still while a call asks a person."""
    phases: list[dict[str, Any]] = field(default_factory=list)
    """The phases that ended: of each its name, when it ended, how long it took, and its error if it failed."""
    doubt: CommandResult | None = None
    """What is known of a command that a crash broke off, until it is known whether it was done."""

    @classmethod
    def going_on(cls, left: Unfinished) -> Self:
        """Begin with what a step had used and done before a crash; that the step itself counts is left to its job."""
        used = left.usage.model_dump(exclude={"steps"})
        amounts = defaultdict(int, {kind: amount for kind, amount in used.items() if amount})
        return cls(amounts, [(result, result.arguments) for result in left.ran], doubt=left.in_doubt)

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return _usage(**self.amounts)

    def timed(self) -> Usage:
        """Give what was used since the step began, and the seconds since then."""
        return _usage(**self.amounts, seconds=time.perf_counter() - self.start)

    def done(self, guard: EffectGuard | None) -> tuple[CommandResult, ...]:
        """Give the results so far; of a command that is being broken off, the files that it wrote."""
        told = [result.model_copy(update={"arguments": given}) for result, given in self.ran]
        results = {result.call_id: result for result in told}
        if self.doubt is not None:
            results.setdefault(self.doubt.call_id, self.doubt)
        running = self.running
        if running is not None and guard is not None:
            results.setdefault(running.call_id, stopped(running, guard))
        return tuple(results.values())


@dataclass(frozen=True)
class Context:
    """What a step runs with: the agent's kind and machine, and the lease under which it may act."""

    services: Services
    kind: str
    manager: type[AgentStateManager]
    lease: Lease
    meter: Meter = field(default_factory=Meter)
    budget: BudgetNode | None = None
    """What this step may use; None outside a step."""

    @property
    def spec(self) -> AgentSpec:
        """The agent's kind, as one value."""
        return self.services.agents[self.kind]

    @property
    def is_host(self) -> bool:
        """Whether the agent is a HostAgent; all other kinds work on a target."""
        return self.kind == AgentKind.HOST

    @property
    def is_operator(self) -> bool:
        """Whether the agent is an operator: its model sees the target's picture, and no list of controls."""
        return self.kind == AgentKind.OPERATOR or issubclass(self.spec.response, OperatorResponse)

    def tell(self, name: EventName, run: Run, **data: Any) -> None:
        """Emit an event about a step, with where it happened."""
        self.services.stream.emit(
            name,
            task_id=run.assign.task_id,
            run_id=run.assign.run_id,
            agent=run.assign.address,
            state=run.status,
            step=run.steps + 1,
            **data,
        )

    def tell_phases(self, run: Run) -> None:
        """Tell the phases by themselves: no end of a step will tell them."""
        tell_phases(self.services.stream.emit, run, self.meter.phases)
        self.meter.phases.clear()

    def note(self, run: Run, note: OnTheWay, *, lazy: bool = False) -> None:
        """Note in the journal how far a step is; a `lazy` note may wait for the next one that is needed."""
        if self.lease.valid:  # what comes later than its cancel counts for nothing
            self.services.journal.append([self._row(run, note)], lazy=lazy)

    async def keep(self, run: Run, note: OnTheWay) -> None:
        """Note it, and wait until the note is safe.

        Raises:
            LeaseVoidError: If it is too late for what it announces.
            JournalError: If it can't be kept; what it announces must not be done.
        """
        if not self.lease.valid:
            msg = f"{run.assign.run_id} was ended, or given to another agent, before this step acted"
            raise LeaseVoidError(msg)
        await self.services.journal.keep(self._row(run, note))

    def keep_now(self, run: Run, note: OnTheWay) -> None:
        """Note it on a tool's thread, and block until the note is safe.

        Raises:
            JournalError: If it can't be kept.
        """
        self.services.journal.keep_now(self._row(run, note))

    def _row(self, run: Run, note: OnTheWay) -> Row:
        services, assign = self.services, run.assign
        seen = services.secrets.redact(assign.task_id, note) if services.secrets.known else note
        return Row(services.clock.steady(), assign.task_id, assign.run_id, seen, run.job)


def tell_phases(emit: Callable[..., None], run: Run, phases: Iterable[Mapping[str, Any]]) -> None:
    """Emit an event for each phase of a run that no end of a step tells."""
    for ended in phases:
        emit(
            EventName.PHASE_ENDED,
            task_id=run.assign.task_id,
            run_id=run.assign.run_id,
            agent=run.assign.address,
            state=run.status,
            step=run.steps + 1,
            phase=ended["phase"],
            duration=ended["duration"],
            **({"error": ended["error"]} if "error" in ended else {}),
        )


@dataclass(frozen=True)
class Acted:
    """What ACTION_EXECUTION hands on."""

    decision: Decision
    """As decided, but for a target that the actions made."""
    results: tuple[CommandResult, ...] = ()
    held: tuple[Action, ...] = ()
    """What was not run, because it needs approval."""
    held_by: Held = Held.NOT
    held_why: str = ""
    """The rule that wants an approval."""
    left: str = ""
    """Of what a pause holds: the fingerprint of the surface as it was left; empty if it may change of itself."""


class Collect(Protocol):
    """DATA_COLLECTION: look."""

    async def __call__(self, context: Context, run: Run) -> Observation:
        """Give what there is to see."""
        ...


class Decide(Protocol):
    """LLM_INTERACTION: ask the model, and check its answer."""

    async def __call__(self, context: Context, run: Run, observation: Observation) -> Decision:
        """Give a decision that is legal in the run's state."""
        ...


class Act(Protocol):
    """ACTION_EXECUTION: do what was decided, as far as the policy allows."""

    async def __call__(self, context: Context, run: Run, observation: Observation, decision: Decision) -> Acted:
        """Give what was done and what is held back."""
        ...


class Remember(Protocol):
    """MEMORY_UPDATE: keep what happened."""

    async def __call__(self, context: Context, run: Run, observation: Observation, acted: Acted) -> StepRecord:
        """Give the step's record."""
        ...


@dataclass(frozen=True)
class Strategies:
    """One strategy for each phase: level 2 of one kind of agent."""

    collect: Collect
    decide: Decide
    act: Act
    remember: Remember
