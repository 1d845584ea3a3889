"""The base of the Word tools: editing a file, and common parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.messages import ESSENTIAL
from callboard.surfaces.documents._office import replacing
from callboard.surfaces.documents.word._document import WordFile
from callboard.surfaces.documents.word._outline import find, find_all

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents._workspace import Snapshot, Workspace
    from callboard.surfaces.documents.word._document import Block

WORD = ("word",)
TABLE = ("table",)
TEXT = ("heading", "paragraph")
ANY = (*TEXT, *TABLE)

Position = Annotated[
    Literal["before", "after"],
    Field(description="On which side of the chosen control.", json_schema_extra={ESSENTIAL: True}),
]
Style = Annotated[str, Field(description="The name of a style that the document has; empty for the usual one.")]


class WordEditor:
    """Reads and replaces ``.docx`` files; no file stays open."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def _load(self, snapshot: Snapshot) -> WordFile:
        return WordFile.load(snapshot, self._workspace.max_bytes)

    def _editing(self, document: str) -> AbstractContextManager[WordFile]:
        return replacing(self._workspace, document, self._load)


def block_of(file: WordFile, control_id: str, control_name: str) -> Block | None:
    """Find the block of a control, if one is named."""
    return find(file, control_id, control_name).block if control_id else None


def control_answer(file: WordFile, element: BaseOxmlElement) -> Answer:
    """Name the control of a new block; an empty paragraph has none."""
    for word_control in find_all(file):
        if word_control.block._element is element:
            return {"control_id": word_control.control.id, "control_name": word_control.control.name}
    return {"control_id": None, "control_name": ""}
