"""Import functions for checks from plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.config._plugins import PluginGroup, find_plugin, import_plugin, plugin_text
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.config._settings import Settings


def named_check_programs(settings: Settings) -> dict[str, Callable[..., Any]]:
    """Import the functions for checks that the settings name.

    All names are looked up in installed metadata before the first import.

    Returns:
        The functions by the names of their entry points, without the distributions.

    Raises:
        SettingsError: If a plug-in does not exist, can't be imported, can't be called, or has the name of another one.
    """
    entries = [
        (find_plugin(PluginGroup.CHECKS, name, where), where)
        for where, name in ((f"check_programs.{index}", name) for index, name in enumerate(settings.check_programs))
    ]
    functions: dict[str, Callable[..., Any]] = {}
    for entry, where in entries:
        function = import_plugin(entry, where)
        problem = "" if callable(function) else f"is a {type(function).__name__}, which can't be called"
        if entry.name in functions:
            problem = "has the name of another check program: leave one of them out of `check_programs`"
        if problem:
            msg = f"{where}: {plugin_text(entry)} {problem}"
            raise SettingsError(msg)
        functions[entry.name] = function
    return functions


def all_check_programs(settings: Settings, programs: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Put the host program's functions beside those that the settings name.

    Raises:
        SettingsError: If both have one of the same name, or as `named_check_programs` does.
        TypeError: If one of the host program's can't be called.
    """
    for name, function in programs.items():
        if not callable(function):
            msg = f"checks: {name!r} is a {type(function).__name__}, which can't be called"
            raise TypeError(msg)
    named = named_check_programs(settings)
    if twice := sorted(named.keys() & programs.keys()):
        msg = (
            f"check_programs: the host program has functions of the same names: {', '.join(twice)}; "
            "leave one of them out"
        )
        raise SettingsError(msg)
    return {**named, **programs}
