"""Tables of the documents surface's tools, as models see them."""
# ruff: noqa: INP001 - imported by generate.py

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown_parts import first_line, table

from callboard.messages import AgentKind, CommandType, Hazard
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.documents._documents import OVERWRITING
from callboard.surfaces.documents._workspace import ROOTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces import SurfaceTool

_SOMETIMES = dict.fromkeys([*OVERWRITING, "move_file"], Hazard.OVERWRITES)
_SOMETIMES |= {"edit_chart": Hazard.DELETES, "edit_pivot": Hazard.DELETES}
"""The hazard that some calls of a tool have."""
_HIDDEN = {"document", "control_id", "control_name"}


@functools.cache
def _tools() -> tuple[SurfaceTool, ...]:
    with tempfile.TemporaryDirectory() as folder:
        return tuple(entry for entry in DocumentSurface(Path(folder)).tools() if entry.offered)


def tools_of_format(root: str) -> str:
    """List the files and tools of one format."""
    suffixes = ", ".join(f"`{suffix}`" for suffix, of in ROOTS.items() if of == root)
    return f"Files: {suffixes}.\n\n{_listed([entry for entry in _tools() if root in entry.roots])}"


def tools_of_hosts() -> str:
    """List the tools of HostAgents."""
    return _listed([e for e in _tools() if AgentKind.HOST in e.agents and e.type is CommandType.ACTION])


def _listed(tools: list[SurfaceTool]) -> str:
    head = ["tool", "purpose", "arguments", "controls", "effect", "hazards"]
    return table(head, [_row(entry) for entry in tools])


def _row(entry: SurfaceTool) -> list[str]:
    parameters = entry.tool.parameters["properties"].items()
    hazards = [hazard.value for hazard in entry.hazards]
    return [
        f"`{entry.name}`",
        first_line(entry.tool.description) + (f" Takes at most {entry.seconds:g} s." if entry.seconds else ""),
        ", ".join(f"`{name}`{_bounds(schema)}" for name, schema in parameters if name not in _HIDDEN),
        ", ".join(sorted(entry.controls)),
        entry.effect.value,
        ", ".join([*sorted(hazards), *([f"({_SOMETIMES[entry.name].value})"] if entry.name in _SOMETIMES else [])]),
    ]


def _bounds(schema: dict[str, Any]) -> str:
    """Give the range of a number, and the longest list."""
    for part in schema.get("anyOf", [schema]):
        if "maximum" in part:
            return f" ({part['minimum']:,} to {part['maximum']:,})"
        if "minimum" in part:
            return f" (from {part['minimum']})"
        if "maxItems" in part:
            return f" (at most {part['maxItems']})"
    return ""


PARTS: dict[str, Callable[[], str]] = {
    "tools.host": tools_of_hosts,
    **{f"tools.{root}": functools.partial(tools_of_format, root) for root in dict.fromkeys(ROOTS.values())},
}
"""Functions that write the tables, by the name in the marker."""
