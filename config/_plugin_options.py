"""The options of plug-ins: secrets are hidden, and a signature validates them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, create_model
from pydantic.errors import PydanticUserError

from callboard.config._secrets_in_urls import like_a_key
from callboard.messages import SettingsError, did_you_mean, plain_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _hidden(value: Any, name: str = "") -> Any:
    """Wrap each text with a name like a key's in `SecretStr`."""
    if isinstance(value, dict):
        return {key: _hidden(part, str(key)) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(part, name) for part in value]
    return SecretStr(value) if isinstance(value, str) and like_a_key(name) else value


def revealed(value: Any) -> Any:
    """Unwrap the secrets in options, for the plug-in."""
    if isinstance(value, dict):
        return {key: revealed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [revealed(part) for part in value]
    return value.get_secret_value() if isinstance(value, SecretStr) else value


Options = Annotated[dict[str, Any], BeforeValidator(_hidden)]
"""The options of a plug-in; those with a name like a key's or a password's are secrets."""


def fitting_options(
    factory: Callable[..., Any], options: Mapping[str, Any], where: str, resolve: Callable[[Path], Path]
) -> dict[str, Any]:
    """Validate options against a signature; `resolve` makes their paths absolute.

    Raises:
        SettingsError: If one is unknown, missing or invalid; the message names each, and suggests the nearest name for
            an unknown one.
    """
    parameters = parameters_of(factory)
    named_parameters = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind in {parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    }
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    unknown = [] if takes_any else [name for name in options if name not in named_parameters]
    overview = f"known: {', '.join(named_parameters) or 'none'}"
    hints = {name: did_you_mean(name, named_parameters, overview) for name in unknown}
    lines = [f"{where}.options.{name}: unknown option{hint}" for name, hint in hints.items()]
    revealed_options = {name: revealed(value) for name, value in options.items() if name not in unknown}
    try:
        fitting = _validated(named_parameters, revealed_options)
    except ValidationError as error:
        lines += [f"{where}.options.{line}" for line in plain_problems(error.errors())]
    if lines:
        raise SettingsError("\n".join(lines))
    return {name: resolve(value) if isinstance(value, Path) else value for name, value in fitting.items()}


def parameters_of(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function or class.

    Their types are resolved if that is possible at run time.
    """
    try:
        return inspect.signature(factory, eval_str=True).parameters
    except (NameError, AttributeError, SyntaxError, TypeError):  # a type that is imported only for type checkers
        return inspect.signature(factory).parameters


def _validated(parameters: Mapping[str, inspect.Parameter], options: Mapping[str, Any]) -> dict[str, Any]:
    """Validate options as pydantic fields.

    They are renamed, since an option may have a name that pydantic uses.
    """
    names = {name: f"option_{index}" for index, name in enumerate(parameters)}

    def valid(type_of: Callable[[inspect.Parameter], Any]) -> BaseModel:
        fields: dict[str, Any] = {
            names[name]: (
                type_of(parameter),
                Field(... if parameter.default is parameter.empty else parameter.default, alias=name),
            )
            for name, parameter in parameters.items()
        }
        config = ConfigDict(arbitrary_types_allowed=True, extra="allow", hide_input_in_errors=True)
        model: type[BaseModel] = create_model("Options", __config__=config, **fields)
        return model.model_validate(dict(options))

    try:
        instance = valid(lambda parameter: Any if parameter.annotation is parameter.empty else parameter.annotation)
    except PydanticUserError:  # a type can't be resolved at run time: the plug-in has to validate
        instance = valid(lambda _: Any)
    return {name: getattr(instance, names[name]) if name in names else value for name, value in options.items()}
