"""Observability: traces and metrics from events."""

from callboard.actors.observe._metrics import Metrics
from callboard.actors.observe._traces import Traces

__all__ = ["Metrics", "Traces"]
