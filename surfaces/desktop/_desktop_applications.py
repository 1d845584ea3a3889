"""Startable applications: those installed, and those in the settings."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ENTRY = "Desktop Entry"
_FILE_CODES = re.compile("%[fFuU]")
_CODES = re.compile("%[a-zA-Z]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCHEMES = frozenset({"file", "http", "https", "mailto"})
"""The schemes of addresses that applications may open. LibreOffice runs ``macro:`` without a question."""
_OFFICE = {"libreoffice", "soffice", "lowriter", "localc", "loimpress", "lodraw", "lomath", "lobase"}


@dataclass(frozen=True)
class DesktopApplication:
    """One application that can be started."""

    id: str
    """Its name in addresses: the name of its desktop entry, or its name in the settings."""
    title: str
    command: tuple[str, ...]
    opens: bool = False
    """True if it can open a file or an address from its command line."""

    def started_with(self, document: str) -> list[str]:
        """Return the command that starts it.

        Args:
            document: A file or an address to open; empty for none. A leading hyphen does not make it an option of the
                program: it is opened as a file in the folder.

        Raises:
            ToolError: If the address has a scheme that may run code, such as ``macro:`` or ``javascript:``.
        """
        scheme = _SCHEME.match(document)
        if scheme is not None and scheme[1].lower() not in _SCHEMES:
            msg = (
                f"addresses that begin with {scheme[1]}: can't be opened, only {', '.join(sorted(_SCHEMES))}. "
                "Write a file with a colon in its name as ./name"
            )
            raise ToolError(msg)
        if document.startswith("-"):
            document = f"./{document}"
        office = ("--norestore", "--nologo", "--nofirststartwizard") if Path(self.command[0]).name in _OFFICE else ()
        return [*self.command, *office, *([document] if document else [])]


def installed(environment: Mapping[str, str]) -> Iterator[DesktopApplication]:
    """Find the installed applications that are shown in menus.

    Source: the Desktop Entry Specification of freedesktop.org, version 1.5.
    """
    known_names = set()
    home = environment.get("XDG_DATA_HOME") or os.path.join(environment.get("HOME", "/"), ".local/share")  # noqa: PTH118 - a text
    shared = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    for folder in [Path(data_folder) / "applications" for data_folder in (home, *shared.split(":")) if data_folder]:
        for path in sorted(folder.glob("**/*.desktop")):
            name = "-".join(path.relative_to(folder).parts).removesuffix(".desktop")
            if name not in known_names:
                known_names.add(name)
                application = _read(name, path)
                if application is not None:
                    yield application


def named(settings: Mapping[str, Sequence[str]]) -> Iterator[DesktopApplication]:
    """Yield the applications of the settings.

    Args:
        settings: Commands by name, in which ``%f`` stands for a file to open.
    """
    for name, command in settings.items():
        opens = any(_FILE_CODES.fullmatch(part) for part in command)
        yield DesktopApplication(name, name, tuple(part for part in command if not _FILE_CODES.fullmatch(part)), opens)


def _read(name: str, path: Path) -> DesktopApplication | None:
    parser = configparser.RawConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys are case-sensitive
    try:
        parser.read(path, encoding="utf-8")
        entry = parser[_ENTRY]
        words = shlex.split(entry.get("Exec", ""))
    except (OSError, KeyError, ValueError, configparser.Error):
        return None
    hidden = any(entry.get(key, "false").lower() == "true" for key in ("Hidden", "NoDisplay", "Terminal"))
    if hidden or entry.get("Type") != "Application" or not words or shutil.which(words[0]) is None:
        return None
    tried = entry.get("TryExec")
    if tried and shutil.which(tried) is None:
        return None
    opens = any(_FILE_CODES.fullmatch(word) for word in words)
    command = tuple(word.replace("%%", "%") for word in words if not _CODES.fullmatch(word))
    return DesktopApplication(name, entry.get("Name", name), command, opens)
