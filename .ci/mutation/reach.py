"""The tests that may kill a mutant.

First come those that reach its line, then those of its area and those that start processes.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from mutation.copies import CACHE, git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutation.copies import Copy
    from mutation.mutants import Mutant

WITH_PROCESSES = ("subprocess", "forks", "os.fork", "multiprocessing")

LATE_SECONDS = 100.0
"""Usual seconds of the tests that are a survivor's last chance."""

PATIENCE = 120.0
"""The seconds that a test may take beyond ten times its usual time; the tests' own patience is 60 s."""


@dataclass
class Coverage:
    """The lines that each test reaches, and its duration."""

    tests: list[str]
    seconds: dict[str, float]
    broken: set[str]
    """Tests that fail without a mutant, and are not used."""
    lines: dict[str, dict[int, int]]
    """The tests that reach a line, as bits of a number, by file and line."""
    sound: set[str] = field(default_factory=set)
    """Tests that failed with a mutant, and passed without it in the same environment."""

    @classmethod
    def read(cls, path: Path) -> Coverage:
        """Read the map that ``measure.py`` wrote."""
        raw = json.loads(path.read_text(encoding="utf-8"))
        tests = [test for test, _ in raw["tests"]]
        lines = {
            file: {int(line): int(bits, 16) for line, bits in reached.items()} for file, reached in raw["lines"].items()
        }
        return cls(tests, dict(raw["tests"]), set(raw["failed"]), lines)

    def reaching(self, mutant: Mutant) -> list[str]:
        """Name the tests that reach a mutant, the fastest first.

        For a mutant in code that runs at import, these are the tests of the file.
        """
        lines = self.lines.get(mutant.file, {})
        for first, last in mutant.reached_by:
            if bits := _union(lines.get(line, 0) for line in range(first, last + 1)):
                return self.fastest_first(self._named(bits))
        if mutant.reached_by:
            return []
        return self.fastest_first(self._named(_union(lines.values())))

    def limit(self, test: str) -> float:
        """Give the seconds after which a test counts as hanging."""
        return PATIENCE + 10 * self.seconds[test]

    def _named(self, bits: int) -> Iterator[str]:
        return (test for place, test in enumerate(self.tests) if bits >> place & 1)

    def fastest_first(self, tests: Iterable[str]) -> list[str]:
        """Sort by usual time, without broken tests."""
        return sorted(set(tests) - self.broken, key=lambda test: (self.seconds[test], test))


def _union(bits: Iterable[int]) -> int:
    union = 0
    for each in bits:
        union |= each
    return union


def coverage_of(copy: Copy, jobs: int) -> Coverage:
    """Give the map of the last commit, made if needed.

    A commit that changes only documents needs no new map.
    """
    entries = [line for line in git("ls-tree", "HEAD").splitlines() if not line.endswith((".md", "\t.ci", "\tdocs"))]
    key = hashlib.sha256("\n".join(entries).encode()).hexdigest()[:16]
    path = CACHE / f"map-{key}.json"
    if not path.exists():
        print("running all tests once, with coverage ...", flush=True)
        before, measured = time.monotonic(), path.with_suffix(".new.json")
        copy.measure(measured, jobs)
        raw = json.loads(measured.read_text(encoding="utf-8"))
        coverage = Coverage.read(measured)
        suspects, coverage.broken = sorted(coverage.broken), set()
        raw["failed"] = [test for test in suspects if copy.run({test: coverage.limit(test)}, coverage.tests).failed]
        measured.write_text(json.dumps(raw), encoding="utf-8")
        for older in set(CACHE.glob("map-*.json")) - {measured}:
            older.unlink()
        measured.replace(path)
        print(f"... {(time.monotonic() - before) / 60:.0f} min", flush=True)
    coverage = Coverage.read(path)
    for test in sorted(coverage.broken):
        print(f"fails without a mutant, not used: {test}")
    return coverage


def last_chance(file: str, copy: Copy, coverage: Coverage) -> list[str]:
    """Name fault tests, and tests of a file's area that start processes.

    Coverage does not see all lines that they reach.

    Of each test file the same number, the fastest, for as many seconds as a survivor may take.
    """
    parts = Path(file).with_suffix("").parts
    area = parts[1] if parts[0] == "actors" and len(parts) > 2 else parts[0]  # actors/area/file
    beside = (f"tests/{area}/", f"tests/test_{parts[-1].strip('_')}.py")
    by_file: dict[str, list[str]] = {}
    for test in coverage.fastest_first(coverage.tests):
        by_file.setdefault(test.partition("::")[0], []).append(test)
    rows = [
        tests
        for name, tests in by_file.items()
        if name.startswith("tests/faults/") or (name.startswith(beside) and _starts_processes(copy.folder / name))
    ]
    turns = [test for turn in zip_longest(*rows) for test in turn if test is not None]
    used = accumulate(coverage.seconds[test] for test in turns)
    return coverage.fastest_first(test for test, seconds in zip(turns, used, strict=True) if seconds <= LATE_SECONDS)


def _starts_processes(test_file: Path) -> bool:
    sources = (
        path.read_text(encoding="utf-8") for path in (test_file, test_file.with_name("conftest.py")) if path.exists()
    )
    return any(word in source for source in sources for word in WITH_PROCESSES)
