"""JSON Schemas of the files that people write, for editors."""
# ruff: noqa: INP001 - imported by generate.py

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from markdown_parts import description

from callboard.actors.processing import AGENTS
from callboard.config import Settings
from callboard.kinds import ProposingHostResponse
from callboard.messages import Routine, Task
from callboard.terminal import EvalSet

if TYPE_CHECKING:
    from collections.abc import Callable


def settings_schema() -> dict[str, Any]:
    """Describe a settings file; an empty section is allowed, too."""
    schema = Settings.model_json_schema()
    sections = schema["properties"]
    sections["mcpServers"] = sections["mcp_servers"]
    for key, section in sections.items():
        about = {name: section.pop(name) for name in ("description", "default") if name in section}
        sections[key] = {"anyOf": [*section.get("anyOf", [section]), {"type": "null"}], **about}
    return schema


def task_schema() -> dict[str, Any]:
    """Describe a task file: a request, a plan or a routine."""
    kinds = ("request", "plan", "routine")
    return Task.model_json_schema() | {"anyOf": [{"required": [kind]} for kind in kinds]}


def script_schema() -> dict[str, Any]:
    """Describe a script: a list of answers for each agent.

    Models' own spellings of keys are accepted in answers, so unknown keys are not refused here.
    """
    responses = {*(spec.response for spec in AGENTS.values()), ProposingHostResponse}
    keys = [key for response in responses for key in response.model_json_schema()["properties"]]
    answer = {"type": "object", "properties": {key: {} for key in sorted(set(keys))}}
    return {
        "description": "The answers of each agent, in order, by its address; `host` stands for every HostAgent.",
        "type": "object",
        "additionalProperties": {"type": "array", "items": answer},
    }


def eval_schema() -> dict[str, Any]:
    """Describe an eval set."""
    return EvalSet.model_json_schema()


def routine_schema() -> dict[str, Any]:
    """Describe a routine."""
    return Routine.model_json_schema()


FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "callboard.yaml": settings_schema,
    "eval.yaml": eval_schema,
    "routine.yaml": routine_schema,
    "task.yaml": task_schema,
    "script.yaml": script_schema,
}
"""The files that people write, with the functions that describe them."""


def schema_of_file(name: str) -> str:
    """Write the JSON Schema of a file, for editors.

    Editors know draft 7 without a network, and show a section's whole default as a text to insert.
    """
    described = {"$schema": "http://json-schema.org/draft-07/schema#", **_for_editors(FILES[name]())}
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def _for_editors(part: Any) -> Any:
    """Remove titles and defaults of sections, and join lines of descriptions."""
    if isinstance(part, list):
        return [_for_editors(item) for item in part]
    if not isinstance(part, dict):
        return part
    schema = {
        key: _for_editors(item)
        for key, item in part.items()
        if not (key == "title" and isinstance(item, str)) and not (key == "default" and isinstance(item, dict))
    }
    if isinstance(schema.get("description"), str):
        schema["description"] = description(schema["description"])
    return schema
