"""The servers that ship with the package, as far as the settings ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.servers.documents import DocumentServer
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from callboard.actors.servers._server import Server
    from callboard.config import Settings


def shipped(settings: Settings) -> list[Server]:
    """Make the servers that the settings ask for.

    Raises:
        SettingsError: If what one of them is to work on is not there.
    """
    documents = settings.documents
    if documents.workspace is None:
        return []
    try:
        return [DocumentServer(settings.path(documents.workspace), max_bytes=documents.max_bytes)]
    except NotADirectoryError as error:
        msg = f"documents.workspace: {error}"
        raise SettingsError(msg) from error
