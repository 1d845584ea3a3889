"""Build models from their names in the settings."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeAlias

from callboard.config import check_kind
from callboard.messages import AgentKind, ModelError, ScriptError, SettingsError, did_you_mean
from callboard.models._model import FunctionModel, Model
from callboard.models._scripted import ScriptedModel
from callboard.models.live import Providers
from callboard.models.recording import recorded_model

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from callboard.config import Settings
    from callboard.messages import Task

_IN_FILES = {"scripted", "recorded"}
"""The forms of models that are files."""


def named_models(settings: Settings, kinds: Collection[str] = tuple(AgentKind)) -> Mapping[str, Model]:
    """Build the models that the settings name, one for each different name.

    Raises:
        SettingsError: If a name has an unknown form, or its file can't be read.
    """
    return NamedModels(settings).of_kinds(kinds)


def unused_providers(settings: Settings) -> Iterator[tuple[str, str]]:
    """Find the providers that no model of the settings uses.

    Each has the reason in words. There are none if the settings name no model of a provider: tasks name theirs then.
    """
    names = [name for name in settings.models.model_dump(exclude={"record"}).values() if name]
    live = [name for name in dict.fromkeys(names) if name.partition(":")[0] not in _IN_FILES]
    used: set[str] = set()
    reached = list(live)
    while reached:
        provider = settings.provider_of(reached.pop())
        if provider not in used:
            used.add(provider)
            reached += settings.providers[provider].fallbacks if provider in settings.providers else ()
    for provider in settings.providers if live else ():
        if provider not in used:
            hint = did_you_mean(provider, used, f"its models are named {provider}:MODEL")
            yield provider, f"no model of the settings is of this provider; they name {', '.join(live)}{hint}"


class NamedModels:
    """Models by their names, each built once. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._providers = Providers(settings)
        self._lock = threading.Lock()
        self._models: dict[str, Model] = {}

    def of_kinds(self, kinds: Collection[str]) -> dict[str, Model]:
        """Build the models that the settings name for kinds of agents.

        Raises:
            SettingsError: If a name has an unknown form, or its file can't be read.
        """
        named = {kind: self._settings.models.of(kind) for kind in kinds}
        return {kind: self.model(name, f"models.{kind}") for kind, name in named.items() if name is not None}

    def model(self, name: str, where: str) -> Model:
        """Return the model of a name. May block.

        `where` is the place of the name, for errors.

        Raises:
            SettingsError: If the name has an unknown form, or its file can't be read.
        """
        with self._lock:
            if name not in self._models:
                built_model = _make(self._settings, self._providers, where, name)
                built_model.name = name
                self._models[name] = built_model
            return self._models[name]

    @property
    def made(self) -> tuple[Model, ...]:
        """All models that were built."""
        with self._lock:
            return tuple(self._models.values())


class TaskModels:
    """The models that tasks name for themselves. Thread-safe.

    A model is built before the root takes the task, since that may block.
    """

    def __init__(
        self, of_kinds: Mapping[str, Model], named: NamedModels, wrap: Callable[[Model], Model] = lambda model: model
    ) -> None:
        """Create it.

        Args:
            of_kinds: The models of the kinds of agents.
            named: The models by name.
            wrap: Makes a named model record its calls, if so configured.
        """
        self._of_kinds = of_kinds
        self._named = named
        self._wrap = wrap
        self._built: dict[str, Model | SettingsError] = {}
        """By name. Errors are only those of recovered tasks; any name can be submitted."""
        self._names: dict[str, str] = {}
        """The models that tasks name, by task."""

    def build(self, name: str, *, recovered: bool = False) -> Model | SettingsError:
        """Return the model of a kind or a name, or the error.

        May block. The error for a recovered task is kept for `lacking`.
        """
        model = self._cached_model(name)
        if isinstance(model, Model):
            return model
        try:  # also after an error: a file may be there by now
            model = self._wrap(self._named.model(name, "the task's model"))
        except SettingsError as error:
            kinds = ", ".join(self._of_kinds)
            hint = "" if ":" in name else f"; the models of the kinds of agents, by kind, are: {kinds or 'none'}"
            model = SettingsError(f"{error}{hint}", error.commands)
        if recovered or isinstance(model, Model):
            self._built[name] = model
        return model

    def _cached_model(self, name: str) -> Model | SettingsError | None:
        return self._of_kinds.get(name) or self._built.get(name)

    def take(self, task: Task) -> None:
        """Use the model that a task names."""
        if task.model is not None:
            self._names[task.id] = task.model

    def named(self, task_id: str) -> bool:
        """Return whether a task names a model."""
        return task_id in self._names

    def name_of(self, task_id: str) -> str | None:
        """Return the name of a task's model, or None."""
        return self._names.get(task_id)

    def of(self, task_id: str) -> Model | None:
        """Return the model that a task names; None if it names none.

        Raises:
            ModelError: If the model could not be built.
        """
        return self.called(self._names[task_id]) if task_id in self._names else None

    def called(self, name: str) -> Model:
        """Return the model of a kind or a name.

        Raises:
            ModelError: If it could not be built.
        """
        model = self._cached_model(name)
        if not isinstance(model, Model):
            raise ModelError(self.lacking(name))
        return model

    def lacking(self, name: str) -> str:
        """Return why a model can't be used; empty if it can."""
        model = self._cached_model(name)
        return "" if isinstance(model, Model) else str(model or f"the model {name!r} was not built")

    def lacking_judge(self, task: Task) -> str:
        """Return why a judge has no model; empty if it has."""
        if task.judge is None:
            return ""
        if name := task.judge.model or task.model:
            return self.lacking(name)
        has_host_model = AgentKind.HOST in self._of_kinds
        return "" if has_host_model else "no model is set for the judge: name one in `judge`, or set models.host"

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._names.pop(task_id, None)


Maker: TypeAlias = "Callable[[Settings, str], Model]"
"""Builds a model from the settings and the part of its name after the form."""
_FORMS: dict[str, Maker] = {
    "scripted": lambda settings, file: ScriptedModel.load(settings.path(file)),
    "recorded": recorded_model,
}


def register_form(form: str) -> Callable[[Maker], Maker]:
    """Register the function that builds the models of a form."""

    def register(maker: Maker) -> Maker:
        _FORMS[form] = maker
        return maker

    return register


def _make(settings: Settings, providers: Providers, where: str, name: str) -> Model:
    form, _, target = name.partition(":")
    if not form or not target:
        forms = ", ".join((*(f"{known}:FILE" for known in _FORMS), "PROVIDER:MODEL"))
        msg = f"{where}: {name!r} is not a known model; known forms are: {forms}"
        raise SettingsError(msg)
    try:
        return _FORMS[form](settings, target) if form in _FORMS else providers.model(name)
    except (ScriptError, SettingsError) as error:
        msg = f"{where}: {error}"
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
    built_models: dict[str, Model] = {}
    for kind, model in models.items():
        check_kind("models", kind, kinds)
        if not isinstance(model, Model) and not callable(model):
            msg = f"models: {kind}: expected a Model or a function, not a {type(model).__name__}"
            raise TypeError(msg)
        built_models[kind] = model if isinstance(model, Model) else FunctionModel(model)
    return built_models
