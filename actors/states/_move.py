"""Moves of a state machine, and their causes."""

from __future__ import annotations

import functools
from enum import Flag, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from callboard.messages import Outcome


class By(Flag):
    """The cause of a move."""

    MODEL = auto()
    """The agent's model, by the status of its answer."""
    USER = auto()
    """A person, by an answer, an approval or a rejection."""
    SYSTEM = auto()
    """The library: an exception, a limit, a subtask's result, the policy, a cleanup."""
    TIMEOUT = auto()
    """The deadline of a question or an approval."""

    @functools.cache
    def __str__(self) -> str:
        """Return the causes in lower case, joined by ``|``."""
        return "|".join(cause.name.lower() for cause in By if cause in self and cause.name)


Table = dict[str, dict[str, By]]
"""Source → target → allowed causes."""


class Move(NamedTuple):
    """A requested change of the status."""

    target: str
    by: By
    outcome: Outcome | None = None
    """The outcome to record, if the move decides it."""
    reason: str = ""
    """The reason for an outcome other than success."""
