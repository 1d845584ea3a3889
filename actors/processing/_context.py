"""The context of a step, and its counters of usage."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from callboard.actors.commands import stopped
from callboard.journal import Row
from callboard.messages import AgentKind, EventName, Usage, maker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import JsonValue

    from callboard.actors.processing._services import AgentTraits, Services
    from callboard.actors.runtime import BudgetNode, Lease, TimeLimit
    from callboard.actors.states import AgentStateManager, OnTheWay, Run, Unfinished
    from callboard.messages import Command, CommandResult, Observation
    from callboard.surfaces import EffectGuard

_usage = maker(Usage)


@dataclass
class Meter:
    """Usage counters of one step, which survive the failure of a phase."""

    amounts: defaultdict[str, float] = field(default_factory=partial(defaultdict, int))
    """Amounts used, by field of `Usage`."""
    ran: list[tuple[CommandResult, Mapping[str, JsonValue]]] = field(default_factory=list)
    """The results so far, each with the arguments of its call."""
    start: float = 0.0
    """Start of the step, by `time.perf_counter`."""
    running: Command | None = None
    """The running command."""
    sent_back: bool = False
    """Whether a FINISH was sent back."""
    omitted: bool = False
    """Whether it was sent back because it omitted a part of the request."""
    seen: Observation | None = None
    """The observation taken at the start of the step."""
    limit: TimeLimit | None = None
    """The step's time limit; it is suspended while a call waits for a person."""
    phases: list[dict[str, Any]] = field(default_factory=list)
    """The phases that ended: the name, end time and duration of each, and the error if it failed."""
    doubt: CommandResult | None = None
    """The partial result of a command interrupted by a crash, until its outcome is known."""

    @classmethod
    def resumed(cls, unfinished: Unfinished) -> Self:
        """Restore the usage and results that a step had before a crash.

        The step itself is not counted here: its job does that.
        """
        used = unfinished.usage.model_dump(exclude={"steps"})
        amounts = defaultdict(int, {kind: amount for kind, amount in used.items() if amount})
        return cls(amounts, [(result, result.arguments) for result in unfinished.ran], doubt=unfinished.in_doubt)

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return _usage(**self.amounts)

    def timed(self) -> Usage:
        """Return the usage of the step, including the seconds since it began."""
        return _usage(**self.amounts, seconds=time.perf_counter() - self.start)

    def done(self, guard: EffectGuard | None) -> tuple[CommandResult, ...]:
        """Return the results so far, including those of a command being cancelled."""
        finished = [result.model_copy(update={"arguments": arguments}) for result, arguments in self.ran]
        results = {result.call_id: result for result in finished}
        if self.doubt is not None:
            results.setdefault(self.doubt.call_id, self.doubt)
        running = self.running
        if running is not None and guard is not None:
            results.setdefault(running.call_id, stopped(running, guard))
        return tuple(results.values())


@dataclass(frozen=True)
class Context:
    """The context of a step: the agent's kind, machine and lease."""

    services: Services
    kind: str
    manager: type[AgentStateManager]
    lease: Lease
    meter: Meter = field(default_factory=Meter)
    budget: BudgetNode | None = None
    """The step's budget; None outside a step."""

    @property
    def spec(self) -> AgentTraits:
        """The specification of the agent's kind."""
        return self.services.agents[self.kind]

    @property
    def is_host(self) -> bool:
        """True for a HostAgent; all other kinds work on a target."""
        return self.kind == AgentKind.HOST

    @property
    def is_operator(self) -> bool:
        """True for an operator.

        Its model sees the target's picture and no list of controls.
        """
        return self.kind in self.services.picture_kinds

    def tell(self, name: EventName, run: Run, **data: Any) -> None:
        """Emit an event with its context.

        The context is the task, run, agent, state and step.
        """
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
        """Emit an event for each ended phase outside a step.

        The end of no step will report these phases.
        """
        tell_phases(self.services.stream.emit, run, self.meter.phases)
        self.meter.phases.clear()

    def note(self, run: Run, note: OnTheWay, *, lazy: bool = False) -> None:
        """Append a note about the step's progress to the journal.

        A `lazy` note may be written with the next note that is not lazy.
        """
        if self.lease.valid:  # a note made after the cancellation is dropped
            self.services.journal.append([self.row(run, note)], lazy=lazy)

    def keep_now(self, run: Run, note: OnTheWay) -> None:
        """Append a note and block until it is durable.

        For a tool's thread.

        Raises:
            JournalError: If the note can't be written.
        """
        self.services.journal.keep_now(self.row(run, note))

    def row(self, run: Run, note: OnTheWay) -> Row:
        """Build the journal's row of a note; secrets are redacted."""
        services, assign = self.services, run.assign
        redacted_note = services.secrets.redact(assign.task_id, note) if services.secrets.known else note
        return Row(services.clock.steady(), assign.task_id, assign.run_id, redacted_note, run.job)


def tell_phases(emit: Callable[..., None], run: Run, phases: Iterable[Mapping[str, Any]]) -> None:
    """Emit an event for each phase outside a reported step.

    The end of no step reports these phases.
    """
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
