"""Surfaces from the settings: the built-in ones, and those of plug-ins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.config import PluginGroup, find_plugin, fitting_options, import_plugin, make_plugin, plugin_text
from callboard.messages import SettingsError
from callboard.surfaces._need import check_needs
from callboard.surfaces._surface import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from callboard.config import Settings
    from callboard.surfaces._need import Need

SHIPPED: Mapping[str, str] = {
    "documents": "callboard.surfaces.documents:DocumentSurface",
    "desktop": "callboard.surfaces.desktop:DesktopSurface",
    "android": "callboard.surfaces.android:AndroidSurface",
    "browser": "callboard.surfaces.browser:BrowserSurface",
    "shells": "callboard.surfaces.shell:ShellSurface",
    "mail": "callboard.surfaces.mailbox:MailSurface",
}
"""The built-in surfaces: the settings section with their options, and their class, imported on use."""


@dataclass(frozen=True)
class NamedSurface:
    """A surface that the settings name. Its code is not imported yet."""

    name: str
    """The surface's name."""
    where: str
    """The place in the settings that names it."""
    entry: EntryPoint
    options: Mapping[str, Any]

    def needs(self, settings: Settings) -> tuple[Need, ...]:
        """List the requirements that its class declares; none for a factory function.

        Raises:
            SettingsError: If it can't be imported, its `needs` fails, or its options are invalid.
        """
        factory = import_plugin(self.entry, self.where)
        if not (isinstance(factory, type) and issubclass(factory, Server)):
            return ()
        options = self.options and fitting_options(factory, self.options, self.where, settings.path)
        factory_needs = partial(factory.needs, options)
        needs: Sequence[Need] = make_plugin(self.entry, factory_needs, settings, {}, self.where)
        return tuple(needs)

    def make(self, settings: Settings) -> Server:
        """Create the surface, without opening it.

        Raises:
            SettingsError: If it can't be imported or created, or is not a `Server`.
        """
        factory = import_plugin(self.entry, self.where)
        surface: object = make_plugin(self.entry, factory, settings, self.options, self.where)
        if not isinstance(surface, Server):
            msg = f"{self.where}: {plugin_text(self.entry)} returned a {type(surface).__name__}, not a Server"
            raise SettingsError(msg)
        if getattr(surface, "name", None) != self.name:
            surface.name = self.name
        if surface.name != self.name:
            msg = f"{self.where}: {plugin_text(self.entry)} can't be called {self.name!r}"
            raise SettingsError(msg)
        return surface


def shipped_surface(name: str, options: Mapping[str, Any] | None = None) -> NamedSurface:
    """Return a built-in surface, with the options of its section."""
    return NamedSurface(name, name, EntryPoint(name, SHIPPED[name], PluginGroup.SURFACES), options or {})


def surface_of(name: str, settings: Settings) -> NamedSurface | None:
    """Find a surface by name; None for an unwanted built-in one.

    It imports nothing.

    Raises:
        SettingsError: If there is no such plug-in, or it has the name of a built-in surface.
    """
    where, plugin_section = f"surfaces.{name}", settings.surfaces.get(name)
    if name in SHIPPED and plugin_section is not None:
        msg = f"{where}: {name!r} is built into callboard, and is set by the section {name!r}: choose another name"
        raise SettingsError(msg)
    if plugin_section is None:
        section = getattr(settings, name)
        if isinstance(section, dict):  # a surface with several targets, each with its own section
            options: dict[str, Any] = {name: _resolve_paths(section, settings)}
            options |= _mail_options(settings) if name == "mail" else {}
            return shipped_surface(name, options) if section else None
        options = {key: getattr(section, key) for key in type(section).model_fields}
        if name == "browser" and section.workspace is None:
            options["workspace"] = settings.documents.workspace
        return shipped_surface(name, options) if section.wanted else None
    return NamedSurface(
        name, where, find_plugin(PluginGroup.SURFACES, plugin_section.plugin or name, where), plugin_section.options
    )


def _mail_options(settings: Settings) -> dict[str, Any]:
    """Return a mailbox's options of other sections: workspace and passwords.

    Raises:
        SettingsError: If there is no secret of a name.
    """
    secrets: dict[str, str] = {}
    for name, section in settings.mail.items():
        for kind, server in (("smtp", section.smtp), ("imap", section.imap)):
            if server is None or server.secret is None:
                continue
            if server.secret not in settings.secrets:
                msg = f"mail.{name}.{kind}.secret: there is no secret {server.secret!r} in `secrets`"
                raise SettingsError(msg)
            secrets[server.secret] = settings.secrets[server.secret].value.get_secret_value()
    workspace, max_bytes = settings.documents.workspace, settings.documents.max_bytes
    return {"workspace": workspace, "max_bytes": max_bytes, "secrets": secrets}


def _resolve_paths(sections: Mapping[str, BaseModel], settings: Settings) -> dict[str, BaseModel]:
    """Resolve relative paths in sections against the settings file's folder."""
    resolved_sections = {}
    for name, section in sections.items():
        elsewhere = {"cwd"} if getattr(section, "ssh", None) else set()  # a path on another machine
        paths = {
            key: settings.path(value) for key, value in section if isinstance(value, Path) and key not in elsewhere
        }
        resolved_sections[name] = section.model_copy(update=paths)
    return resolved_sections


def named_surfaces(settings: Settings) -> Iterator[NamedSurface]:
    """Find the surfaces that the settings name, built-in ones first.

    It imports nothing.

    Raises:
        SettingsError: As `surface_of`.
    """
    for name in dict.fromkeys((*SHIPPED, *settings.surfaces)):
        surface = surface_of(name, settings)
        if surface is not None:
            yield surface


def surface_needs(settings: Settings) -> Iterator[tuple[str, Need]]:
    """List the requirements of all surfaces, each with its settings place.

    Raises:
        SettingsError: As `NamedSurface.needs`, and as `named_surfaces`, which is called first.
    """
    for surface in list(named_surfaces(settings)):
        for need in surface.needs(settings):
            yield surface.where, need


def make_surfaces(settings: Settings) -> list[Server]:
    """Create all surfaces that the settings name.

    Raises:
        SettingsError: If a requirement is missing, or a surface can't be created.
    """
    check_needs(surface_needs(settings))
    return [surface.make(settings) for surface in named_surfaces(settings)]
