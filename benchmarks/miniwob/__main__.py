"""Solve the pages, and print a line for each: ``python -m benchmarks.miniwob``."""

from __future__ import annotations

import argparse

from benchmarks.miniwob.pages import page_names
from benchmarks.miniwob.run import SOLVERS, attempts


def main() -> None:
    """Solve the given pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.miniwob")
    parser.add_argument("pages", nargs="*", help="names of pages; default: all")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    names = [name for name in options.pages or page_names() if name in SOLVERS]
    for attempt in attempts(names, range(1, options.seeds + 1)):
        print(attempt.name, attempt.seed, attempt.by, attempt.reward, attempt.steps, attempt.calls,
              f"{attempt.seconds:.1f}", attempt.reason, flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
