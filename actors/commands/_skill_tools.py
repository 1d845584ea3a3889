"""The tool by which agents read the skills of the settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.config import SKILL_FILE
from callboard.messages import Effect, Observation, did_you_mean
from callboard.surfaces import Server, SurfaceTool, ToolError, tool

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.config import SkillFolder
    from callboard.messages import Look, Target


class SkillTools(Server):
    """A surface without targets, whose tool reads skills at any target.

    Their texts were read at the start, so a call opens no file.
    """

    name = "skills"
    blocks = False
    settles = False

    def __init__(self, folders: Sequence[SkillFolder], kinds: Collection[str]) -> None:
        """Serve the skills to some kinds of agents."""
        self._folders = {folder.skill.name: folder for folder in folders}
        self._kinds = frozenset(kinds)

    def targets(self) -> tuple[Target, ...]:
        """List nothing."""
        return ()

    def observe(self, target: Target, look: Look) -> Observation:
        """Show nothing: there are no targets."""
        return Observation()

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Return the tool, for the kinds of agents that get it."""
        return tuple(replace(entry, agents=self._kinds) for entry in super().tools())

    def resources(self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Return nothing: a call touches nothing outside of this process."""
        return ()

    @tool(effect=Effect.READ)
    def read_skill(
        self,
        name: Annotated[str, Field(description="The name of the skill.")],
        file: Annotated[str, Field(description="One of its further files; left out, its instructions.")] = "",
    ) -> dict[str, str | list[str]]:
        """Read the instructions of a skill, or one of its further files."""
        folder = self._folders.get(name.strip())
        if folder is None:
            names = f"there are: {', '.join(self._folders)}"
            msg = f"there is no skill {name[:100]!r}{did_you_mean(name[:100], self._folders, names)}"
            raise ToolError(msg)
        path = file.strip().removeprefix("./")
        if path in {"", SKILL_FILE}:
            return {"skill": folder.skill.name, "text": folder.skill.text, "files": sorted(folder.files)}
        if path in folder.files:
            return {"skill": folder.skill.name, "file": path, "text": folder.files[path]}
        if path in folder.unreadable:
            msg = f"the file {path!r} of the skill {folder.skill.name!r} {folder.unreadable[path]}"
            raise ToolError(msg)
        files = ", ".join(sorted(folder.files)) or "none"
        msg = f"the skill {folder.skill.name!r} has no file {path[:200]!r}; there are: {files[:2000]}"
        raise ToolError(msg)
