"""The section of the settings for callers of the MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from callboard.config._section import Section
from callboard.messages import Budget, LabelText, PolicyRule, TaskLimits

_Glob = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class CallerRights(Section):
    """The rights of one caller, which its requests can only narrow."""

    token: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    """The SHA-256 of its bearer token, as `callboard mcp --new-token` prints it. Without one, it can't call over HTTP.
    """
    targets: tuple[_Glob, ...] = ("*",)
    """Patterns of the ids of its targets; the id of a document is its path in the workspace. With other patterns than
    `*`, each of its tasks names one target, and no HostAgent chooses others."""
    may_change: tuple[_Glob, ...] = ()
    """Patterns of the documents that its tasks may overwrite without an approval, if they name them."""
    policy: tuple[PolicyRule, ...] = ()
    """Rules for the actions of its tasks, besides the settings'; the stricter verdict holds."""
    budget: Budget | None = None
    """The budget of each of its tasks, besides `budget.task`."""
    limits: TaskLimits | None = None
    """The limits of each of its tasks, at most those of `limits`."""
    pictures: bool = False
    """Whether it may read the pictures of its tasks, such as screenshots of windows and pages. Nothing in a picture can
    be redacted: it shows all that stood on the screen."""
    checks: bool = True
    """Whether its tasks may have checks. Those that run a program or a command are refused in any case."""
    elicitation: Literal["none", "person"] = "none"
    """The place where approvals and actions in doubt are asked. `none`: in the console or the terminal alone. `person`:
    also by elicitation, for a client program that is known to show its forms to a person, and answers none itself."""
    tasks: int = Field(default=20, ge=1, le=10_000)
    """The most of its tasks that are not over; a further one is refused."""
    requests: int = Field(default=16, ge=1, le=1_000)
    """The most of its requests that are open at once; a further one is refused."""


class McpService(Section):
    """Callboard as an MCP server: other agents and programs give it tasks."""

    routines: tuple[Path, ...] = ()
    """Files of routines that callers with all targets may have repeated, by their names. Each is a prompt, too."""
    callers: dict[LabelText, CallerRights] = Field(default_factory=dict)
    """The callers, by name. Over stdio, the caller `local` needs no section, and has the defaults then."""
