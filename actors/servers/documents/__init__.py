"""The documents server: Word and Excel files, without a display."""

from callboard.actors.servers.documents._documents import DocumentServer

__all__ = ["DocumentServer"]
