"""Errors of settings, each with the source of the wrong value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_origin

from pydantic import BaseModel

from callboard.messages import SettingsError, did_you_mean, keys_of, plain_problems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from pydantic import ValidationError
    from pydantic_settings import BaseSettings

SPELLINGS = {"mcpServers": "mcp_servers"}
"""The sections that a file may spell differently."""
_SHOWN = {name: spelling for spelling, name in SPELLINGS.items()}


def explain(error: ValidationError, where: str, changes: Mapping[str, Any], model: type[BaseSettings]) -> str:
    """Describe all errors of settings, a line each.

    Args:
        error: The errors.
        where: The file, or the name of the source.
        changes: The sections that arguments replace.
        model: The settings.
    """
    by_source: dict[str, list[Any]] = {}
    for problem in error.errors():
        source = where if _is_in(changes, problem["loc"]) else _source(where, problem["loc"], model)
        loc = [shown_name(part) for part in problem["loc"]]
        by_source.setdefault(source, []).append({**problem, "loc": loc})
    return "\n".join(
        f"{source}: {line}"
        for source, problems in by_source.items()
        for line in plain_problems(problems, lambda loc: _known_keys(loc[:-1], model))
    )


def _is_in(changes: object, path: Sequence[object]) -> bool:
    """Return whether arguments set the value at a place.

    Other parts of its section may come from elsewhere.
    """
    for part in path:
        if not isinstance(changes, Mapping):
            return True
        if part not in changes:
            return False
        changes = changes[part]
    return True


def unknown_key(where: str, path: tuple[str, str], model: type[BaseSettings], further: Collection[str] = ()) -> str:
    """Describe an unknown key of a section.

    The keys of `further` are known, too.
    """
    keys = [*dict.fromkeys([*_known_keys(path[:-1], model), *further])]
    (line,) = plain_problems([{"type": "extra_forbidden", "loc": path}], lambda _: keys)
    return f"{_source(where, path, model)}: {line}"


def is_mapping(name: str, model: type[BaseSettings]) -> bool:
    """Return whether a section is a mapping of keys to values."""
    field = model.model_fields.get(name)
    origin = None if field is None else get_origin(field.annotation) or field.annotation
    return isinstance(origin, type) and issubclass(origin, dict | BaseModel)


def shown_name(name: object) -> object:
    """Return a section's name as a file spells it."""
    return _SHOWN.get(str(name), name)


def key_error(key: object) -> str:
    """Describe a key that is not text."""
    (line,) = plain_problems([{"type": "string_type", "loc": (key, "[key]"), "input": key}])
    return line


def one_name(name: str) -> str:
    """Return a provider's name in one spelling.

    Environment variables have no hyphens.
    """
    return name.lower().replace("_", "-")


def one_spelling(providers: Mapping[object, Any]) -> dict[object, Any]:
    """Merge providers whose names are one.

    Later values take precedence: those of the environment follow those of the file.
    """
    spellings: dict[str, object] = {}
    merged: dict[object, Any] = {}
    for name, value in providers.items():
        spelling = spellings.setdefault(one_name(str(name)), name)
        merged[spelling] = _merged(merged.get(spelling), value)
    return merged


def _merged(earlier: object, later: object) -> object:
    if isinstance(earlier, dict) and isinstance(later, dict):
        return {**earlier, **{key: _merged(earlier.get(key), value) for key, value in later.items()}}
    return later


def check_spellings(providers: object, file: Path) -> None:
    """Refuse a file that has a provider twice, in two spellings.

    Raises:
        SettingsError: If it has.
    """
    spellings: dict[str, object] = {}
    for name in providers if isinstance(providers, dict) else ():
        other = spellings.setdefault(one_name(str(name)), name)
        if other is not name:
            msg = f"{file}: providers.{other} and providers.{name} are one provider: merge them"
            raise SettingsError(msg)


def _source(where: str, path: Sequence[object], model: type[BaseSettings]) -> str:
    """Name the source of the value at a place.

    It is the most specific environment variable that sets it, else the file. A value of several parts may come from
    both.
    """
    place = [one_name(str(part)) for part in path]
    variables = {name: [one_name(part) for part in parts] for name, parts in _variables(model)}
    whole = [name for name, parts in variables.items() if parts == place[: len(parts)]]
    if whole:
        return f"the environment: {max(whole, key=lambda name: len(variables[name]))}"
    parts_of_it = [name for name, parts in variables.items() if parts[: len(place)] == place]
    return f"{where}, with {', '.join(sorted(parts_of_it))}" if parts_of_it else where


def _variables(model: type[BaseSettings]) -> Iterator[tuple[str, list[str]]]:
    """List the environment variables of settings, with the path of each."""
    prefix = model.model_config.get("env_prefix", "")
    delimiter = model.model_config.get("env_nested_delimiter") or "__"
    for name in os.environ:
        if name.upper().startswith(prefix):
            yield name, name[len(prefix) :].lower().split(delimiter)


def check_environment(model: type[BaseSettings]) -> None:
    """Refuse a variable for an unknown section, which would be ignored silently.

    Raises:
        SettingsError: If there is one.
    """
    prefix = model.model_config.get("env_prefix", "")
    for name, (section, *nested) in _variables(model):
        if section not in model.model_fields:
            sections = [field.upper() for field in model.model_fields]
            single = (
                []
                if nested
                else [f"{name}__{key.upper()}" for name in sections for key in _known_keys([name.lower()], model)]
            )
            form = f"{prefix}{{}}{'__...' if nested else ''}"
            hint = did_you_mean(
                section.upper(), [*sections, *single], f"known: {', '.join(sections)}", show=form.format
            )
            msg = f"the environment: {name}: unknown section {section!r}{hint}"
            raise SettingsError(msg)


def _known_keys(path: Sequence[object], settings: type[BaseSettings]) -> list[str]:
    """List the known keys at a place, as a file has them."""
    keys = keys_of(settings)([*(SPELLINGS.get(str(part), part) for part in path), ""])
    return [_SHOWN.get(key, key) for key in keys]
