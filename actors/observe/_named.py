"""What a model and its provider are called in OpenTelemetry's words, by the model's name in the settings."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from callboard.config import COMPATIBLE

if TYPE_CHECKING:
    from callboard.config import Settings

_OURSELVES = "callboard"
_FILES = {"scripted", "recorded"}
"""Forms of a name that has a file in it."""
_CONVENTIONS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "google": "gcp.gemini",
    "google-cloud": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure-responses": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Kinds of provider that the conventions call otherwise."""


def provider_and_model(name: str, settings: Settings | None = None) -> tuple[str, str]:
    """Say who has a model, and what it is called there; of a file its name alone, for its path is nobody's business.

    Args:
        name: The model's name: ``PROVIDER:MODEL``, ``scripted:FILE``, ``recorded:FILE``, or a host program's own.
        settings: Where a provider of the user's own name may say of what kind it is.
    """
    provider, _, model = name.partition(":")
    if not model:
        return _OURSELVES, name
    if provider in _FILES:
        return provider, PurePath(model.partition("?")[0]).name
    known = None if settings is None else settings.providers.get(provider)
    kind = (known.kind if known is not None else None) or provider
    return _CONVENTIONS.get(kind, provider if kind == COMPATIBLE else kind), model
