"""A third-party MCP server as a target: an agent that works on it has its tools."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from callboard.actors.servers import Server
from callboard.messages import Observation, Target, TargetKind, encodable

if TYPE_CHECKING:
    from callboard.actors.commands._mcp_client import McpSession

LONGEST_INSTRUCTIONS = 4_000
"""The most characters of a server's instructions that an agent is shown."""
_LONGEST_TITLE = 100


class McpSurface(Server):
    """Offers one target, whose observation is what the server says of itself; nothing else of it can be seen.

    Its tools are bound by the toolbox. Its fingerprint changes when a call is answered otherwise than the same call
    before it, so that an agent which waits for something is not taken for one that makes no progress. After a crash it
    tells nothing of whether a call was done.
    """

    blocks = False

    def __init__(self, session: McpSession) -> None:
        """Make it of a session that is open."""
        self.name = session.target_server
        self._session = session
        about = session.about
        title = " ".join(encodable(about.title).split())[:_LONGEST_TITLE] or session.name
        text = encodable(about.instructions)
        shown = text if len(text) <= LONGEST_INSTRUCTIONS else f"{text[:LONGEST_INSTRUCTIONS]}…"
        tools = sorted(tool.info.name for tool in session.tools())
        said = repr((title, about.version, text, tools))
        self._target = Target(
            id=session.name,
            name=title,
            kind=TargetKind.WINDOW,
            kinds=session.on_target,
            address=f"app/mcp/{session.name}",
            server=self.name,
        )
        self._said = hashlib.sha256(said.encode()).hexdigest()
        self._observation = Observation(window={"title": title, "server": session.name}, text=shown)

    def targets(self) -> Any:
        """Offer the server, if it is there or can be started anew.

        Raises:
            ConnectionError: If it can't.
        """
        return self._targets()

    async def _targets(self) -> tuple[Target, ...]:
        await self._session.check()
        return (self._target,)

    def observe(self, target: Target) -> Observation:  # type: ignore[override]  # each look is the same
        """Give what the server says of itself."""
        return self._observation.model_copy(update={"fingerprint": self.fingerprint(target)})

    def fingerprint(self, target: Target) -> str:
        """Give the fingerprint of what the server says of itself, and of the changes that its answers have shown."""
        return f"{self._said}-{self._session.changes}"

    def busy(self, target: Target) -> bool:
        """Say that no look has to wait: nothing could be seen of what the server does."""
        return False
