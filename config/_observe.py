"""Settings of traces and metrics."""

from __future__ import annotations

from callboard.config._section import Section


class ObserveSettings(Section):
    """Optional traces and metrics for monitoring, in addition to the log."""

    traces: bool = False
    """Whether each task becomes an OpenTelemetry trace, sent to the host program's tracer provider;
    needs `pip install 'callboard[otel]'`."""
    metrics: bool = False
    """Whether tasks, steps, calls, tokens and failures are counted, for `Supervisor.metrics`; needs
    `pip install 'callboard[prometheus]'`."""
