"""The kinds of agents, where settings and programs name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import SettingsError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from callboard.config._settings import Settings


def check_kind(where: str, kind: str, kinds: Collection[str]) -> None:
    """Refuse an unknown kind of agent.

    Args:
        where: The place that names it, for the error.
        kind: Its name.
        kinds: The known names.

    Raises:
        SettingsError: If the kind is unknown; the message lists the known ones, and suggests the nearest.
    """
    if kind not in kinds:
        overview = f"there are: {', '.join(kinds)}"
        msg = f"{where}: there is no kind of agent {kind!r}; {overview}{did_you_mean(kind, kinds)}"
        raise SettingsError(msg)


def check_kinds(settings: Settings, kinds: Collection[str]) -> None:
    """Refuse settings that name an unknown kind of agent.

    Raises:
        SettingsError: If they do.
    """
    for where, kind in _named(settings):
        check_kind(where, kind, kinds)


def _named(settings: Settings) -> Iterator[tuple[str, str]]:
    for section, further in (("models", settings.models.further), ("prompts", settings.prompts.further)):
        yield from ((f"{section}.{kind}", kind) for kind in further)
    for name, server in settings.mcp_servers.items():
        yield from ((f"mcpServers.{name}.agents.{index}", kind) for index, kind in enumerate(server.agents or ()))
