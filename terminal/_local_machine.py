"""The process of a local machine, which a supervisor starts for itself.

It reads its settings from its standard input, serves until that ends, and stops.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from callboard.messages import SettingsError
from callboard.supervisor import Supervisor

if TYPE_CHECKING:
    from callboard.fleet import LocalStart


def main() -> None:
    """Serve as a local machine."""
    from callboard.fleet import NatsEngine, read_start

    start = read_start(sys.stdin.buffer)
    sys.path[:] = start.search_path
    engine = NatsEngine(start.url, start.settings.fleet.machine, makes_streams=True, token=start.token)
    with Supervisor.start(start.settings, engine=engine, **_parts(start)):
        sys.stdin.buffer.read()  # until the program that started it ends, or stops its supervisor


def _parts(start: LocalStart) -> dict[str, Any]:
    """Call the program's function for the arguments of `Supervisor.start`.

    Raises:
        SettingsError: If there is no such function, or it returns no arguments by name.
    """
    reference = start.settings.fleet.local_parts
    if reference is None:
        return {}
    module, _, name = reference.partition(":")
    parts = getattr(importlib.import_module(module), name)()
    if not isinstance(parts, dict):
        msg = f"fleet.local_parts: {reference} returned a {type(parts).__name__}, not the arguments by name"
        raise SettingsError(msg)
    return parts


if __name__ == "__main__":
    main()
