"""What is observed from outside: traces and counters."""

from __future__ import annotations

from callboard.config._section import Section


class ObserveSettings(Section):
    """What is offered to monitoring, beside the log. Neither is needed to run."""

    traces: bool = False
    """Whether each task becomes an OpenTelemetry trace, given to the tracer provider that the host program has set;
    needs `pip install 'callboard[otel]'`."""
    metrics: bool = False
    """Whether tasks, steps, calls, tokens and failures are counted, for `Supervisor.metrics`; needs
    `pip install 'callboard[prometheus]'`."""
