"""Rules that can match nothing: a mistyped name in a rule leaves open what the operator meant to close."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.servers import UNKNOWN
from callboard.config import EXPRESSION, fits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from callboard.config import PolicyRule


@dataclass(frozen=True)
class KnownTool:
    """What there is to know of a tool before anybody calls it."""

    name: str
    applications: frozenset[str]
    """The application roots it works in; empty for any."""
    arguments: frozenset[str] | None
    """The names of its arguments; None where it declares none, and may take any."""


def unmatched(
    rules: Sequence[PolicyRule],
    tools: Collection[KnownTool],
    kinds: Collection[str],
    applications: Callable[[], Collection[str]],
) -> Iterator[tuple[int, str]]:
    """Find the rules that can match nothing, each by its number and with a reason.

    Args:
        rules: The operator's rules.
        tools: All tools of all servers.
        kinds: The kinds of resource that servers name.
        applications: Lists the applications of the targets that there are now; asked only for a rule that names an
            application of which no tool knows.
    """
    names = {tool.name for tool in tools}
    for number, rule in enumerate(rules, 1):
        fitting = [tool for tool in tools if fits(rule.tool, tool.name)]
        if not fitting:
            yield number, f"no tool is called {rule.tool!r}{nearest(rule.tool, names)}"
        known = {application for tool in tools for application in tool.applications} | {""}
        if not any(fits(rule.application, each) for each in known):
            known |= set(applications())
            if not any(fits(rule.application, each) for each in known):
                yield number, f"no application is called {rule.application!r}{nearest(rule.application, known)}"
        for argument in rule.arguments:
            taken = [tool.arguments for tool in fitting]
            if fitting and not any(each is None or argument in each for each in taken):
                there = {name for each in taken for name in each or ()}
                yield number, f"no tool that it is about takes an argument {argument!r}{nearest(argument, there)}"
        for pattern in rule.resource:
            kind, colon, _ = pattern.partition(":")
            fixed = colon and not pattern.startswith(EXPRESSION) and not set(kind) & set("*?[")
            if (fixed and kind not in kinds) or not (colon or fits(pattern, UNKNOWN) or set(pattern) & set("*?[")):
                yield number, f"no server names resources like {pattern!r}{nearest(kind, kinds)}"


def nearest(name: str, known: Collection[str]) -> str:
    """Name the nearest of the known names, as the end of a sentence; empty if none is near."""
    found = difflib.get_close_matches(name.removeprefix(EXPRESSION).strip("*"), sorted(known), n=1)
    return f"; the nearest is {found[0]!r}" if found else ""
