"""Build live models by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.config import (
    COMPATIBLE,
    PluginGroup,
    Provider,
    find_plugin,
    import_plugin,
    make_plugin,
    parameters_of,
    plugin_text,
)
from callboard.messages import SettingsError
from callboard.models._model import Model
from callboard.models.live._computer_tool import PROVIDER
from callboard.models.live._connection import Connection, first_sentence, missing
from callboard.models.live._fallback import FallbackModel
from callboard.models.live._live import LiveModel

if TYPE_CHECKING:
    from callboard.config import Settings
    from callboard.messages import Seconds


_NO_TAGS = ("\0", "\0")
"""Tags that never occur, so that pydantic-ai leaves reasoning in the text.

It drops the start tag of unfinished reasoning, which would then look like an answer.
"""


class Providers:
    """Factory of live models; it creates each provider once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connections: dict[str, Connection] = {}

    def model(self, name: str) -> Model:
        """Build a model with its provider's fallbacks.

        Raises:
            SettingsError: If the model can't be built; the message names the missing part.
        """
        first = self._provider(name)
        names = (name, *(model_name for model_name in first.fallbacks if model_name != name))
        limit = self._settings.limits.model_seconds
        shares = [self._provider(model_name).seconds or limit / len(names) for model_name in names]
        models = [
            self._build_model(model_name, seconds, has_fallback=model_name != names[-1])
            for model_name, seconds in zip(names, shares, strict=True)
        ]
        if len(models) == 1 and first.seconds is None:
            return models[0]
        return FallbackModel(models, shares)

    def _provider(self, name: str) -> Provider:
        """Return the settings of a model's provider."""
        return self._settings.providers.get(self._settings.provider_of(name), Provider())

    def _build_model(self, name: str, seconds: Seconds, *, has_fallback: bool) -> Model:
        if self._provider(name).plugin:
            return plugin_model(name, self._settings)
        provider, model = self._settings.provider_of(name), name.partition(":")[2]
        connection = self._connection(provider)  # it says which package is missing, if one is
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        if not model:
            msg = f"{name!r} names no model of {provider}"
            raise SettingsError(msg)
        try:
            if connection.kind == COMPATIBLE:
                from pydantic_ai.models.openai import OpenAIChatModel

                connected_model: Any = OpenAIChatModel(model, provider=connection.provider)
            else:
                connected_model = infer_model(
                    f"{connection.kind}:{model}", provider_factory=lambda _: connection.provider
                )
        except UserError as error:
            msg = f"{name}: {first_sentence(str(error))}"
            raise SettingsError(msg) from error
        except ImportError as error:
            raise missing(name, connection.kind) from error
        if connection.settings.computer_tool is not None and connection.kind != PROVIDER:
            msg = f"providers.{provider}.computer_tool: {connection.kind} has none that can be asked for: leave it out"
            raise SettingsError(msg)
        connected_model.profile = {**connected_model.profile, "thinking_tags": _NO_TAGS}
        return LiveModel(name, connected_model, connection, seconds, has_fallback=has_fallback)

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            settings = self._provider(name)
            try:
                import pydantic_ai.direct  # noqa: F401 - an optional extra; imported here to keep it off the event loop
            except ImportError as error:
                raise missing(name, settings.kind or name) from error
            self._connections[name] = Connection(name, settings)
        return self._connections[name]


def plugin_model(name: str, settings: Settings) -> Model:
    """Build a model of a plug-in provider by the model's full name.

    The plug-in gets the provider's options and, if it has a parameter `model`, the part of the name after the colon.

    Raises:
        SettingsError: If the plug-in does not exist, fails, or does not return a `Model`.
    """
    provider, model = settings.provider_of(name), name.partition(":")[2]
    provider_settings, where = settings.providers[provider], f"providers.{provider}"
    if "model" in provider_settings.options:
        msg = f"{where}.options.model: is the end of the model's name: {provider}:MODEL"
        raise SettingsError(msg)
    entry = find_plugin(PluginGroup.MODELS, provider_settings.plugin, where)
    factory = import_plugin(entry, where)
    takes = callable(factory) and "model" in parameters_of(factory)
    built_model = make_plugin(
        entry, factory, settings, {**provider_settings.options, **({"model": model} if takes else {})}, where
    )
    if not isinstance(built_model, Model):
        msg = f"{where}: {plugin_text(entry)} gave a {type(built_model).__name__}, no Model"
        raise SettingsError(msg)
    return built_model
