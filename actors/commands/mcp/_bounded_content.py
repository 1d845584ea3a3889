"""Bounded content of third-party tools' answers.

Pictures are kept; all else becomes JSON or text.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_types import AudioContent, CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent

from callboard.actors.commands._bound_tools import ToolFailure, value_of
from callboard.actors.pictures import PictureError, only_pixels
from callboard.surfaces import MOST_PICTURE_BYTES, MOST_PICTURES, PNG

if TYPE_CHECKING:
    from mcp_types import ContentBlock
    from pydantic import JsonValue

MOST_CHARACTERS = 50_000
"""The most characters of a text; a longer one is truncated."""
MOST_STRUCTURED = 1_000_000
"""The most characters of a structured answer as JSON; a longer one becomes a truncated text."""
_SHORT = 300
"""The most characters of a URI, a name or a type in a description."""


class ToolAnswer(NamedTuple):
    """A tool's answer."""

    value: JsonValue
    pictures: tuple[bytes, ...]
    """As PNG."""


def answer_of(result: CallToolResult) -> ToolAnswer:
    """Convert a result to JSON and pictures.

    All other content is replaced by a description with its type and size.

    Raises:
        ToolFailure: If the tool failed.
    """
    texts: list[str] = []
    named: list[str] = []
    pictures: list[bytes] = []
    for block in result.content:
        text = _text_of(block, pictures)
        (texts if isinstance(block, TextContent) else named).append(text)
    blocks: list[ContentBlock] = [TextContent(text="\n".join(texts))] if texts else []
    try:
        value = value_of(result.model_copy(update={"content": blocks}), wrapped=False)
    except ToolFailure as error:
        raise ToolFailure(_cut("\n".join((str(error), *named)))) from error
    if result.structured_content is not None:
        bounded_value = _bounded({"structured": value, "content": [*named]} if named else value)
        written = json.dumps(bounded_value)
        return ToolAnswer(bounded_value if len(written) <= MOST_STRUCTURED else _cut(written), tuple(pictures))
    return ToolAnswer(_cut("\n".join((*texts, *named))) or None, tuple(pictures))


def _text_of(block: ContentBlock, pictures: list[bytes]) -> str:
    """Describe a part of an answer as text.

    A valid picture is added to `pictures`.
    """
    match block:
        case TextContent():
            return block.text
        case ImageContent():
            return _picture(block, pictures)
        case AudioContent():
            return f"[audio, {_short(block.mime_type)}, {_size(block.data)}; not kept]"
        case ResourceLink():
            size = "unknown size" if block.size is None else f"{block.size} bytes"
            kind = _short(block.mime_type or "unknown type")
            return f"[link to the resource {_short(block.uri)}, {_short(block.name)!r}, {kind}, {size}; not read]"
        case EmbeddedResource():
            resource: Any = block.resource
            kind = _short(resource.mime_type or "unknown type")
            if hasattr(resource, "text"):
                return f"[resource {_short(resource.uri)}, {kind}, {len(resource.text)} characters]\n{resource.text}"
            return f"[resource {_short(resource.uri)}, {kind}, {_size(resource.blob)}; not kept]"


def _picture(block: ImageContent, pictures: list[bytes]) -> str:
    about = f"{_short(block.mime_type)}, {_size(block.data)}"
    try:
        data = base64.b64decode(block.data, validate=True)
    except ValueError:
        return f"[picture, {about}; not kept: it is no base64]"
    if not data.startswith(PNG):
        return f"[picture, {about}; not kept: it is no PNG]"
    try:
        data = only_pixels(data)  # a model's provider would refuse every request with a damaged picture
    except PictureError as error:
        return f"[picture, {about}; not kept: {error}]"
    if len(data) > MOST_PICTURE_BYTES:
        return f"[picture, {about}; not kept: it is larger than {MOST_PICTURE_BYTES} bytes]"
    if len(pictures) >= MOST_PICTURES:
        return f"[picture, {about}; not kept: the answer has {MOST_PICTURES} before it]"
    pictures.append(data)
    return f"[picture {len(pictures)}, {about}]"


def _size(data: str) -> str:
    return f"{max(0, len(data) * 3 // 4 - data[-2:].count('='))} bytes"


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _cut(text: str) -> str:
    """Truncate a text that is too long, with a final note."""
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… [cut: {len(text) - MOST_CHARACTERS} of {len(text)} characters are left out]"


def _bounded(value: JsonValue) -> JsonValue:
    """Truncate the long texts in a value."""
    match value:
        case str():
            return _cut(value)
        case list():
            return [_bounded(item) for item in value]
        case dict():
            return {name: _bounded(item) for name, item in value.items()}
        case _:
            return value
