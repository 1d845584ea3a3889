"""Outcomes, their causes, and the resources used."""

from __future__ import annotations

import operator

from pydantic import Field

from callboard.messages._base import Seconds, Term, Value
from callboard.messages._documented_fields import DocumentedFields
from callboard.messages._maker import maker
from callboard.messages._texts import reason_of


class Outcome(Term):
    """The outcome of a task or subtask.

    It is written once; a later cleanup never improves it.

    Example:
        >>> Outcome("finished") is Outcome.FINISHED
        True
    """

    FINISHED = "finished"
    """The agent's model reported that the work is done, and every action of that answer succeeded. A language model
    that tried anything needs a success before it."""
    FAILED = "failed"
    """The work could not be done; the system is still in a valid state."""
    ERROR = "error"
    """An exception, an unusable model or a crash ended it."""
    CANCELLED = "cancelled"
    """The host program cancelled it."""
    TIMED_OUT = "timed_out"
    """A deadline passed, the one of a question or an approval included."""
    OUT_OF_BUDGET = "out_of_budget"
    """A limit on steps or other resources was reached."""
    REJECTED = "rejected"
    """A person refused the approval of an action."""


class Cause(DocumentedFields, Value):
    """One link of the chain that explains an ending.

    The nearest cause comes first.
    """

    reason: str
    """One sentence about the event."""
    where: str = ""
    """The address, phase or tool in which it happened."""
    exception: str = ""
    """The exception's class, where there was one."""

    @staticmethod
    def chain(error: BaseException, where: str = "") -> tuple[Cause, ...]:
        """Turn an exception and its causes into `Cause` values, the nearest first."""
        causes: list[Cause] = []
        current: BaseException | None = error
        while current is not None and len(causes) < 10:  # a longer chain explains nothing more
            name = type(current).__name__
            causes.append(Cause(reason=reason_of(current), where=where, exception=name))
            current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        return tuple(causes)


class Usage(DocumentedFields, Value):
    """The resources that a step, subtask or task used."""

    steps: int = Field(default=0, ge=0)
    """Steps of agents."""
    model_calls: int = Field(default=0, ge=0)
    """Calls to a model, repairs included."""
    replayed: int = Field(default=0, ge=0)
    """Answers that a routine gave in place of a model. They are no calls."""
    missed: int = Field(default=0, ge=0)
    """Answers for which a routine could not be repeated, because a guard did not hold."""
    input_tokens: int = Field(default=0, ge=0)
    """Tokens of prompts."""
    output_tokens: int = Field(default=0, ge=0)
    """Tokens of answers."""
    commands: int = Field(default=0, ge=0)
    """Commands that were really sent to a tool; skipped ones do not count."""
    repairs: int = Field(default=0, ge=0)
    """Answers of a model that had to be sent back."""
    calls_saved: int = Field(default=0, ge=0)
    """Model calls that action lists saved: one for each action after the first of its list that ran."""
    cuts: int = Field(default=0, ge=0)
    """Action lists that were cut, because the thing that an action was meant for had changed."""
    cost: float = Field(default=0.0, ge=0)
    """The cost of the model calls, as far as their price is known."""
    unpriced_calls: int = Field(default=0, ge=0)
    """Model calls whose price is not known; they are not in `cost`."""
    seconds: Seconds = Field(default=0.0, ge=0)
    """Time spent in jobs, not in queues or in waiting for a person."""

    @property
    def answers(self) -> int:
        """The answers of models and routines."""
        return self.model_calls + self.replayed

    def __add__(self, other: Usage) -> Usage:
        """Add two usages field by field."""
        mine, theirs = self.__dict__, other.__dict__
        if not any(theirs.values()):
            return self
        sums = zip(mine, map(operator.add, mine.values(), theirs.values()), strict=True)  # in the order of the fields
        return _usage(**dict(sums))


_usage = maker(Usage)
