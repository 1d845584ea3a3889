"""The base class of all sections of the settings."""

from __future__ import annotations

from callboard.messages import Span, TermSection

__all__ = ["Section", "Span"]


class Section(TermSection):
    """A frozen section of the settings; unknown keys are errors."""
