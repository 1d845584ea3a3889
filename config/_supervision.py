"""How often what crashed is started anew, and when something counts as hung."""

from __future__ import annotations

import threading
from typing import Annotated, Self

from pydantic import Field, model_validator

from callboard.config._section import Section, Span
from callboard.messages import Seconds

Delay = Annotated[Seconds, Field(ge=0, le=threading.TIMEOUT_MAX, allow_inf_nan=False)]
"""A span of time that a clock can wait, in seconds; 0 is none."""


class SupervisionSettings(Section):
    """What happens to an agent that crashes, and when something counts as hung."""

    intensity: int = Field(default=3, ge=0)
    """Restarts of one agent within `period`; one crash more, and its subtask ends as an error. As often is an MCP
    server that went away started anew, or reached again, by its next use."""
    period: Span = 60.0
    """The seconds of an agent's life that `intensity` is about; delays before restarts do not count."""
    backoff: Delay = 0.1
    """The delay before the first restart, in seconds; each further one is twice as long, and a bit more by chance."""
    max_backoff: Delay = 10.0
    """The longest that a delay grows to, in seconds."""
    hung_seconds: Span = 5.0
    """How long past its deadline a job, or without an answer the event loop, counts as hung."""

    @model_validator(mode="after")
    def _backoff_in_order(self) -> Self:
        if self.max_backoff < self.backoff:
            msg = "`max_backoff` is shorter than `backoff`"
            raise ValueError(msg)
        return self
