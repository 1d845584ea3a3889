"""The agents' prompts: files that the operator can replace."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from callboard.messages import AgentKind, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.config._settings import Settings


def load_prompts(settings: Settings, texts: Mapping[str, str] | None = None) -> dict[str, str]:
    """Read the prompt of each kind of agent.

    A prompt is the operator's file, the kind's own text, or the shipped file.

    Args:
        settings: The settings, which name the operator's files.
        texts: The known kinds, with their own texts; by default the shipped kinds.

    Raises:
        SettingsError: If a replacement can't be read.
    """
    kinds = dict.fromkeys(AgentKind, "") if texts is None else texts
    return {kind: _load(settings, kind, text) for kind, text in kinds.items()}


def _load(settings: Settings, kind: str, text: str) -> str:
    replacement = settings.prompts.of(kind)
    if replacement is None:
        if text:
            return text
        shipped = kind if kind in set(AgentKind) else AgentKind.APP
        return resources.files("callboard.config").joinpath("prompts", f"{shipped}.md").read_text(encoding="utf-8")
    path = settings.path(replacement)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        msg = f"prompts.{kind}: {path} can't be read: {why}"
        raise SettingsError(msg) from error
