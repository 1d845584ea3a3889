"""A third-party MCP server as a target.

Its tools are for the agent that works on it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from callboard.messages import Observation, Target, TargetKind, encodable
from callboard.surfaces import Server

if TYPE_CHECKING:
    from callboard.actors.commands.mcp._server_session import McpSession

LONGEST_INSTRUCTIONS = 4_000
"""The most characters of a server's instructions in an observation."""
_LONGEST_TITLE = 100


class McpSurface(Server):
    """Offers one target, observed through the server's description of itself.

    The toolbox binds its tools. Its fingerprint changes when the answer to a call differs from the same call's last
    answer, so that an agent that polls for a change is not taken for one that makes no progress. After a crash it
    can't tell whether a call was done.
    """

    blocks = False

    def __init__(self, session: McpSession) -> None:
        """Create it from an open session."""
        self.name = session.target_surface
        self._session = session
        about = session.about
        title = " ".join(encodable(about.title).split())[:_LONGEST_TITLE] or session.name
        text = encodable(about.instructions)
        instructions = text if len(text) <= LONGEST_INSTRUCTIONS else f"{text[:LONGEST_INSTRUCTIONS]}…"
        tools = sorted(tool.info.name for tool in session.tools())
        content = repr((title, about.version, text, tools))
        self._target = Target(
            id=session.name,
            name=title,
            kind=TargetKind.WINDOW,
            kinds=session.on_target,
            address=f"app/mcp/{session.name}",
            server=self.name,
        )
        self._digest = hashlib.sha256(content.encode()).hexdigest()
        self._observation = Observation(window={"title": title, "server": session.name}, text=instructions)

    def targets(self) -> Any:
        """Offer the server if it is connected or can be restarted.

        Raises:
            ConnectionError: If it is neither.
        """
        return self._targets()

    async def _targets(self) -> tuple[Target, ...]:
        await self._session.restarts.check()
        return (self._target,)

    def observe(self, target: Target) -> Observation:  # type: ignore[override]  # each look is the same
        """Return the server's description of itself."""
        return self._observation.model_copy(update={"fingerprint": self.fingerprint(target)})

    def fingerprint(self, target: Target) -> str:
        """Combine the description's digest with the count of changed answers.

        The description is the server's.
        """
        return f"{self._digest}-{self._session.changes}"

    def busy(self, target: Target) -> bool:
        """Return False.

        Nothing of the server's work is visible, so no observation has to wait.
        """
        return False
