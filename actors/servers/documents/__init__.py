"""The documents server: Word and Excel files, without a display."""

from callboard.actors.servers.documents._documents import DocumentServer
from callboard.actors.servers.documents._other_formats import advice_on

__all__ = ["DocumentServer", "advice_on"]
