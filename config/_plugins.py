"""Plug-ins: entry points of installed distributions, loaded only where the settings name them."""

from __future__ import annotations

import difflib
import importlib.metadata
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from callboard.config._keys import output_redactor
from callboard.config._options import fitting_options
from callboard.messages import SettingsError, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from callboard.config._settings import Settings


class PluginGroup(StrEnum):
    """The groups of entry points that plug-ins are found in. There is none for policies."""

    SURFACES = "callboard.surfaces"
    """Give a `Server`."""
    MODELS = "callboard.models"
    """Give a `Model`."""
    AGENTS = "callboard.agents"
    """Are an `AgentSpec`."""


def find_plugin(group: PluginGroup, wanted: str, where: str) -> EntryPoint:
    """Find an entry point by its name. Reads the metadata of what is installed, and imports nothing.

    Args:
        group: The group that it is in.
        wanted: Its name; or that of its distribution, a colon, and its name.
        where: What names it, for errors.

    Raises:
        SettingsError: If there is none, or more than one; the text names those that there are.
    """
    distribution, _, name = wanted.rpartition(":")
    installed = sorted(importlib.metadata.entry_points(group=group), key=lambda entry: (entry.name, _owner(entry)))
    named = [entry for entry in installed if entry.name == name]
    found = [entry for entry in named if not distribution or _normal(_owner(entry)) == _normal(distribution)]
    if len(found) == 1:
        return found[0]
    kind = group.removeprefix("callboard.").removesuffix("s")
    if found:
        owners = [f"{_owner(entry)}:{name}" for entry in found]
        msg = f"{where}: {len(found)} distributions offer a {kind} {name!r}: name one of {', '.join(owners)}"
        raise SettingsError(msg)
    near = difflib.get_close_matches(name, [entry.name for entry in installed], n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near and not named else ""
    there = ", ".join(f"{entry.name} ({described(entry)})" for entry in installed) or "none"
    msg = f"{where}: there is no {kind} plug-in {wanted!r}; installed are: {there}{hint}"
    raise SettingsError(msg)


def described(entry: EntryPoint) -> str:
    """Name the distribution of an entry point, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "callboard"


def told_plugin(entry: EntryPoint) -> str:
    """Name a plug-in for errors: its entry point, its distribution, and what that names."""
    return f"the plug-in {entry.name!r} of {described(entry)} ({entry.value})"


def import_plugin(entry: EntryPoint, where: str) -> Any:
    """Import what an entry point names.

    Raises:
        SettingsError: If that fails; the text names the distribution, the entry point and the exception.
    """
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        msg = f"{where}: {told_plugin(entry)} can't be imported: {_told(error)}"
        raise SettingsError(msg) from error


def make_plugin(
    entry: EntryPoint,
    factory: object,
    settings: Settings,
    options: Mapping[str, Any],
    where: str,
) -> Any:
    """Call what an entry point gave, with options that fit its signature.

    An option with an annotation is validated as a pydantic field of that type is. A relative path starts from the
    settings' folder.

    Args:
        entry: The entry point, for errors.
        factory: What `import_plugin` gave.
        settings: The settings; their secrets are taken out of errors.
        options: The options, by the names of parameters.
        where: What names the plug-in, for errors.

    Raises:
        SettingsError: If an option is unknown, missing or wrong, or the call fails.
    """
    if not callable(factory):
        msg = f"{where}: {told_plugin(entry)} is a {type(factory).__name__}, which can't be called"
        raise SettingsError(msg)
    fitting = fitting_options(factory, settings, options, where)
    try:
        return factory(**fitting)
    except (Exception, SystemExit) as error:
        told = reason_of(error) if isinstance(error, OSError | SettingsError) else _told(error)
        raise SettingsError(output_redactor(settings).redact(f"{where}: {told}")) from error


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {reason_of(error)}" if str(error) else type(error).__name__
