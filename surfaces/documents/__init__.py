"""The documents surface: Office files, without a display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names

if TYPE_CHECKING:
    from callboard.surfaces.documents._compared_pages import (
        MOST_COMPARED,
        PAGE_SUFFIXES,
        ComparedPages,
        PagePair,
        compared_pages,
    )
    from callboard.surfaces.documents._documents import DocumentSurface
    from callboard.surfaces.documents._libre_office import lacking_office
    from callboard.surfaces.documents._other_formats import advice_on
    from callboard.surfaces.documents._workspace import Workspace

__all__ = [
    "MOST_COMPARED",
    "PAGE_SUFFIXES",
    "ComparedPages",
    "DocumentSurface",
    "PagePair",
    "Workspace",
    "advice_on",
    "compared_pages",
    "lacking_office",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "callboard.surfaces.documents._compared_pages": (
            "MOST_COMPARED",
            "PAGE_SUFFIXES",
            "ComparedPages",
            "PagePair",
            "compared_pages",
        ),
        "callboard.surfaces.documents._documents": ("DocumentSurface",),
        "callboard.surfaces.documents._libre_office": ("lacking_office",),
        "callboard.surfaces.documents._other_formats": ("advice_on",),
        "callboard.surfaces.documents._workspace": ("Workspace",),
    },
)
