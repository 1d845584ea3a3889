"""Prompts and schemas for large models.

Measures for small models do not change a letter of them.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from callboard.messages import AgentKind, Effect
from callboard.models import ToolInfo
from callboard.models.prompt import answer_schema, prompt_of

STATUSES = ("CONTINUE", "SCREENSHOT", "FINISH", "FAIL", "PENDING", "CONFIRM", "ERROR")
TOOLS = tuple(
    ToolInfo(
        name=name,
        description=f"{name} in words.",
        schema={
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "The title."},
                "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
                "cells": {"type": "string", "default": "", "description": "A range."},
                "control_id": {"type": "string", "default": ""},
                "control_name": {"type": "string", "default": ""},
            },
            "required": ["title", "rows"],
        },
        effect=effect,
        controls=controls,
    )
    for name, effect, controls in (
        ("insert_chart", Effect.ONCE, ("range",)),
        ("insert_table", Effect.ONCE, ()),
        ("read_table", Effect.READ, ("table",)),
    )
)
KINDS = {
    AgentKind.APP: STATUSES,
    AgentKind.HOST: ("CONTINUE", "ASSIGN", "FINISH", "FAIL", "PENDING", "CONFIRM"),
    AgentKind.LINUX: ("CONTINUE", "FINISH", "FAIL"),
    AgentKind.OPERATOR: STATUSES,
}


def digest(asks, kind):
    """Hash the prompts and schemas of a kind.

    They are those of its first and second step, each also after a repair.
    """
    texts = []
    for step in (1, 2):
        for reasons in ((), ("no such tool",)):
            request = asks(kind=kind, statuses=KINDS[kind], step=step, tools=TOOLS, reasons=reasons)
            prompt = prompt_of(request)
            texts += [prompt.system, *map(str, prompt.user)]
            texts += [json.dumps(answer_schema(request, all_required=required)) for required in (True, False)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


# A change for large models needs a measurement; then these are computed again.
DIGESTS = {
    AgentKind.APP: "2325b0d53786c9b1",
    AgentKind.HOST: "473e2b9ec6925527",
    AgentKind.LINUX: "54c20ca203e16732",
    AgentKind.OPERATOR: "dc408a6e72e27fbd",
}


@pytest.mark.parametrize("kind", DIGESTS)
def test_the_prompt_and_schema_of_a_large_model_stay(asks, kind):
    assert digest(asks, kind) == DIGESTS[kind]
