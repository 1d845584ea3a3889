"""Detection of rules that can't match.

A mistyped name would allow an action meant to be denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.config import EXPRESSION, fits
from callboard.messages import did_you_mean
from callboard.surfaces import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from callboard.config import PolicyRule


@dataclass(frozen=True)
class KnownTool:
    """The static facts about a tool."""

    name: str
    applications: frozenset[str]
    """The application roots in which it works; empty for any."""
    arguments: frozenset[str] | None
    """The names of its arguments; None if it declares none and may take any."""


def unmatched(
    rules: Sequence[PolicyRule],
    tools: Collection[KnownTool],
    kinds: Collection[str],
    applications: Callable[[], Collection[str]],
) -> Iterator[tuple[int, str]]:
    """Find the rules that can't match.

    Each comes with its number and the reason.

    Args:
        rules: The operator's rules.
        tools: All tools of all surfaces.
        kinds: The kinds of resource that surfaces name.
        applications: Lists the applications of the current targets; called only if a rule names an application that
            no tool knows.
    """
    names = {tool.name for tool in tools}
    for number, rule in enumerate(rules, 1):
        fitting = [tool for tool in tools if fits(rule.tool, tool.name)]
        if not fitting:
            yield number, f"no tool is called {rule.tool!r}{nearest(rule.tool, names)}"
        roots = {application for tool in tools for application in tool.applications} | {""}
        if not any(fits(rule.application, root) for root in roots):
            roots |= set(applications())
            if not any(fits(rule.application, root) for root in roots):
                yield number, f"there is no application {rule.application!r}{nearest(rule.application, roots)}"
        for argument in rule.arguments:
            argument_sets = [tool.arguments for tool in fitting]
            if fitting and not any(declared is None or argument in declared for declared in argument_sets):
                arguments = {name for declared in argument_sets for name in declared or ()}
                yield number, f"no tool that it is about takes an argument {argument!r}{nearest(argument, arguments)}"
        for pattern in rule.resource:
            kind, colon, _ = pattern.partition(":")
            fixed = colon and not pattern.startswith(EXPRESSION) and not set(kind) & set("*?[")
            if (fixed and kind not in kinds) or not (colon or fits(pattern, UNKNOWN) or set(pattern) & set("*?[")):
                yield number, f"no surface names resources like {pattern!r}{nearest(kind, kinds)}"


def nearest(name: str, candidates: Collection[str]) -> str:
    """Suggest the nearest known name, as the end of a sentence.

    Empty if none is near.
    """
    return did_you_mean(name.removeprefix(EXPRESSION).strip("*"), sorted(candidates))
