"""The kinds of agents, where settings and programs name them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Collection


def check_kind(where: str, kind: str, kinds: Collection[str]) -> None:
    """Refuse a kind of agent that there is not.

    Args:
        where: What names it, for the error.
        kind: Its name.
        kinds: The names that there are.

    Raises:
        SettingsError: If it is none of them; the text names them, and the nearest one.
    """
    if kind not in kinds:
        near = difflib.get_close_matches(kind, list(kinds), n=1, cutoff=0.5)
        hint = f"; did you mean {str(near[0])!r}?" if near else ""
        msg = f"{where}: there is no kind of agent {kind!r}; there are: {', '.join(kinds)}{hint}"
        raise SettingsError(msg)
