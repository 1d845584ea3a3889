"""Prompts of the MCP server: requests that an operator has prepared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp.server.mcpserver.prompts.base import Prompt, PromptArgument
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp.server.mcpserver import MCPServer

    from callboard.config import Skill
    from callboard.messages import Routine

_VALUE_CHARACTERS = 20_000
"""The most characters of one value: those of a request."""


@dataclass(frozen=True)
class TaskPrompt:
    """A prepared request, whose parameters a person fills in."""

    name: str
    description: str
    parameters: Mapping[str, str]
    """The descriptions of its parameters, by their names."""
    request_of: Callable[[Mapping[str, str]], str]
    """Makes the request of a task from the values."""
    optional: frozenset[str] = frozenset()
    """The parameters that may be left out."""

    def add_to(self, server: MCPServer) -> None:
        """Add it to a server."""
        arguments = [
            PromptArgument(name=name, description=description, required=name not in self.optional)
            for name, description in self.parameters.items()
        ]
        server.add_prompt(Prompt(name=self.name, description=self.description, arguments=arguments, fn=self._text))

    def _text(self, **values: str) -> str:
        """Return the message of the person to the client's model.

        Raises:
            MCPError: If a value is unknown, or too long.
        """
        for name, value in values.items():
            if name not in self.parameters or len(value) > _VALUE_CHARACTERS:
                names = ", ".join(self.parameters)
                msg = f"{name[:100]}: parameters are {names}, with at most {_VALUE_CHARACTERS} characters each"
                raise MCPError(code=INVALID_PARAMS, message=msg)
        return (
            "Have Callboard do this by its tool run_task, with a key of your own and checks where the outcome can be "
            f"read back, and report how it ended:\n\n{self.request_of(values)}"
        )


def skill_prompts(skills: Iterable[Skill]) -> tuple[TaskPrompt, ...]:
    """Make a prompt for each skill; its text stays with the agents."""

    def prompt(skill: Skill) -> TaskPrompt:
        def request_of(values: Mapping[str, str]) -> str:
            return f"{values['request']}\n\nUse the skill {skill.name}."

        return TaskPrompt(skill.name, skill.description, {"request": "The work, in words."}, request_of)

    return tuple(map(prompt, skills))


def routine_prompts(routines: Iterable[Routine]) -> tuple[TaskPrompt, ...]:
    """Make a prompt for each routine, with its parameters."""

    def prompt(routine: Routine) -> TaskPrompt:
        def request_of(values: Mapping[str, str]) -> str:
            given = json.dumps({name: value for name, value in values.items() if value}, ensure_ascii=False)
            return f"{routine.request}\n\nGive run_task the routine {routine.routine!r} and the parameters {given}."

        parameters = routine.parameters.items()
        descriptions = {name: each.description or f"usually {each.value!r}" for name, each in parameters}
        optional = frozenset(name for name, each in parameters if each.value is not None)
        return TaskPrompt(routine.routine, routine.request, descriptions, request_of, optional)

    return tuple(map(prompt, routines))
