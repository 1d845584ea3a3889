"""Content that a document would lose if its library wrote it.

A document with such content is read, but never written.

python-docx writes back every part that it can reach, understood or not. It loses parts without a relationship, and
it invalidates digital signatures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def lost_by_docx(parts: dict[str, bytes], reached: Iterable[str]) -> list[str]:
    """List the content of a document that python-docx would lose.

    Args:
        parts: The document's parts.
        reached: The names of the parts that python-docx found by following relationships.

    Returns:
        Readable phrases, sorted; empty if python-docx keeps everything.
    """
    names = {name for name in parts if name != "[Content_Types].xml" and not name.endswith(".rels")}
    lost = {f"the part {name}" for name in names - set(reached)}
    if any(name.startswith("_xmlsignatures/") for name in parts):
        lost.add("a digital signature")
    return sorted(lost)
