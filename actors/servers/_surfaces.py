"""The surfaces that the settings name: those that ship, and those of plug-ins, made in one way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.actors.servers._need import check_needs
from callboard.actors.servers._server import Server
from callboard.config import PluginGroup, find_plugin, fitting_options, import_plugin, make_plugin, told_plugin
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from callboard.actors.servers._need import Need
    from callboard.config import Settings

SHIPPED: Mapping[str, str] = {
    "documents": "callboard.actors.servers.documents:DocumentServer",
    "desktop": "callboard.actors.servers.desktop:DesktopServer",
    "android": "callboard.actors.servers.android:AndroidServer",
    "shells": "callboard.actors.servers.shell:ShellServer",
}
"""The surfaces that ship: the section of the settings that has their options, and their class, imported on use."""


@dataclass(frozen=True)
class NamedSurface:
    """A surface that the settings name. Nothing of it is imported yet."""

    name: str
    """What its server is called."""
    where: str
    """Where the settings name it."""
    entry: EntryPoint
    options: Mapping[str, Any]

    def needs(self, settings: Settings) -> tuple[Need, ...]:
        """Ask its class what it needs here; a function that makes a server says nothing of that.

        Raises:
            SettingsError: If it can't be imported or asked, or its options do not fit.
        """
        factory = import_plugin(self.entry, self.where)
        if not (isinstance(factory, type) and issubclass(factory, Server)):
            return ()
        options = self.options and fitting_options(factory, settings, self.options, self.where)
        asked = partial(factory.needs, options)
        needs: Sequence[Need] = make_plugin(self.entry, asked, settings, {}, self.where)
        return tuple(needs)

    def make(self, settings: Settings) -> Server:
        """Make its server; nothing is opened.

        Raises:
            SettingsError: If it can't be imported or made, or is no `Server`.
        """
        factory = import_plugin(self.entry, self.where)
        made: object = make_plugin(self.entry, factory, settings, self.options, self.where)
        if not isinstance(made, Server):
            msg = f"{self.where}: {told_plugin(self.entry)} gave a {type(made).__name__}, no Server"
            raise SettingsError(msg)
        if getattr(made, "name", None) != self.name:
            made.name = self.name
        if made.name != self.name:
            msg = f"{self.where}: {told_plugin(self.entry)} can't be called {self.name!r}"
            raise SettingsError(msg)
        return made


def shipped_surface(name: str, options: Mapping[str, Any] | None = None) -> NamedSurface:
    """Give a surface that ships, as the section of its name has it."""
    return NamedSurface(name, name, EntryPoint(name, SHIPPED[name], PluginGroup.SURFACES), options or {})


def surface_of(name: str, settings: Settings) -> NamedSurface | None:
    """Find the surface of a name in the settings; None if it ships, and they do not ask for it. Imports nothing.

    Raises:
        SettingsError: If there is no such plug-in, or it has the name of a surface that ships.
    """
    where, given = f"surfaces.{name}", settings.surfaces.get(name)
    if name in SHIPPED and given is not None:
        msg = f"{where}: {name!r} ships with callboard, and is set by the section {name!r}: choose another name"
        raise SettingsError(msg)
    if given is None:
        section = getattr(settings, name)
        if isinstance(section, dict):  # a surface with several targets, each with a section of its own
            return shipped_surface(name, {name: _placed(section, settings)}) if section else None
        options = {key: getattr(section, key) for key in type(section).model_fields}
        return shipped_surface(name, options) if section.wanted else None
    return NamedSurface(name, where, find_plugin(PluginGroup.SURFACES, given.plugin or name, where), given.options)


def _placed(sections: Mapping[str, BaseModel], settings: Settings) -> dict[str, BaseModel]:
    """Have relative paths in sections start from the settings file's folder."""
    placed = {}
    for name, section in sections.items():
        elsewhere = {"cwd"} if getattr(section, "ssh", None) else set()  # a path of another machine
        paths = {
            key: settings.path(each.expanduser())
            for key, each in section
            if isinstance(each, Path) and key not in elsewhere
        }
        placed[name] = section.model_copy(update=paths)
    return placed


def named_surfaces(settings: Settings) -> Iterator[NamedSurface]:
    """Find the surfaces that the settings name, those that ship first. Imports nothing.

    Raises:
        SettingsError: As `surface_of`.
    """
    for name in dict.fromkeys((*SHIPPED, *settings.surfaces)):
        surface = surface_of(name, settings)
        if surface is not None:
            yield surface


def surface_needs(settings: Settings) -> Iterator[tuple[str, Need]]:
    """Ask all surfaces that the settings name what they need here; each need with the place that names its surface.

    Raises:
        SettingsError: As `NamedSurface.needs`, and as `named_surfaces`, which comes first.
    """
    for surface in list(named_surfaces(settings)):
        for need in surface.needs(settings):
            yield surface.where, need


def named_servers(settings: Settings) -> list[Server]:
    """Make the servers of all surfaces that the settings name.

    Raises:
        SettingsError: If something that one needs is missing, or one can't be made.
    """
    check_needs(surface_needs(settings))
    return [surface.make(settings) for surface in named_surfaces(settings)]
