"""The base class of all sections of the settings."""

from __future__ import annotations

import threading
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from callboard.messages import Seconds


class Section(BaseModel):
    """A frozen section of the settings; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


Span = Annotated[Seconds, Field(gt=0, le=threading.TIMEOUT_MAX, allow_inf_nan=False)]
"""A positive time that a clock can wait, in seconds."""
