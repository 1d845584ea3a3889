"""Measure observations of windows beside a raw walk: ``python -m benchmarks.desktop``.

It opens real programs on a private display, observes each one repeatedly, and prints the medians as a table in
Markdown. The raw walk queries each visible object for its role, states, name, place and children, one call after the
other, and lists no table. That is the minimum of an observation, without its texts, numbers and picture.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.messages import Look
from callboard.surfaces import Stage
from callboard.surfaces.desktop import DesktopSurface
from callboard.surfaces.desktop._calls import BusError, attribute, method, states
from callboard.surfaces.desktop._tree import TABLES, ObjectState

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.desktop._accessible_programs import AccessibleProgram
    from callboard.surfaces.desktop._calls import Ask

PROGRAMS = {
    "mousepad": ["mousepad"],
    "a form (zenity)": ["zenity", "--forms", "--add-entry=Item", "--add-combo=Colour", "--combo-values=red|green"],
    "LibreOffice Writer": ["soffice", "--writer"],
    "LibreOffice Calc": ["soffice", "--calc"],
}
SCREEN = 0


def raw_walk(program: AccessibleProgram) -> int:
    """Walk a program's windows call by call, and count the visible objects."""

    def ask(call: Ask) -> Any:
        (answer,) = program.ask([call])
        return answer

    count, paths = 0, [path for _, path in ask(method(program.root, "Accessible", "GetChildren"))[0]]
    while paths:
        path = paths.pop()
        state_bits = states(ask(method(path, "Accessible", "GetState")))
        if not state_bits >> ObjectState.SHOWING & 1:
            continue
        count += 1
        role = ask(method(path, "Accessible", "GetRoleName"))
        ask(attribute(path, "Accessible", "Name"))
        ask(method(path, "Component", "GetExtents", "u", SCREEN))
        listed = role[0] not in TABLES and (role[0] != "menu" or state_bits >> ObjectState.SELECTED & 1)
        children = ask(method(path, "Accessible", "GetChildren")) if listed else ([],)
        paths += [] if isinstance(children, BusError) else [child for _, child in children[0]]
    return count


def median(what: Callable[[], object], rounds: int) -> float:
    """Give the median time of a function in milliseconds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        what()
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times)


def measure(surface: DesktopSurface, name: str, rounds: int) -> str:
    """Open a program, observe it, and return its row of the table."""
    application = next(target for target in surface.targets() if target.id == name)
    window = surface.start(application, {})
    desktop = surface._require_desktop()
    program = desktop.programs.of_process(int(str(window.binds["process"])))
    assert program is not None  # noqa: S101 - for the type checker
    controls = len(surface.observe(window, Look()).controls)
    figures = [
        median(lambda: surface.observe(window, Look()), rounds),
        median(lambda: surface.observe(window, Look(picture=False)), rounds),
        median(lambda: surface.fingerprint(window), rounds),
        median(lambda: raw_walk(program), rounds),
    ]
    return f"| {name} | {controls} | {' | '.join(f'{figure:.0f}' for figure in figures)} |"


def main(arguments: list[str] | None = None) -> None:
    """Measure all programs, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.desktop")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    options = parser.parse_args(arguments)
    stage = Stage("desktop")
    with tempfile.TemporaryDirectory() as folder:
        commands = {name: PROGRAMS[name] for name in options.only}
        surface = DesktopSurface("private", folder=Path(folder), applications=commands, installed=False)
        surface.open(stage)
        try:
            print("| window | controls | look, ms | without a picture | fingerprint | raw walk |")
            print("|---|--:|--:|--:|--:|--:|")
            for name in options.only:
                print(measure(surface, name, options.rounds), flush=True)
        finally:
            surface.close()
            stage.close()


if __name__ == "__main__":
    main()
