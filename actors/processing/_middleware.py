"""Middleware around phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.messages import EventName, LeaseVoidError, Phase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run

    Call = Callable[[], Awaitable[Any]]
    Middleware = Callable[["PhaseCall", Call], Awaitable[Any]]


ALL_PHASES = frozenset(Phase)
"""The default for middleware without an attribute `phases`, the set of phases it wraps."""


@dataclass(frozen=True)
class PhaseCall:
    """A phase that is about to run."""

    phase: Phase
    context: Context
    run: Run

    def tell(self, name: EventName, **data: Any) -> None:
        """Emit an event about the phase."""
        self.context.tell(name, self.run, phase=self.phase.value, **data)


def retried(phases: Collection[Phase]) -> Middleware:
    """Retry phases after transient errors; they must have no side effect."""

    async def retry(call: PhaseCall, proceed: Call) -> Any:
        tries = call.run.limits.phase_retries if call.phase in phases else 0
        while True:
            try:
                return await proceed()
            except LeaseVoidError:
                raise
            except Exception as error:
                if tries == 0:
                    raise
                tries -= 1
                call.tell(EventName.PHASE_RETRIED, error=str(error) or type(error).__name__)

    retry.phases = frozenset(phases)  # type: ignore[attr-defined]  # read by the pipeline before it wraps a phase
    return retry
