"""The base class of all sections of the settings."""

from __future__ import annotations

import threading
from typing import Annotated

from pydantic import Field

from callboard.messages import Seconds, TermSection


class Section(TermSection):
    """A frozen section of the settings; unknown keys are errors."""


Span = Annotated[Seconds, Field(gt=0, le=threading.TIMEOUT_MAX, allow_inf_nan=False)]
"""A positive time that a clock can wait, in seconds."""
