"""The documents surface: Word and Excel files, without a display."""

from callboard.surfaces.documents._documents import DocumentSurface
from callboard.surfaces.documents._other_formats import advice_on
from callboard.surfaces.documents._workspace import Workspace

__all__ = ["DocumentSurface", "Workspace", "advice_on"]
