"""Measure, print, and with ``--write`` update the docs: ``python -m benchmarks``.

Run it from the repository's root.

    python -m benchmarks --quick --no-peers          a quick look, in half a minute
    python -m benchmarks --only job --rounds 9       the job alone
    python -m benchmarks --only start documents      the start, and calls on large documents
    python -m benchmarks --write                     all of it, into docs/benchmarks.md and docs/benchmarks.svg

It only reports: no figure makes a run fail.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contest import ROOT, hold
from benchmarks.environments import PEERS, default_cache, is_made, make, python_of
from benchmarks.parts import FEW, FIGURES, ON_REQUEST, QUICK, WITH_PEERS, Sizes
from benchmarks.report import plotted, replaced, sections

if TYPE_CHECKING:
    from benchmarks.contest import Answers


def interpreters(names: list[str], cache: Path, *, make_them: bool) -> dict[str, Path]:
    """Give the interpreters of the peers' environments.

    An environment that can't be made is reported and left out.
    """
    interpreters_by_name: dict[str, Path] = {}
    for name in names:
        environment = PEERS[name].environment
        if not make_them:
            if is_made(environment, cache):
                interpreters_by_name[name] = python_of(environment, cache)
            continue
        try:
            interpreters_by_name[name] = make(environment, cache)
        except subprocess.CalledProcessError as error:
            say(f"{name} is left out: {(error.stderr or str(error)).strip().splitlines()[-1]}")
        except OSError as error:
            say(f"{name} is left out: {error}")
    return interpreters_by_name


def say(text: str, part: str = "") -> None:
    """Report progress."""
    print(f"{part}: {text}" if part else text, file=sys.stderr, flush=True)


def write(written: dict[str, str], plot: str, folder: Path) -> None:
    """Put the sections and the plot into the documents."""
    document = folder / "benchmarks.md"
    text = document.read_text("utf-8")
    for name, section in written.items():
        text = replaced(text, name, section)
    document.write_text(text, "utf-8")
    if plot:
        (folder / "benchmarks.svg").write_text(plot, "utf-8")


def commit() -> str:
    """Name the commit that is measured."""
    process = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607 - any git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or "unknown"


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parts = [*WITH_PEERS, *FIGURES]
    choices = [*parts, *ON_REQUEST]
    parser.add_argument(
        "--only", nargs="+", choices=choices, default=parts, metavar="PART", help=f"one or more of {', '.join(choices)}"
    )
    parser.add_argument("--tasks", nargs="+", type=int, metavar="N", help="tasks at once; default: 1 10 100 1000")
    parser.add_argument("--rounds", type=int, help="rounds of the job, by default 5; at most 3 for the other parts")
    parser.add_argument("--seconds", type=float, default=12.0, help="job: no repetition after this time")
    parser.add_argument("--quick", action="store_true", help="measure a little of everything, once")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    parser.add_argument("--no-peers", dest="peers", action="store_const", const=[])
    parser.add_argument("--offline", action="store_true", help="only peers with an existing environment")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder of the environments")
    parser.add_argument("--json", type=Path, help="write all answers to this file")
    parser.add_argument("--add", type=Path, help="a file of an earlier run, for the parts that this run omits")
    parser.add_argument("--write", action="store_true", help="update the documents")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    options, state = parsed(arguments), commit()
    sizes = QUICK if options.quick else Sizes()
    if options.tasks:
        sizes = type(sizes)(**{**vars(sizes), "tasks": tuple(options.tasks)})
    rounds = options.rounds or (1 if options.quick else 5)
    missing: set[str] = set()
    earlier = json.loads(options.add.read_text("utf-8")) if options.add else {"parts": {}, "how": {}}
    measured: dict[str, Answers] = earlier["parts"]
    how: dict[str, str] = earlier["how"]
    for name, (questions, peers) in WITH_PEERS.items():
        if name in options.only:
            chosen_peers = [peer for peer in options.peers if peer in peers]
            pythons = interpreters(chosen_peers, options.cache, make_them=not options.offline)
            missing |= set(chosen_peers) - pythons.keys()
            most, seconds = (rounds, options.seconds) if name == "job" else (min(rounds, FEW), math.inf)
            measured[name] = hold(list(questions(sizes, pythons)), most, seconds, partial(say, part=name))
    for name, part in {**FIGURES, **ON_REQUEST}.items():
        if name in options.only:
            most = 1 if name in ON_REQUEST else FEW
            measured[name] = hold(list(part(sizes)), min(rounds, most), math.inf, partial(say, part=name))
    how |= dict.fromkeys(options.only, f"on {datetime.now(UTC):%Y-%m-%d} at commit {state}")
    if "job" in options.only:
        how["job"] += f", {rounds} rounds, or {min(rounds, FEW)} for contenders over {options.seconds:g} s"
    if options.json:
        options.json.write_text(json.dumps({"parts": measured, "how": how}, indent=1), "utf-8")
    answers: Answers = {cell: said for part in measured.values() for cell, said in part.items()}
    print("\n\n".join(sections(answers, how).values()))
    if options.write:
        write(sections(answers, how, brief=True), plotted(answers), options.docs)
    failed = any("error" in answer for said in answers.values() for answer in said)
    return 1 if failed or (missing and not options.offline) else 0


if __name__ == "__main__":
    sys.exit(main())
