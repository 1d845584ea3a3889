"""Copies of the last commit with environments, to try mutants in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutation.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
MEASURE = Path(__file__).resolve().with_name("measure.py")
_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = Path(os.environ.get("CALLBOARD_CI_CACHE") or _CACHES / "callboard" / "ci") / "mutate"

PYTEST = ["-p", "no:cacheprovider", "--hypothesis-profile=gate", "-q", "--tb=short", "-m", "not slow and not local_llm"]
NOT_RUN = ("tests/benchmarks/", "tests/local_llm/", "tests/mcp_servers/")

NOTHING_COLLECTED = 5
"""Pytest's exit status if no test was selected."""

GRACE = 60.0
"""The seconds that pytest may take beyond a test's limit, before its processes are killed."""


class TrialError(Exception):
    """The trial itself failed, or was interrupted."""


def check(*command: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"
        raise TrialError(msg)
    return done.stdout


def git(*arguments: str) -> str:
    """Run git in the working tree, which it only reads."""
    return check("git", "-C", str(ROOT), *arguments).strip()


def environment() -> Path:
    """Give the folder of shared packages, made if needed.

    There is one for each list of packages and each Python.
    """
    project = tomllib.loads(git("show", "HEAD:pyproject.toml"))["project"]
    wanted = [sys.version, project["dependencies"], project["optional-dependencies"]]
    key = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]
    folder = CACHE / f"environment-{key}"
    if not (folder / "made").exists():
        print("making the environment ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        check(sys.executable, "-m", "venv", str(folder))
        pip = [str(folder / "bin" / "python"), "-m", "pip"]
        with tempfile.TemporaryDirectory() as clone:
            check("git", "clone", "--quiet", str(ROOT), f"{clone}/clone")
            extra = ["pip>=23.1", "setuptools>=77", "coverage>=7.10", "pytest-cov>=7", "pytest-xdist>=3.8"]
            check(*pip, "install", "--quiet", f"{clone}/clone[test]", *extra)
        check(*pip, "uninstall", "--quiet", "--yes", "callboard")
        (folder / "made").touch()
    return folder


@dataclass
class Ran:
    """One run of selected tests."""

    passed: list[str]
    failed: str = ""
    """The test that failed, or the reason why none could."""
    timed_out: bool = False


class Copy:
    """A clone with its own environment, for one mutant at a time."""

    stopping = threading.Event()
    """Set when the trial is interrupted: all copies stop."""

    def __init__(self, number: int, work: Path, environment: Path) -> None:
        self.folder = work / f"c{number}"
        self._home = work / f"h{number}"
        self._temporary = work / f"t{number}"
        self._mark = f"{work.name}-{number}"
        self._python = self._home / "bin" / "python"
        self._temporary.mkdir()
        check("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(self.folder))
        # The packages are shared; only the package under test is installed in each environment, from its own clone.
        check(sys.executable, "-m", "venv", "--without-pip", str(self._home))
        packages = f"python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        (self._home / "lib" / packages / "shared.pth").write_text(f"{environment / 'lib' / packages}\n")
        pip = str(environment / "bin" / "pip")
        check(
            *(pip, "--python", str(self._python), "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "-e", str(self.folder)),
        )
        # A mutant may have the size and the second of its original, so bytecode is validated by the hash of its source.
        check(
            *(str(self._python), "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"),
            *sorted(str(path) for path in self.folder.iterdir() if not path.name.startswith(".")),
        )

    def source(self, file: str) -> str:
        """Read a file of the clone."""
        return (self.folder / file).read_text(encoding="utf-8")

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Apply a mutant, and revert it."""
        path = self.folder / mutant.file
        source = self.source(mutant.file)
        path.write_text(mutant.applied(source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")

    def measure(self, path: Path, jobs: int) -> None:
        """Run all tests with coverage and write the map."""
        ignored = [f"--ignore={folder}" for folder in NOT_RUN]
        log = path.with_suffix(".log")
        with log.open("w") as out:
            arguments = ["map", str(path), *PYTEST, "-n", str(jobs), "--timeout=1200", *ignored]
            process = self._start(arguments, out)
            try:
                process.wait()
            finally:
                self._end(process)
        if not path.exists():
            msg = f"the tests could not be measured: {log}"
            raise TrialError(msg)

    def run(self, limits: Mapping[str, float], known: Sequence[str]) -> Ran:
        """Run tests in this order, each within its limit of seconds, until one fails or all have passed.

        Of the known tests no others run; an unknown one has a name that the mutant changed.
        """
        reports, selection = self._home / "reports", self._home / "selection"
        reports.write_text("")
        left_out = sorted(set(known) - limits.keys())
        selection.write_text(json.dumps({"limits": dict(limits), "left_out": left_out}), encoding="utf-8")
        files = list(dict.fromkeys(test.partition("::")[0] for test in limits))
        arguments = ["run", str(reports), str(selection), *PYTEST, "-x", *files]
        with (self._home / "output").open("w") as out:
            process = self._start(arguments, out)
            try:
                return self._watch(process, reports, GRACE + max(limits.values()))
            finally:
                self._end(process)
                shutil.rmtree(self._temporary, ignore_errors=True)
                self._temporary.mkdir(exist_ok=True)

    def _watch(self, process: subprocess.Popen[bytes], reports: Path, limit: float) -> Ran:
        ran = Ran([])
        progress = time.monotonic()
        with reports.open(encoding="utf-8") as lines:
            while not self.stopping.is_set():
                status = process.poll()
                while line := lines.readline():
                    progress = time.monotonic()
                    row = json.loads(line)
                    if row["outcome"] == "failed":
                        return Ran(ran.passed, row["test"] or "(collection)", "from pytest-timeout" in row["error"])
                    if row["when"] == "teardown":
                        ran.passed.append(row["test"])
                if status in {0, NOTHING_COLLECTED}:
                    return ran
                if status is not None:
                    return Ran(ran.passed, f"(pytest ended with {status}: {self.tail(200)})")
                if time.monotonic() - progress > limit:
                    return Ran(ran.passed, f"(nothing ended within {limit:.0f} s)", timed_out=True)
                time.sleep(0.1)
        msg = "interrupted"
        raise TrialError(msg)

    def tail(self, characters: int = 2000) -> str:
        """Give the end of the last run's output."""
        return (self._home / "output").read_text(encoding="utf-8", errors="replace")[-characters:]

    def _start(self, arguments: list[str], out: IO[str]) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
        environment |= {
            "MUTATION_COPY": self._mark,
            "PATH": f"{self._python.parent}{os.pathsep}{environment.get('PATH', '')}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self._temporary),
            "VIRTUAL_ENV": str(self._home),
        }
        return subprocess.Popen(
            [str(self._python), str(MEASURE), *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a run's process group, and processes with this copy's mark."""
        if process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)  # after a failure it usually tears down and exits
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        mark = f"MUTATION_COPY={self._mark}".encode()
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in entry.read_bytes().split(b"\0"):
                    os.kill(int(entry.parent.name), signal.SIGKILL)
