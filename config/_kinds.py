"""The kinds of agents, where settings and programs name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import SettingsError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection


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
