"""Proposed checks in a HostAgent's prompt and schema."""

from __future__ import annotations

from typing import Any

from callboard.models._proposals import LONGEST_WAIT, MOST_PROPOSED
from callboard.models.prompt._strict import FREE, object_of, or_null

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_VALUE: Schema = {"anyOf": [_TEXT, _NUMBER, {"type": "boolean"}]}
_READING: dict[str, Schema] = {
    **dict.fromkeys(("cells", "table", "text", "chart", "command", "tool", "target", "path"), _TEXT),
    "control": object_of({"target": _TEXT, "name": _TEXT, "kind": _TEXT}),
}
_MATCHERS: dict[str, Schema] = {
    "equals": _VALUE,
    "contains": _VALUE,
    "matches": _TEXT,
    "approx": _NUMBER,
    "tolerance": _NUMBER,
    "between": {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2},
    "one_of": {"type": "array", "items": _VALUE},
    "count": {"type": "integer"},
    "exists": {"type": "boolean"},
    "is_empty": {"type": "boolean"},
    "within": _NUMBER,
}

CHECKS = (
    f"in your first answer alone: at most {MOST_PROPOSED} readings that will show people afterwards whether the "
    "request was fulfilled. They only read, and decide nothing. Each names what is read, with one of "
    "cells (`report.xlsx!Sales!B8`), table (`sales.docx!Revenue by region`), text (`letter.docx!Terms`), "
    "chart (`report.xlsx!Sales`), file (`report.xlsx`, for that it exists), control (an object with target and name), "
    "command (a shell command that only reads; target names the shell) and tool (with target and args); if need be "
    "path, a JSON pointer into what was read; and what is expected, with one of "
    "same_as (another reading: the best, as it quotes no value), equals, approx (with tolerance), contains, matches, "
    "between, one_of, count, exists and is_empty. "
    f"within: the seconds to wait for a late effect, at most {LONGEST_WAIT:g}. Leave Checks empty if nothing fits."
)
"""The description of the key Checks."""


def checks_schema(*, all_required: bool) -> Schema:
    """Build the schema of the key Checks.

    In a strict mode the arguments of a tool are left out, which have no strict form.
    """
    reading = _READING if all_required else {**_READING, "args": FREE}

    def form(properties: dict[str, Schema]) -> Schema:
        if all_required:
            return object_of({name: or_null(part) for name, part in properties.items()})
        return {**object_of(properties), "required": []}

    check = form({"name": _TEXT, **reading, "file": _TEXT, "same_as": form(reading), **_MATCHERS})
    return {"type": "array", "items": check, "maxItems": MOST_PROPOSED}
