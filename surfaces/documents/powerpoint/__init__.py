"""PowerPoint decks."""

from callboard.surfaces.documents.powerpoint._chart_numbers import describe_chart
from callboard.surfaces.documents.powerpoint._deck import DeckFile
from callboard.surfaces.documents.powerpoint._deck_controls import find_all
from callboard.surfaces.documents.powerpoint._deck_parts import deck_text, find_slide_chart, find_slide_table
from callboard.surfaces.documents.powerpoint._powerpoint_tools import PowerPointTools
from callboard.surfaces.documents.powerpoint._slide_tables import grid_of

__all__ = [
    "DeckFile",
    "PowerPointTools",
    "deck_text",
    "describe_chart",
    "find_all",
    "find_slide_chart",
    "find_slide_table",
    "grid_of",
]
