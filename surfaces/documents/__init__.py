"""The documents surface: Office files, without a display."""

from callboard.surfaces.documents._documents import DocumentSurface
from callboard.surfaces.documents._other_formats import advice_on

__all__ = ["DocumentSurface", "advice_on"]
