"""Models by name, as settings give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    for kind in AgentKind:
        name = settings.models.of(kind)
        if name is not None:
            models[kind] = made.setdefault(name, _make(settings, kind, name))
    return models


def _make(settings: Settings, kind: AgentKind, name: str) -> Model:
    form, _, rest = name.partition(":")
    if form != "scripted" or not rest:
        msg = f"models.{kind.value}: {name!r} is no known model; known forms are: scripted:FILE"
        raise SettingsError(msg)
    try:
        return ScriptedModel.load(settings.path(rest))
    except ScriptError as error:
        msg = f"models.{kind.value}: {error}"
        raise SettingsError(msg) from error
