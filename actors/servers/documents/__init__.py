"""The documents server: a folder of Word and Excel files as a desktop without a display."""

from callboard.actors.servers.documents._documents import DocumentServer

__all__ = ["DocumentServer"]
