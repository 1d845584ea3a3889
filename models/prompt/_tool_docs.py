"""Format the callable tools and their parameters.

The result is a short text for a prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from callboard.messages import Effect
from callboard.models.prompt._answer_schema import needs_control, own_parameters, takes_control
from callboard.models.prompt._fence import cut, written
from callboard.models.prompt._strict import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from callboard.models._model import ToolInfo


_LONGEST = 600
_DEEPEST = 6
_PIVOT_TABLE = re.compile(r"\bpivot[ -]?tables?\b")
MAKING = frozenset({"add", "create", "draw", "insert", "make", "new"})
"""Verbs of creation in the names of tools and in requests."""


def tool_docs(tools: Iterable[ToolInfo]) -> str:
    """Format tools and their parameters, sorted by name."""
    return "\n".join(line for tool in sorted(tools, key=lambda tool: tool.name) for line in _lines(tool))


def not_now(tools: Iterable[ToolInfo], usable: Iterable[ToolInfo]) -> str:
    """List tools that can't be called yet and their requirements."""
    now = tuple(usable)
    return "\n".join(f"- {tool.name}: {needed(tool, now)}" for tool in sorted(tools, key=lambda tool: tool.name))


def needed(tool: ToolInfo, usable: Iterable[ToolInfo]) -> str:
    """Describe the control that a tool lacks.

    The callable tools that may create it are named, too.
    """
    makers = [maker.name for maker in makers_for(tool, usable)]
    first = f"call {either(makers)} first" if makers else "make one first"
    return f"it works on a {either(tool.controls) if tool.controls else 'control'}, and there is none yet: {first}."


def makers_for(tool: ToolInfo, usable: Iterable[ToolInfo]) -> list[ToolInfo]:
    """Return the callable tools that may create a missing control."""
    kinds = set(tool.controls)
    return [tool_info for tool_info in usable if tool_info.effect is not Effect.READ and things(tool_info.name) & kinds]


def things(tool: str) -> set[str]:
    """Return the objects in a tool's name: ``chart`` for ``insert_chart``."""
    return {singular(word) for word in tool.casefold().split("_")[1:]}


def makes(tool: str) -> set[str]:
    """Return the objects that a tool creates by its name.

    None for ``delete_chart``.
    """
    return things(tool) if tool.casefold().partition("_")[0] in MAKING else set()


def lowered(text: str) -> str:
    """Return a text in small letters; a pivot table is no table."""
    return _PIVOT_TABLE.sub("pivot", text.casefold())


def singular(word: str) -> str:
    """Remove the plural ending."""
    return word.removesuffix("s")


def either(words: Sequence[str]) -> str:
    """Join words: ``a, b or c``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _lines(tool: ToolInfo) -> Iterator[str]:
    control = ""
    if takes_control(tool):
        kinds = f" ({' or '.join(tool.controls)})" if tool.controls else ""
        control = f" {'Needs' if needs_control(tool) else 'May act on'} a control{kinds}."
    yield f"- {tool.name}: {cut(' '.join(tool.description.split()), _LONGEST)}{control}"
    required = tool.schema.get("required", ())
    for name, part in own_parameters(tool).items():
        about = cut(" ".join(str(part.get("description", "")).split()), _LONGEST) if isinstance(part, dict) else ""
        kind = _type(part, tool.schema, 0)
        left_out = ""
        if name not in required and not kind.endswith("| null"):
            default = part.get("default") if isinstance(part, dict) else None
            left_out = ", or null" if default is None else f", or null for {cut(written(default), 60)}"
        yield f"    {name}: {kind}{left_out}{f'. {about}' if about else ''}"


def _type(part: Any, root: dict[str, Any], depth: int) -> str:
    if not isinstance(part, dict) or depth > _DEEPEST:
        return "any JSON"
    if "$ref" in part:
        return _type(resolved(part, root), root, depth + 1)
    if isinstance(part.get("enum"), list):
        return " | ".join(written(value) for value in part["enum"])
    if "const" in part:
        return written(part["const"])
    kinds = part.get("type")
    options = part.get("anyOf") or part.get("oneOf")
    if not options and isinstance(kinds, list):
        options = [{**part, "type": kind} for kind in kinds]
    if options:
        named = dict.fromkeys(_type(option, root, depth + 1) for option in options)
        return " | ".join(sorted(named, key="null".__eq__))
    match kinds:
        case "array":
            return f"[{_type(part.get('items'), root, depth + 1)}, ...]"
        case "object" if part.get("properties"):
            inner = (f"{name}: {_type(member, root, depth + 1)}" for name, member in part["properties"].items())
            return f"{{{', '.join(inner)}}}"
        case str():
            return "any object" if kinds == "object" else f"{kinds}{_bounds(part)}"
        case _:
            return "any JSON"


def _bounds(part: dict[str, Any]) -> str:
    least, most = part.get("minimum"), part.get("maximum")
    if least is not None and most is not None:
        return f" {least} to {most}"
    return f" >= {least}" if least is not None else f" <= {most}" if most is not None else ""
