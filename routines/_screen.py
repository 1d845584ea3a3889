"""Screen of a step: window in front, open dialogs, and folders."""

from __future__ import annotations

import itertools
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from callboard.messages import TargetKind

if TYPE_CHECKING:
    from callboard.messages import Observation, Target

_DIALOGS = frozenset(
    {
        "alert",
        "alert dialog",
        "alertdialog",
        "color chooser",
        "dialog",
        "file chooser",
        "font chooser",
        "page dialog",
    }
)
"""The kinds of controls that are dialogs, on all surfaces."""
FOLDERS = ("folder", "workspace", "cwd")
"""The facts of a window that are folders, those that change least first."""


_NAMED_FOLDER = re.compile(r"(?:/|[A-Za-z]:[\\/])[^/\\]")


def dialogs_of(observation: Observation) -> tuple[str, ...]:
    """Return the names of the open dialogs.

    They are controls of certain kinds, and the texts of the facts `dialog` and `dialogs`. The first has the dialog's
    first label with it, since many questions have the same title.
    """
    names = [
        control.name or control.kind for control in observation.controls if control.visible and control.kind in _DIALOGS
    ]
    one, several = observation.window.get("dialog"), observation.window.get("dialogs")
    if isinstance(one, str) and one:
        labels = (control.name for control in observation.controls if control.kind == "label" and control.name != one)
        names.append(": ".join((one, *itertools.islice(labels, 1))))
    names += [name for name in several if isinstance(name, str)] if isinstance(several, list) else []
    return tuple(names)


def window_of(observation: Observation, target: Target | None) -> str:
    """Return what is in front, in a form that lasts.

    Empty where nothing is known. It is a document's application, a desktop's application, an Android device's activity,
    a page's address without query, or a shell's working folder.
    """
    facts = observation.window
    match facts:
        case {"url": str(url)}:
            return _page(url)
        case {"cwd": str(folder), "workspace": str(workspace)}:
            return _folder(folder, workspace)
        case {"application": str(application)}:
            return application
        case {"titles": list()} if target is not None and target.kind is TargetKind.WINDOW:
            return target.address.split("/")[1]
        case _:
            return ""


def folders_of(observation: Observation) -> dict[str, str]:
    """Return the folders of a target, by the names of the facts.

    They are absolute, and other ones in other runs. The root of a file system is left out.
    """
    folders = {name: observation.window.get(name) for name in FOLDERS}
    return {name: path for name, path in folders.items() if isinstance(path, str) and _NAMED_FOLDER.match(path)}


def _page(url: str) -> str:
    """Return an address without query and fragment.

    A fragment that is a path is kept.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # it is no address, and is compared as it is
        return url
    fragment = parts.fragment.removeprefix("!")
    route = f"#{fragment.partition('?')[0]}" if fragment.startswith("/") else ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl() + route


def _folder(folder: str, workspace: str) -> str:
    """Return a working folder, relative to a workspace around it."""
    path, base = PurePosixPath(folder), PurePosixPath(workspace)
    return str(path.relative_to(base)) if path.is_relative_to(base) else folder
