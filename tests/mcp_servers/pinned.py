"""Third-party MCP servers that tests drive, each pinned and in a folder of its own.

``python tests/mcp_servers/pinned.py`` installs those that are missing; it needs npm, and uv or pip. Their dependencies
are not those of callboard: one has an older SDK, one an SDK that it does not go with. No package runs a program of its
own while it is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pinned:
    """One server, as npm or PyPI has it."""

    name: str
    requirements: tuple[str, ...]
    program: str
    npm: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the installation in the user's cache, one for each version."""
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser()
        version = "-".join(each.rpartition("=" if not self.npm else "@")[2] for each in self.requirements)
        return caches / "callboard" / "mcp-servers" / f"{self.name}-{version}"

    @property
    def path(self) -> Path:
        """Its program."""
        return self.folder / ("node_modules/.bin" if self.npm else "bin") / self.program

    @property
    def there(self) -> bool:
        """True if it is installed completely."""
        return self._whole.is_file() and self.path.is_file()

    @property
    def missing(self) -> str:
        """Say which program is missing to run it, and how to get it; empty if nothing is."""
        if self.npm and shutil.which("node") is None:
            return "node is missing: apt-get install nodejs npm"
        return "" if self.there else f"{self.name} is not installed: python tests/mcp_servers/pinned.py"

    @property
    def _whole(self) -> Path:
        return self.folder / "whole"

    def install(self) -> None:
        """Install it, if it is not there.

        Raises:
            OSError: If npm is missing.
            subprocess.CalledProcessError: If npm, pip or uv fail; it has their output.
        """
        if self.there:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for command in self._npm() if self.npm else self._python():
            subprocess.run(command, check=True, capture_output=True, text=True)
        self._whole.touch()

    def _npm(self) -> list[list[str]]:
        quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
        return [["npm", "install", "--ignore-scripts", "--prefix", str(self.folder), *quiet, *self.requirements]]

    def _python(self) -> list[list[str]]:
        python = str(self.folder / "bin" / "python")
        uv, wheels = shutil.which("uv"), ["--only-binary", ":all:"]
        if uv:
            make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(self.folder)]
            return [make, [uv, "pip", "install", "--quiet", "--python", python, *wheels, *self.requirements]]
        make = [sys.executable, "-m", "venv", str(self.folder)]
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        return [make, [*pip, *wheels, *self.requirements]]


def _official(name: str) -> Pinned:
    requirement = f"@modelcontextprotocol/server-{name}@2026.8.31"
    return Pinned(name, (requirement,), f"mcp-server-{name}", npm=True)


SERVERS = (
    _official("everything"),
    _official("filesystem"),
    _official("memory"),
    Pinned("git", ("mcp-server-git==2026.10.19", "mcp==2.3.0"), "mcp-server-git"),
    Pinned("time", ("mcp-server-time==2025.9.25", "mcp==1.30.0"), "mcp-server-time"),
)
"""Those that work, by the names that tests give them."""
OUTDATED = Pinned("outdated", ("mcp-server-time==2025.9.25", "mcp==2.3.0"), "mcp-server-time")
"""One that was made for an older SDK than it has."""


def main() -> int:
    """Install all that are missing, side by side."""
    failed = 0
    with ThreadPoolExecutor() as pool:
        installing = {each: pool.submit(each.install) for each in (*SERVERS, OUTDATED)}
    for server, done in installing.items():
        error = done.exception()
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        print(f"{server.path}" if error is None else f"{server.name} can't be installed: {said}")
        failed += error is not None
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
