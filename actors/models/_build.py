"""Build models from their names in the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.actors.models._model import FunctionModel, Model
from callboard.actors.models._scripted import ScriptedModel
from callboard.actors.models.live import Providers
from callboard.actors.models.recording import recorded_model
from callboard.config import check_kind
from callboard.messages import AgentKind, ScriptError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from callboard.config import Settings


def named_models(settings: Settings, kinds: Collection[str] = tuple(AgentKind)) -> Mapping[str, Model]:
    """Build the models that the settings name, one for each different name.

    Raises:
        SettingsError: If a name has an unknown form, or its file can't be read.
    """
    made: dict[str, Model] = {}
    models: dict[str, Model] = {}
    providers = Providers(settings)
    for kind in kinds:
        name = settings.models.of(kind)
        if name is not None:
            if name not in made:
                made[name] = _make(settings, providers, kind, name)
                made[name].name = name
            models[kind] = made[name]
    return models


def _make(settings: Settings, providers: Providers, kind: str, name: str) -> Model:
    form, _, rest = name.partition(":")
    if not form or not rest:
        known = "scripted:FILE, recorded:FILE, PROVIDER:MODEL"
        msg = f"models.{kind}: {name!r} is not a known model; known forms are: {known}"
        raise SettingsError(msg)
    try:
        if form == "recorded":
            return recorded_model(settings, rest)
        return ScriptedModel.load(settings.path(rest)) if form == "scripted" else providers.model(name)
    except (ScriptError, SettingsError) as error:
        msg = f"models.{kind}: {error}"
        raise SettingsError(msg, error.commands if isinstance(error, SettingsError) else ()) from error


def given_models(
    models: Mapping[str, Model | Callable[..., Any]], kinds: Collection[str] = tuple(AgentKind)
) -> dict[str, Model]:
    """Return the models that a program passes in.

    Functions are wrapped in a `FunctionModel`.

    Raises:
        SettingsError: If a kind of agent does not exist.
        TypeError: If a value is neither a model nor a function.
    """
    made: dict[str, Model] = {}
    for kind, model in models.items():
        check_kind("models", kind, kinds)
        if not isinstance(model, Model) and not callable(model):
            msg = f"models: {kind}: expected a Model or a function, not a {type(model).__name__}"
            raise TypeError(msg)
        made[kind] = model if isinstance(model, Model) else FunctionModel(model)
    return made
