"""The optional extras of the package, and the distributions that each still lacks."""

from __future__ import annotations

import importlib.metadata
import re

_OURSELVES = "callboard"
_DEVELOPERS = {"dev", "local-llm", "test"}
"""Extras for work on the package itself."""
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?[^;]*(?:;\s*(?P<marker>.*))?")
_OF_EXTRA = re.compile(r"""\(?\s*extra\s*==\s*['"](?P<extra>[^'"]+)['"]\s*\)?""")
"""A marker that asks for an extra alone; one that asks for more is not evaluated."""


def extras() -> tuple[str, ...]:
    """Name the extras of the package, but for those of its developers."""
    named = importlib.metadata.metadata(_OURSELVES).get_all("Provides-Extra") or []
    return tuple(sorted(set(named) - _DEVELOPERS))


def missing_distributions(extra: str) -> tuple[str, ...]:
    """Name the distributions that an extra of the package asks for and that are not installed."""
    return tuple(dict.fromkeys(_missing(_OURSELVES, extra, set())))


def _missing(distribution: str, extra: str, seen: set[tuple[str, str]]) -> list[str]:
    """Follow the requirements of an extra; versions are left to pip."""
    if (distribution, extra) in seen:
        return []
    seen.add((distribution, extra))
    try:
        requirements = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return [distribution]
    missing = []
    for requirement in filter(None, map(_REQUIREMENT.match, requirements)):
        marker = _OF_EXTRA.fullmatch(requirement["marker"] or "")
        if marker is not None and _normal(marker["extra"]) == _normal(extra):
            asked = [each.strip() for each in (requirement["extras"] or "").split(",")]
            missing += [name for each in asked for name in _missing(requirement["name"], each, seen)]
    return missing


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
