"""Word documents."""

from callboard.surfaces.documents.word._document import Block, WordFile, visible_text
from callboard.surfaces.documents.word._document_tables import grid_of
from callboard.surfaces.documents.word._marked_text import heading_text, marked_document
from callboard.surfaces.documents.word._outline import find_all, header_of, outline
from callboard.surfaces.documents.word._paragraph_styles import style_of
from callboard.surfaces.documents.word._unseen_parts import unseen_parts
from callboard.surfaces.documents.word._word_tools import WordTools, section_of, text_of

__all__ = [
    "Block",
    "WordFile",
    "WordTools",
    "find_all",
    "grid_of",
    "header_of",
    "heading_text",
    "marked_document",
    "outline",
    "section_of",
    "style_of",
    "text_of",
    "unseen_parts",
    "visible_text",
]
