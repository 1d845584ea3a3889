"""The command `doctor`: what works here, what is missing, and the commands that bring it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.console._health import findings
from callboard.console._journals import print_json
from callboard.console._text import BAD, GOOD, plain, print_hanging

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from callboard.console._health import Finding

_INDENT = 7
"""Columns before the text: the longest word about a finding, and a space."""


def examine(console: Console, file: Path | None, *, online: bool, as_json: bool) -> bool:
    """Print what works here. Returns whether all does that the settings name."""
    found: list[Finding] = []
    for finding in findings(file, online=online):
        found.append(finding)
        if not as_json:
            _print_finding(console, finding)
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in found])
    bad = [finding for finding in found if finding.named and finding.works is False]
    if not as_json:
        one = f"{bad[0].part} {bad[0].name} does not work" if len(bad) == 1 else f"{len(bad)} things do not work"
        console.print()
        print_hanging(console, Text(plain(one) if bad else "all that the settings name works here"), 0)
    return not bad


def _print_finding(console: Console, finding: Finding) -> None:
    word, style = ("fails", BAD) if finding.named else ("lacks", "yellow")
    if finding.works is not False:
        word, style = ("works", GOOD) if finding.works else ("?", "yellow")
    text = Text(word.ljust(_INDENT), style).append(f"{finding.part} {plain(finding.name)}", "default")
    if len(finding.told) == 1:
        text.append(f": {plain(finding.told[0])}", "default" if finding.works is False else "dim")
    print_hanging(console, text, 0, _INDENT)
    for line in finding.told if len(finding.told) > 1 else ():
        print_hanging(console, Text(plain(line)), _INDENT, 2)
    for command in finding.commands:
        console.print(Text(" " * _INDENT).append(plain(command), "bold"), soft_wrap=True)
