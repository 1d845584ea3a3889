"""Parts of the machines that a supervisor starts for itself (`fleet.local_parts`)."""

from __future__ import annotations

import os
import time

from callboard import Settings
from callboard.answers import act, finish
from callboard.testing import MemoryServer

WINDOWS = [f"memo:w{number}" for number in range(4)]


def app(request):
    """Tell the process that does the work."""
    if "slow" in request.request:
        time.sleep(1.0)
    return {"Status": "FINISH", "Result": os.getpid()}


def copy(request):
    """Save a copy of a document, or only tell the process."""
    return act("save_as", path="copy.csv", status="FINISH") if "copy" in request.request else finish(os.getpid())


def document_parts():
    """Give the model of a machine that works on documents."""
    return {"models": {"app": copy}}


def parts():
    """Give the surface and the model of one machine."""
    names = os.environ.get("LOCAL_WINDOWS", " ".join(WINDOWS)).split()
    windows = [MemoryServer.window(name.removeprefix("memo:")) for name in names]
    return {"servers": [MemoryServer(*windows)], "models": {"app": app}}


def no_parts():
    """Give something else than the arguments by name."""
    return [1]


def other_parts():
    """Give an argument that there is not."""
    return {"surfaces": []}


def local(count=2, function="parts", **sections):
    """Give settings with machines of these parts."""
    fleet = {"local": count, "local_parts": f"local_parts:{function}"}
    return Settings.load(fleet=fleet, log={"stream": "off"}, **sections)
