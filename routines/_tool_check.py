"""Compare the actions of a routine with the present tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from callboard.messages import Routine, RoutineAction

    Schemas = Callable[[str, str], Sequence[Mapping[str, Any]]]
    """Gives the schemas of a tool's arguments, by the kind of the agent and the tool's name: one for each surface."""


def tool_problems(routine: Routine, schemas_of: Schemas) -> Iterator[str]:
    """Yield the actions that no tool takes, with their places.

    The routine may be older than the tools: an argument may have another name or form by now.
    """
    for place, kind, step in routine.placed_steps():
        for index, action in enumerate(step.actions):
            problems = [_problem(schema, action) for schema in schemas_of(kind, action.tool)]
            if not problems:
                yield f"{place}.actions.{index}: {kind} agents have no tool {action.tool!r}"
            elif all(problems):
                yield f"{place}.actions.{index}: {action.tool}: {problems[0]}"


def _problem(schema: Mapping[str, Any], action: RoutineAction) -> str:
    """Describe the first argument that does not fit; empty if all do.

    Missing ones are found by the call: the target, which is not known yet, may bind them.
    """
    import jsonschema
    from referencing import Registry

    properties = schema.get("properties", {})
    for name, value in action.arguments.items():
        if name not in properties:
            if schema.get("additionalProperties") not in (None, True, {}) or properties:
                return f"it takes no argument {name!r}; it takes {', '.join(properties) or 'none'}"
            continue
        if "${" in str(value):
            continue  # its value is not known yet
        part = {**properties[name], "$defs": schema.get("$defs", {})}
        errors = list(jsonschema.Draft202012Validator(part, registry=Registry()).iter_errors(value))
        if errors:
            return f"the argument {name!r}: {errors[0].message}"
    return ""
