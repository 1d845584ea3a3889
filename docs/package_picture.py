"""Draw the packages and their imports, read from the source."""
# ruff: noqa: INP001 - imported by generate.py

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_AGENTS = "actors/*.py"
_NOT_DRAWN = {
    "actors",
    "testing",
    "answers",
    "errors",
    "events",
    "kinds",
    "observe",
    "surface",
    "__main__",
    "_lazy_names",
}
"""The folder of packages, the test support, and modules that only collect names for programs."""


def _package_of(parts: tuple[str, ...]) -> str:
    """Return the package of a module.

    The modules of agents count as one.
    """
    if parts[0] != "actors":
        return parts[0]
    if len(parts) == 1:
        return "actors"
    is_package = (PACKAGE / "actors" / parts[1]).is_dir()
    return f"actors/{parts[1]}" if is_package else "assembly" if parts[1] == "assembly" else _AGENTS


def imports() -> dict[str, set[str]]:
    """Return the packages that each package imports, also for types."""
    graph: dict[str, set[str]] = {}
    folders = ("actors", "config", "journal", "messages", "models", "surfaces", "terminal")
    files = [path for folder in folders for path in (PACKAGE / folder).rglob("*.py")]
    for path in [*files, PACKAGE / "supervisor.py"]:
        importer = _package_of(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("callboard."):
                imported = _package_of(tuple(str(node.module).split(".")[1:]))
                if imported != importer and not _NOT_DRAWN & {importer, imported}:
                    graph.setdefault(importer, set()).add(imported)
    return graph


def picture() -> str:
    """Draw a Mermaid flowchart.

    An arrow leads from a package to one that it imports, unless it also imports that one through another package.
    """
    graph = imports()
    below: dict[str, set[str]] = {}

    def reached(package: str) -> set[str]:
        if package not in below:
            below[package] = set().union(*({imported} | reached(imported) for imported in graph.get(package, ())))
        return below[package]

    names = sorted(set(graph) | set().union(*graph.values()))
    number = {name: f"p{count}" for count, name in enumerate(names)}
    lines = [f'    {number[name]}["{name}"]' for name in names]
    for name in names:
        imported = graph.get(name, set())
        indirect = set().union(*map(reached, imported))
        lines += [f"    {number[name]} --> {number[package]}" for package in sorted(imported - indirect)]
    return "\n".join(("```mermaid", "flowchart TD", *lines, "```"))
