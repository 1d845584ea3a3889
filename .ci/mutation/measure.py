"""Run pytest in a trial's environment, and record times and coverage.

measure.py map MAP PYTEST_ARGUMENT...              run all, with coverage, and write the map
measure.py run REPORTS SELECTION PYTEST_ARGUMENT...    run the selected tests, in their order
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from coverage import CoverageData


class Reports:
    """Write a line of JSON for each phase of a test, as soon as it has ended."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write one phase: set-up, call or tear-down."""
        row = {"test": report.nodeid, "when": report.when, "outcome": report.outcome, "seconds": report.duration}
        if report.failed:
            row["error"] = report.longreprtext[-2000:]
        self._file.write(json.dumps(row) + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report a file that can't be collected: a mutant may break its import."""
        if report.failed:
            row = {"test": report.nodeid, "when": "collect", "outcome": "failed", "seconds": 0}
            row["error"] = report.longreprtext[-2000:]
            self._file.write(json.dumps(row) + "\n")


class Selection:
    """Keep the selected tests, in the order of the selection, each with its limit of seconds.

    A test that is neither selected nor left out has a name that the mutant changed: it runs too.
    """

    def __init__(self, path: Path) -> None:
        chosen = json.loads(path.read_text(encoding="utf-8"))
        self._limits = chosen["limits"]
        self._place = {test: place for place, test in enumerate(self._limits)}
        self._left_out = set(chosen["left_out"])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drop and sort the collected tests."""
        kept = [item for item in items if item.nodeid not in self._left_out]
        for item in kept:
            item.add_marker(pytest.mark.timeout(self._limits.get(item.nodeid, max(self._limits.values()))))
        items[:] = sorted(kept, key=lambda item: self._place.get(item.nodeid, len(self._place)))


def read_reports(path: Path) -> tuple[dict[str, float], set[str]]:
    """Sum the seconds of each test, and name those that failed."""
    seconds: dict[str, float] = {}
    failed = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        seconds[row["test"]] = seconds.get(row["test"], 0.0) + row["seconds"]
        if row["outcome"] == "failed":
            failed.add(row["test"])
    return seconds, failed


def write_map(path: Path, arguments: list[str]) -> None:
    """Run all tests with coverage and write, for each line, the tests that reach it (as bits of a number)."""
    reports, data_file = path.with_suffix(".reports"), path.with_suffix(".coverage")
    os.environ["COVERAGE_FILE"] = str(data_file)
    os.environ["COVERAGE_CORE"] = "ctrace"  # it has contexts and sees all threads
    pytest.main(["--cov", "--cov-report=", "--cov-context=test", *arguments], plugins=[Reports(reports)])
    seconds, failed = read_reports(reports)
    tests = sorted(seconds)
    bit = {test: 1 << place for place, test in enumerate(tests)}
    data = CoverageData(str(data_file))
    data.read()
    lines = {}
    for file in data.measured_files():
        reached = {}
        for line, contexts in data.contexts_by_lineno(file).items():
            names = {context.rpartition("|")[0] for context in contexts}
            if bits := sum(bit[name] for name in names if name in bit):
                reached[line] = f"{bits:x}"
        lines[Path(file).relative_to(Path.cwd()).as_posix()] = reached
    measured = {"tests": [[test, seconds[test]] for test in tests], "failed": sorted(failed), "lines": lines}
    path.write_text(json.dumps(measured), encoding="utf-8")


def main() -> int:
    """Run the command that the first argument names."""
    what, *rest = sys.argv[1:]
    if what == "map":
        write_map(Path(rest[0]), rest[1:])
        return 0
    return pytest.main(rest[2:], plugins=[Reports(Path(rest[0])), Selection(Path(rest[1]))])


if __name__ == "__main__":
    sys.exit(main())
