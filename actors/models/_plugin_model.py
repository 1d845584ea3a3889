"""Models of plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.models._model import Model
from callboard.config import PluginGroup, find_plugin, import_plugin, make_plugin, parameters_of, told_plugin
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from callboard.config import Settings


def plugin_model(name: str, settings: Settings) -> Model:
    """Make a model of a provider that is a plug-in, by the model's whole name.

    The plug-in gets the provider's options, and as `model`, if it takes that, what stands after the colon.

    Raises:
        SettingsError: If there is no such plug-in, or it can't be made, or is no `Model`.
    """
    provider, _, model = name.partition(":")
    given, where = settings.providers[provider], f"providers.{provider}"
    if "model" in given.options:
        msg = f"{where}.options.model: is the end of the model's name: {provider}:MODEL"
        raise SettingsError(msg)
    entry = find_plugin(PluginGroup.MODELS, given.plugin, where)
    factory = import_plugin(entry, where)
    takes = callable(factory) and "model" in parameters_of(factory)
    made = make_plugin(entry, factory, settings, {**given.options, **({"model": model} if takes else {})}, where)
    if not isinstance(made, Model):
        msg = f"{where}: {told_plugin(entry)} gave a {type(made).__name__}, no Model"
        raise SettingsError(msg)
    return made
