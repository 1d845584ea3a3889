"""Spans in memory, and counters parsed from their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Spans:
    """The spans that a tracer provider exported."""

    provider: TracerProvider
    exporter: InMemorySpanExporter

    @property
    def all(self) -> list[ReadableSpan]:
        """All ended spans, ordered by start."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def named(self, name: str) -> list[ReadableSpan]:
        """Give the spans with a name, or a name with this beginning."""
        return [span for span in self.all if span.name == name or span.name.startswith(f"{name} ")]

    def one(self, name: str) -> ReadableSpan:
        """Give the only span with a name."""
        (span,) = self.named(name)
        return span

    def parent(self, span: ReadableSpan) -> ReadableSpan | None:
        """Give the parent of a span."""
        return next((each for each in self.all if span.parent and each.context.span_id == span.parent.span_id), None)

    def path(self, span: ReadableSpan | None) -> list[str]:
        """Name the spans from the outermost to this one."""
        return [] if span is None else [*self.path(self.parent(span)), span.name]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """The spans that reach the provider of this process."""
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield Spans(provider, exporter)
    provider.shutdown()


def counts(text: str) -> dict[tuple[Any, ...], float]:
    """Parse metrics, keyed by name and label values.

    Example: ``counts(text)["callboard_tasks_total", "finished"]``.
    """
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@pytest.fixture
def read() -> Any:
    """Parse metrics from their text."""
    return counts
