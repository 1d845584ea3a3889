"""A request as small models are asked it: less to read, less to choose from, and none of their own words to copy.

What they wrote once they write again, whatever happened since; what may be left out they fill in, and wrongly; and what
the user asked of others they take for their own work.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from callboard.actors.models._schema import CONTROL, own_parameters
from callboard.messages import ESSENTIAL

if TYPE_CHECKING:
    from callboard.actors.models._model import ModelRequest, ToolInfo
    from callboard.messages import StepRecord

_ALTERNATIVES = frozenset({"allOf", "anyOf", "oneOf", "dependentRequired"})
"""Keywords with which a schema asks for parameters that it does not require."""


def shortened_request(request: ModelRequest) -> ModelRequest:
    """Leave out what tools do not need, what others were asked, and what the agent thought and planned before."""
    return dataclasses.replace(
        request,
        task_request="",
        plan=(),
        memory=tuple(map(_deeds, request.memory)),
        tools=tuple(map(_needed, request.tools)),
    )


def _deeds(record: StepRecord) -> StepRecord:
    """Keep what was done and what came of it."""
    said = {"observation": "", "thought": "", "comment": "", "plan": ()}
    return record.model_copy(update={"decision": record.decision.model_copy(update=said)})


def _needed(tool: ToolInfo) -> ToolInfo:
    """Keep the parameters that a tool can't do without, and its control; all of them, where nobody can tell which."""
    own, required = own_parameters(tool), tool.schema.get("required", ())
    if not any(name in required for name in own) or tool.schema.keys() & _ALTERNATIVES:
        return tool
    kept = {
        name: part
        for name, part in tool.schema["properties"].items()
        if name in required or name in CONTROL or (isinstance(part, dict) and part.get(ESSENTIAL))
    }
    return dataclasses.replace(tool, schema={**tool.schema, "properties": kept})
