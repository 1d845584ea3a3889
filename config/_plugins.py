"""Plug-ins: entry points of installed distributions.

They are loaded only if the settings name them.
"""

from __future__ import annotations

import importlib.metadata
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from callboard.config._keys import output_redactor
from callboard.config._plugin_options import fitting_options
from callboard.messages import SettingsError, did_you_mean, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from callboard.config._settings import Settings


class PluginGroup(StrEnum):
    """The groups of entry points for plug-ins. There is none for policies."""

    SURFACES = "callboard.surfaces"
    """They return a `Server`."""
    MODELS = "callboard.models"
    """They return a `Model`."""
    AGENTS = "callboard.agents"
    """They are an `AgentSpec`."""
    CHECKS = "callboard.checks"
    """They are functions for the checks of tasks."""


def find_plugin(group: PluginGroup, plugin_name: str, where: str) -> EntryPoint:
    """Find an entry point by name, from installed metadata. Imports nothing.

    Args:
        group: Its group.
        plugin_name: Its name, or `DISTRIBUTION:NAME`.
        where: The setting that names it, for errors.

    Raises:
        SettingsError: If there is none, or more than one; the message lists those that are installed.
    """
    distribution, _, name = plugin_name.rpartition(":")
    installed = sorted(importlib.metadata.entry_points(group=group), key=lambda entry: (entry.name, _owner(entry)))
    named = [entry for entry in installed if entry.name == name]
    matches = [entry for entry in named if not distribution or _normal(_owner(entry)) == _normal(distribution)]
    if len(matches) == 1:
        return matches[0]
    kind = group.removeprefix("callboard.").removesuffix("s")
    if matches:
        owners = [f"{_owner(entry)}:{name}" for entry in matches]
        msg = f"{where}: {len(matches)} distributions offer a {kind} {name!r}: name one of {', '.join(owners)}"
        raise SettingsError(msg)
    hint = "" if named else did_you_mean(name, [entry.name for entry in installed])
    names = ", ".join(f"{entry.name} ({described(entry)})" for entry in installed) or "none"
    msg = f"{where}: there is no {kind} plug-in {plugin_name!r}; installed are: {names}{hint}"
    raise SettingsError(msg)


def described(entry: EntryPoint) -> str:
    """Return the name and version of an entry point's distribution."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "callboard"


def plugin_text(entry: EntryPoint) -> str:
    """Describe a plug-in for errors: its entry point, distribution and object."""
    return f"the plug-in {entry.name!r} of {described(entry)} ({entry.value})"


def import_plugin(entry: EntryPoint, where: str) -> Any:
    """Import the object of an entry point.

    Raises:
        SettingsError: If that fails; the message names the distribution, the entry point and the exception.
    """
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        msg = f"{where}: {plugin_text(entry)} can't be imported: {_error_text(error)}"
        raise SettingsError(msg) from error


def make_plugin(
    entry: EntryPoint,
    factory: object,
    settings: Settings,
    options: Mapping[str, Any],
    where: str,
) -> Any:
    """Call an entry point's object, with options validated against its signature.

    An annotated option is validated like a pydantic field of that type. A relative path starts from the settings'
    folder.

    Args:
        entry: The entry point, for errors.
        factory: The result of `import_plugin`.
        settings: The settings; their secrets are redacted in errors.
        options: The options, by the names of parameters.
        where: The setting that names the plug-in, for errors.

    Raises:
        SettingsError: If an option is unknown, missing or invalid, or the call fails.
    """
    if not callable(factory):
        msg = f"{where}: {plugin_text(entry)} is a {type(factory).__name__}, which can't be called"
        raise SettingsError(msg)
    fitting = fitting_options(factory, options, where, settings.path)
    try:
        return factory(**fitting)
    except (Exception, SystemExit) as error:
        why = reason_of(error) if isinstance(error, OSError | SettingsError) else _error_text(error)
        raise SettingsError(output_redactor(settings).redact(f"{where}: {why}")) from error


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {reason_of(error)}" if str(error) else type(error).__name__
