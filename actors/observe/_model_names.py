"""OpenTelemetry's names of models and providers, from names in the settings."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from callboard.config import COMPATIBLE

if TYPE_CHECKING:
    from callboard.config import Settings

_OURSELVES = "callboard"
_FILES = {"scripted", "recorded"}
"""Forms of a model's name that contain a file."""
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
"""Kinds of provider that have another name in the conventions."""


def provider_and_model(name: str, settings: Settings | None = None) -> tuple[str, str]:
    """Return the provider of a model, and the model's name there.

    For a model from a file, it is the file's name alone: the path is private.

    Args:
        name: The model's name: ``PROVIDER:MODEL``, ``scripted:FILE``, ``recorded:FILE``, or a host program's own.
        settings: They hold the kind of a provider to which the user gave a name.
    """
    provider, _, model = name.partition(":")
    if not model:
        return _OURSELVES, name
    if provider in _FILES:
        return provider, PurePath(model.partition("?")[0]).name
    provider_settings = None if settings is None else settings.providers.get(provider)
    kind = (provider_settings.kind if provider_settings is not None else None) or provider
    return _CONVENTIONS.get(kind, provider if kind == COMPATIBLE else kind), model
