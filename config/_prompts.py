"""The agents' prompts: files, each replaceable by one of the operator's."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from callboard.messages import AgentKind, SettingsError

if TYPE_CHECKING:
    from callboard.config._settings import Settings


def load_prompts(settings: Settings) -> dict[str, str]:
    """Read the prompt of each kind of agent.

    Raises:
        SettingsError: If a replacement can't be read.
    """
    return {kind: _load(settings, kind) for kind in AgentKind}


def _load(settings: Settings, kind: str) -> str:
    replacement = getattr(settings.prompts, kind)
    if replacement is None:
        return resources.files("callboard.config").joinpath("prompts", f"{kind}.md").read_text(encoding="utf-8")
    path = settings.path(replacement)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is no UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        msg = f"prompts.{kind}: {path} can't be read: {why}"
        raise SettingsError(msg) from error
