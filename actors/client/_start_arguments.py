"""The arguments of `Supervisor.start`, checked by their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callboard.actors.processing import AgentSpec
from callboard.actors.runtime import Clock
from callboard.models import Model
from callboard.surfaces import Server

_MODELS = "models={'app': decide}: a function or a `Model` for each kind of agent"
_NAMED = "the name of a model in the settings, as Settings.load(models={'app': 'openai:gpt-5'})"
_SERVERS = "servers=[lamps]: a list of `Server` objects"
_AGENTS = "agents=[AgentSpec(...)]: a list"
_CHECKS = "checks={'total': total}: a function for each name"


def check_start_arguments(models: object, servers: object, agents: object, checks: object, clock: object) -> None:
    """Refuse arguments of a wrong type.

    Raises:
        TypeError: With the argument, and how it is passed.
    """
    _check(isinstance(models, Mapping), "models", models, _NAMED if isinstance(models, str) else _MODELS)
    for kind, model in models.items() if isinstance(models, Mapping) else ():
        _check(isinstance(kind, str), "models", kind, _MODELS)
        is_model = isinstance(model, Model) or (callable(model) and not _is_model_class(model))
        _check(is_model, f"models: {kind}", model, _NAMED if isinstance(model, str) else _MODELS)
    _check_list("servers", servers, Server, _SERVERS)
    _check_list("agents", agents, AgentSpec, _AGENTS)
    _check(isinstance(checks, Mapping), "checks", checks, _CHECKS)
    _check(clock is None or isinstance(clock, Clock), "clock", clock, "clock=VirtualClock(), a `Clock`")


def _is_model_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Model)


def _check_list(name: str, values: object, expected: type[Any], how: str) -> None:
    _check(isinstance(values, Sequence) and not isinstance(values, str), name, values, how)
    for value in values if isinstance(values, Sequence) else ():
        _check(isinstance(value, expected), name, value, how)


def _check(is_right: object, name: str, value: object, how: str) -> None:
    if not is_right:
        described = f"of the type {type(value).__name__}"
        if isinstance(value, type):
            described = f"the class {value.__name__}: call it"
        msg = f"{name}: pass {how}; this is {'None' if value is None else described}"
        raise TypeError(msg)
