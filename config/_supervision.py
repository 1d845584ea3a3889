"""Settings of restarts and hang detection."""

from __future__ import annotations

import threading
from typing import Annotated, Self

from pydantic import Field, model_validator

from callboard.config._section import Section, Span
from callboard.messages import Seconds

Delay = Annotated[Seconds, Field(ge=0, le=threading.TIMEOUT_MAX, allow_inf_nan=False)]
"""A time that a clock can wait, in seconds; may be 0."""


class SupervisionSettings(Section):
    """Restarts of crashed agents, and hang detection."""

    intensity: int = Field(default=3, ge=0)
    """The most restarts of one agent within `period`; after one more crash, its subtask ends as an error. The same
    limit holds for restarts of, and reconnections to, an MCP server."""
    period: Span = 60.0
    """The period of `intensity`, in seconds of an agent's life; delays before restarts do not count."""
    backoff: Delay = 0.1
    """The delay before the first restart, in seconds; it doubles with each further one, plus random jitter."""
    max_backoff: Delay = 10.0
    """The longest delay, in seconds."""
    hung_seconds: Span = 5.0
    """Seconds after which a job past its deadline, or an event loop that does not respond, counts as hung."""
    stall_seconds: Span = 60.0
    """Seconds within which a run is found that has no job, waits for nothing, and has no place in a queue. It is
    reported as `run.stalled`, and restarted from the journal, or ended as an error."""

    @model_validator(mode="after")
    def _backoff_in_order(self) -> Self:
        if self.max_backoff < self.backoff:
            msg = "`max_backoff` is shorter than `backoff`"
            raise ValueError(msg)
        return self
