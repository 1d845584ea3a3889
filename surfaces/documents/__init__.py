"""The documents server: Word and Excel files, without a display."""

from callboard.surfaces.documents._documents import DocumentServer
from callboard.surfaces.documents._other_formats import advice_on

__all__ = ["DocumentServer", "advice_on"]
