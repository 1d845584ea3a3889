"""Models by name, as settings give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.models._providers import Providers
from callboard.actors.models._recorded import recorded_model
from callboard.actors.models._scripted import ScriptedModel
from callboard.messages import AgentKind, ScriptError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.models._model import Model
    from callboard.config import Settings


def named_models(settings: Settings) -> Mapping[AgentKind, Model]:
    """Make the models that the settings name, one for each different name.

    Raises:
        SettingsError: If a name has no known form, or what it names can't be read.
    """
    made: dict[str, Model] = {}
    models: dict[AgentKind, Model] = {}
    providers = Providers(settings)
    for kind in AgentKind:
        name = settings.models.of(kind)
        if name is not None:
            if name not in made:
                made[name] = _make(settings, providers, kind, name)
                made[name].name = name
            models[kind] = made[name]
    return models


def _make(settings: Settings, providers: Providers, kind: AgentKind, name: str) -> Model:
    form, _, rest = name.partition(":")
    if not form or not rest:
        known = "scripted:FILE, recorded:FILE, PROVIDER:MODEL"
        msg = f"models.{kind.value}: {name!r} is no known model; known forms are: {known}"
        raise SettingsError(msg)
    try:
        if form == "recorded":
            return recorded_model(settings, rest)
        return ScriptedModel.load(settings.path(rest)) if form == "scripted" else providers.model(name)
    except (ScriptError, SettingsError) as error:
        msg = f"models.{kind.value}: {error}"
        raise SettingsError(msg) from error
