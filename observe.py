"""Traces for a tracer provider of the host program's own."""

from callboard.actors.observe import Traces

__all__ = ["Traces"]
