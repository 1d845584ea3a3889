"""Arguments of a wrong type are refused with the right form."""

from __future__ import annotations

import pytest

from callboard.actors.client import check_start_arguments
from callboard.testing import MemoryServer, VirtualClock


def decide(_request):
    return {}


RIGHT = {"models": {"app": decide}, "servers": (), "agents": (), "checks": {"total": decide}, "clock": VirtualClock()}


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        ("models", decide, "models: pass models={'app': decide}"),
        ("models", [decide], "models: pass models={'app': decide}"),
        ("models", "openai:gpt-5", "models: pass the name of a model in the settings, as Settings.load(models={"),
        ("models", {"app": "openai:gpt-5"}, "models: app: pass the name of a model in the settings"),
        ("models", {5: decide}, "models: pass models={'app': decide}"),
        ("servers", MemoryServer(MemoryServer.window()), "servers: pass servers=[lamps]: a list of `Server` objects"),
        ("servers", [MemoryServer], "this is the class MemoryServer: call it"),
        ("servers", "memo", "servers: pass servers=[lamps]"),
        ("servers", ["memo"], "servers: pass servers=[lamps]"),
        ("servers", {"memo": MemoryServer(MemoryServer.window())}, "servers: pass servers=[lamps]"),
        ("servers", None, "; this is None"),
        ("agents", ["surveyor"], "agents: pass agents=[AgentSpec(...)]: a list; this is of the type str"),
        ("checks", [decide], "checks: pass checks={'total': total}: a function for each name"),
        ("clock", 3, "clock: pass clock=VirtualClock(), a `Clock`; this is of the type int"),
    ],
)
def test_wrong_type_is_refused_with_the_right_form(argument, value, error):
    with pytest.raises(TypeError) as info:
        check_start_arguments(**{**RIGHT, argument: value})
    assert error in str(info.value)


def test_right_types_are_accepted():
    check_start_arguments(**RIGHT)
