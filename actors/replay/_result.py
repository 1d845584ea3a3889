"""What a replay says: the transitions, and the first difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.messages import Outcome, Task


@dataclass(frozen=True, slots=True)
class Transition:
    """One move of one agent's machine."""

    run_id: str
    address: str
    step: int
    """The step after which it was made."""
    source: str
    target: str
    by: str

    def __str__(self) -> str:
        return f"{self.source} → {self.target} by {self.by}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a replay left the record."""

    run_id: str
    """Empty for the task as a whole."""
    address: str
    step: int
    """The step of the run that was on its way; 0 for the task as a whole."""
    what: str
    """In what they differ: a transition, a verdict, one fact of a step."""
    expected: str
    """What was recorded."""
    got: str
    """What the replay came to."""
    because: tuple[str, ...] = ()
    """What else there is to know: what was decided on, why an answer was sent back, what was asked and not recorded."""

    def __str__(self) -> str:
        where = f"{self.address}, step {self.step} of {self.run_id}" if self.run_id else "the task"
        lines = (f"{where}: {self.what}", f"  recorded: {self.expected}", f"  replayed: {self.got}")
        return "\n".join((*lines, *(f"  {reason}" for reason in self.because)))


class Differs(Exception):  # noqa: N818 - it carries a finding, and is no error
    """Ends a replay at its first difference."""

    def __init__(self, difference: Difference) -> None:
        self.difference = difference
        super().__init__(str(difference))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How a replay went."""

    task: Task
    transitions: tuple[Transition, ...]
    """All that were made again, in order, up to the first difference."""
    jobs: int
    """How many words of agents' jobs were made again."""
    taken: int
    """How many were taken as recorded: of steps that took too long, and of what could not be written down."""
    outcome: Outcome | None
    """How the task ended; None if it was not over, or if there is a difference."""
    difference: Difference | None = None

    @property
    def same(self) -> bool:
        """Whether it went as recorded."""
        return self.difference is None
