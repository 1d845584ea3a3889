"""Long texts and amounts in the language in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.config import text

if TYPE_CHECKING:
    from callboard.messages import Usage


def cut(words: str, most: int = 400) -> str:
    """Return the beginning of a long text."""
    return words if len(words) <= most else text("cut", text=words[:most], count=len(words))


def used(usage: Usage) -> str:
    """Describe the resources that a task used, and its cost."""
    parts = [
        text("step_count", count=usage.steps),
        text("model_calls", count=usage.model_calls),
        *([text("routine_answers", count=usage.replayed)] if usage.replayed else []),
        *([text("routine_misses", count=usage.missed)] if usage.missed else []),
        text("tool_calls", count=usage.commands),
    ]
    if tokens := usage.input_tokens + usage.output_tokens:
        parts.append(text("token_count", count=tokens))
    if usage.cost:
        parts.append(text("small_price" if usage.cost < 1 else "price", cost=usage.cost))
    if usage.unpriced_calls:
        parts.append(text("unpriced_calls", count=usage.unpriced_calls))
    return ", ".join(parts)
