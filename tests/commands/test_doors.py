"""The tools that open and close targets: their surfaces, and their arguments."""

from __future__ import annotations

import pytest

from callboard import Server, tool
from callboard.actors.commands import opening_tools
from callboard.messages import AgentKind, Effect, Hazard


class Plain(Server):
    name = "plain"

    def targets(self):
        return ()

    def observe(self, target, look):
        raise NotImplementedError


class Opens(Plain):
    def start(self, target, arguments):
        raise NotImplementedError


class Both(Opens):
    name = "both"

    async def stop(self, target):
        raise NotImplementedError


class Media(Plain):
    @tool(effect=Effect.ONCE)
    def start(self) -> None:
        """Start the music."""


@pytest.mark.parametrize(
    ("kind", "names"),
    [(Plain, []), (Opens, ["open_in_plain"]), (Both, ["open_in_both", "close_in_both"]), (Media, [])],
)
def test_a_surface_has_doors_for_the_methods_that_it_has(kind, names):
    found = opening_tools(kind())
    assert [door.name for door in found] == names
    for door in found:
        assert (door.agents, door.effect, door.hazards) == ({AgentKind.HOST}, Effect.ONCE, {Hazard.LAUNCHES})
        assert door.tool.description


def test_opening_tool_takes_arguments_for_the_application():
    (door,) = opening_tools(Opens())
    properties = door.tool.parameters["properties"]
    assert (sorted(properties), door.tool.parameters["required"]) == (["application", "arguments"], ["application"])
