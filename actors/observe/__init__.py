"""Watching from outside: events become traces and counters."""

from callboard.actors.observe._metrics import Metrics
from callboard.actors.observe._traces import Traces

__all__ = ["Metrics", "Traces"]
