"""The process of a local machine, which a supervisor starts for itself.

It reads its settings from its standard input, serves until that ends, and stops.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import TYPE_CHECKING, Any

from callboard.config import write_own
from callboard.messages import JournalInUseError, SettingsError, reason_of
from callboard.supervisor import Supervisor

if TYPE_CHECKING:
    from callboard.fleet import LocalStart


def main() -> None:
    """Serve as a local machine."""
    from callboard.fleet import NatsEngine, read_start

    start = read_start(sys.stdin.buffer)
    sys.path[:] = start.search_path
    engine = NatsEngine(start.url, start.settings.fleet.machine, makes_streams=True, token=start.token)
    try:
        supervisor = Supervisor.start(start.settings, engine=engine, **_parts(start))
    except JournalInUseError as error:  # by a process that is about to end
        sys.exit(f"{start.settings.fleet.machine}: {error}")
    except Exception as error:  # any error: the program that started this one tells it
        if not isinstance(error, SettingsError) or error.__cause__ is not None:
            traceback.print_exc()
        write_own(start.failure, reason_of(error))
        sys.exit(1)
    with supervisor:
        sys.stdin.buffer.read()  # until the program that started it ends, or stops its supervisor


def _parts(start: LocalStart) -> dict[str, Any]:
    """Call the program's function for the arguments of `Supervisor.start`.

    Raises:
        SettingsError: If there is no such function, it fails, or it returns no arguments by name.
    """
    reference = start.settings.fleet.local_parts
    if reference is None:
        return {}
    module, _, name = reference.partition(":")
    try:
        parts = getattr(importlib.import_module(module), name)()
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:  # any error: it is the program's code
        msg = f"fleet.local_parts: {reference} can't be called: {reason_of(error)}"
        raise SettingsError(msg) from error
    if not isinstance(parts, dict):
        msg = f"fleet.local_parts: {reference} returned a {type(parts).__name__}, not the arguments by name"
        raise SettingsError(msg)
    return parts


if __name__ == "__main__":
    main()
