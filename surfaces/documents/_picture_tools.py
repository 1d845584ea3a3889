"""Picture tools: size, conversion, and the text in a picture."""

from __future__ import annotations

import math
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.messages import Effect, Target
from callboard.surfaces import MOST_PICTURE_BYTES, current_call
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._formats import FormatTools, Limit, Offset, part_of, read_in_process
from callboard.surfaces.documents._tables import Answer, Document  # noqa: TC001 - schemas are made of them
from callboard.surfaces.documents._workspace import ROOTS

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.surfaces.documents._workspace import Snapshot

PICTURE = ("picture",)
_MOST_SIDE = 20_000
MOST_UNCERTAIN = 50
"""The most uncertain words that an answer lists."""
_SHOWN_SIDES = (1200, 900)
"""The longest sides of a picture for models: 900 pixels in a square have less than `MOST_PICTURE_BYTES`."""
_FORMATS = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".gif": "GIF",
    ".bmp": "BMP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
}

Side = Annotated[
    int | None, Field(ge=1, le=_MOST_SIDE, description="In pixels; null to keep the proportions, or the size.")
]
Language = Annotated[
    str, Field(pattern="^[a-z_]{3,12}([+][a-z_]{3,12}){0,4}$", description="Tesseract's code, such as eng+deu.")
]


class PictureTools(FormatTools):
    """The tools of pictures, which are never changed, only saved as others."""

    @tool(effect=Effect.ONCE, roots=PICTURE)
    def save_as(
        self,
        document: Document,
        path: Annotated[str, Field(description="The new path, with a picture's suffix; must not exist yet.")],
        *,
        width: Side = None,
        height: Side = None,
    ) -> Target:
        """Save a picture under another name, in another format or size.

        Only the first frame is saved in another format or size, and without notes such as the place.
        """
        snapshot = self._workspace.read_unchanged(document)
        suffix = PurePosixPath(path).suffix.lower()
        if ROOTS.get(suffix) != "picture":
            msg = f"{path!r} is refused: pictures are saved as {', '.join(_FORMATS)}"
            raise ToolError(msg)
        self._workspace.resolve_new(path)
        facts = self.facts(snapshot)
        if width is None and height is None and facts["format"] == _FORMATS[suffix]:
            return self._workspace.create(path, snapshot.data)
        _, picture_data = read_in_process(
            {
                "what": "convert",
                "format": _FORMATS[suffix],
                "size": _size(facts, width, height),
                "options": {"quality": 90} if _FORMATS[suffix] in {"JPEG", "WEBP"} else {},
            },
            snapshot,
            "pictures",
        )
        return self._workspace.create(path, picture_data)

    @tool(effect=Effect.READ, roots=PICTURE)
    def get_picture(self, document: Document) -> Answer:
        """Look at the picture itself, as models with vision do."""
        snapshot = self._workspace.read(document)
        facts = self.facts(snapshot)
        width, height = int(str(facts["width"])), int(str(facts["height"]))
        for longest in _SHOWN_SIDES:
            factor = min(1.0, longest / max(width, height))
            size: list[JsonValue] = [max(1, round(side * factor)) for side in (width, height)]
            request: dict[str, JsonValue] = {"what": "convert", "format": "PNG", "size": size, "options": {}}
            _, picture = read_in_process(request, snapshot, "pictures")
            if len(picture) <= MOST_PICTURE_BYTES:
                break
        current_call().picture(picture)
        return {"width": width, "height": height}

    @tool(effect=Effect.READ, roots=PICTURE)
    def read_text(
        self,
        document: Document,
        *,
        language: Language = "eng",
        offset: Offset = 0,
        limit: Limit = 20_000,
    ) -> Answer:
        """Read the text in a picture by character recognition, with errors.

        ``confidence`` is the mean in percent; ``uncertain`` lists words that may be wrong. A picture on its side, or on
        its head, is turned.
        """
        reading = _recognized(self._workspace.read(document), language)
        answer = part_of(reading["text"].strip(), offset, limit) | {"confidence": reading["confidence"]}
        uncertain_words = [*dict.fromkeys(reading["uncertain"])]
        return answer | ({"uncertain": [*uncertain_words[:MOST_UNCERTAIN]]} if uncertain_words else {})

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain that a picture stays as it is."""
        return "a picture is not changed; save it as another one"

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the upright size in pixels, format, mode and number of frames."""
        return read_in_process({"what": "size"}, snapshot, "pictures")[0]


def text_in(snapshot: Snapshot, language: str = "eng") -> str:
    """Recognize the text in a picture."""
    return str(_recognized(snapshot, language)["text"]).strip()


def _recognized(snapshot: Snapshot, language: str) -> Any:
    return read_in_process({"what": "text", "language": language}, snapshot, "ocr")[0]


def _size(facts: dict[str, JsonValue], width: int | None, height: int | None) -> list[JsonValue] | None:
    """Return the new width and height; None to keep them."""
    if width is None and height is None:
        return None
    old_width, old_height = int(str(facts["width"])), int(str(facts["height"]))
    wide = width or max(1, round(old_width * (height or 1) / old_height))
    high = height or max(1, round(old_height * wide / old_width))
    if max(wide, high) > _MOST_SIDE or math.prod((wide, high)) > 100_000_000:
        msg = f"{wide} x {high} pixels are too many; a side has at most {_MOST_SIDE}, and all 100 million"
        raise ToolError(msg)
    return [wide, high]
