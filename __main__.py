"""The program `callboard`."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import sys


def main() -> None:
    """Run the program `callboard`."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # characters that can't be encoded or decoded must not raise
    if sys.argv[1:] == ["--version"]:  # the answer needs nothing of the package
        try:
            print(f"callboard {importlib.metadata.version('callboard')}", flush=True)  # noqa: T201 - the program's answer
        except OSError:
            pass  # the command below reports an output that can't be written
        else:
            return
    from callboard.terminal import COMPLETE, app

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # see `callboard/__init__.py`
    if COMPLETE in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # it registers the shells; `add_completion` would do so at each start
    app(prog_name="callboard")


if __name__ == "__main__":
    main()
