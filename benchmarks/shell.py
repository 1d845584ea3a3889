"""Measure a command in a shell beside plain ones: ``python -m benchmarks.shell``.

It prints the medians as a table in Markdown. The remote machine is an SSH server on loopback, which runs its commands
here. `ssh` logs in to it with the same keys, once for each command, as it does without a control socket.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.config import ShellSettings
from callboard.surfaces import Stage
from callboard.surfaces.shell import ShellSurface

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))
from ssh_server import USER, SshServer, ssh_server

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 21
COMMAND = "true"


def contenders(surface: ShellSurface, machine: SshServer) -> dict[str, Callable[[], object]]:
    """Give the ways to run a command, by name in the table."""
    tool = next(entry.tool.fn for entry in surface.tools() if entry.name == "run")

    def run(name: str) -> object:
        arguments = {"shell": name, "command": COMMAND}
        return asyncio.run(tool(**arguments))

    options = ("BatchMode=yes", f"UserKnownHostsFile={machine.known_hosts}", "StrictHostKeyChecking=yes")
    words = [word for option in options for word in ("-o", option)]
    ssh = ["ssh", "-F", "none", "-i", str(machine.key), "-p", str(machine.port), *words, f"{USER}@127.0.0.1", COMMAND]
    return {
        "`subprocess.run`": lambda: subprocess.run(["bash", "-c", COMMAND], check=True),  # noqa: S607 - any bash
        "`run`, here": lambda: run("here"),
        "`run`, here, not isolated": lambda: run("open"),
        "`ssh`": lambda: subprocess.run(ssh, check=True),  # the words above
        "`run`, over SSH": lambda: run("there"),
    }


def median(work: Callable[[], object]) -> float:
    """Give the median time in milliseconds."""
    work()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - begin))
    return statistics.median(times)


def main() -> None:
    """Measure all, and print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, stage = Path(name), Stage("shells")
        with ssh_server(folder / "machine") as machine:
            shells = {
                "here": ShellSettings(cwd=folder),
                "open": ShellSettings(cwd=folder, isolated=False),
                "there": ShellSettings(cwd=folder, **machine.section),
            }
            surface = ShellSurface(shells)
            surface.open(stage)
            try:
                print("| a command that does nothing | ms |\n|---|--:|")
                for called, work in contenders(surface, machine).items():
                    print(f"| {called} | {median(work):.1f} |")
            finally:
                surface.close()
                stage.close()


if __name__ == "__main__":
    main()
