"""Text tools, which keep a file's encoding."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._encodings import MARKS, Encoding, check_encoding, detect_encoding
from callboard.surfaces.documents._find_text import find_pattern, variants_in
from callboard.surfaces.documents._formats import FormatTools, Limit, Offset, part_of
from callboard.surfaces.documents._tables import Answer, Document, Text, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from callboard.surfaces.documents._workspace import Snapshot

TEXT = ("text",)
_PREVIEW = 1500
"""The characters that an observation shows."""
_MARKED = {"utf-8-sig": "utf-8", "utf-16": "", "utf-32": ""}
_LINE_BREAK = r"(?>\r\n|\r|\n)"  # atomic: otherwise one CRLF would match two line breaks


@dataclass(frozen=True)
class Decoded:
    """The text of a file, and how it is encoded."""

    text: str
    """As it is in the file, with its line breaks."""
    encoding: str
    mark: bytes = b""
    """The byte order mark."""
    guessed: bool = False

    @property
    def label(self) -> str:
        """The encoding, and whether it is a guess."""
        return f"{self.encoding} (a guess: pass encoding if letters are wrong)" if self.guessed else self.encoding

    @property
    def notes(self) -> Answer:
        """The note of an answer about a guess."""
        return {"encoding": self.label} if self.guessed else {}

    @property
    def line_break(self) -> str:
        """The line break that the file uses most."""
        return most_frequent(re.findall(_LINE_BREAK, self.text))

    def encoded(self, text: str) -> bytes:
        """Encode another text in the same way.

        Raises:
            ToolError: If the encoding lacks a character of it.
        """
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            msg = f"the file is in {self.encoding}, which has no {character!r}; leave it out, or make a new file"
            raise ToolError(msg) from None


def most_frequent(line_breaks: Iterable[str]) -> str:
    """Return the most frequent line break, by default a line feed."""
    return next((line_break for line_break, _ in Counter(line_breaks).most_common(1)), "\n")


def decoded(snapshot: Snapshot, encoding: str = "auto") -> Decoded:
    """Decode a file by its mark, an encoding, or detection.

    Raises:
        ToolError: If it is not a text, or not in this encoding.
    """
    data, name = snapshot.data, snapshot.document
    mark, marked = next(((mark, marked) for mark, marked in MARKS if data.startswith(mark)), (b"", ""))
    guessed, encoding_name = False, marked
    if encoding != "auto":
        encoding_name = declared_encoding(encoding, marked) or detect_encoding(data)[0]
        mark = mark if encoding_name == marked else b""
    elif not marked:
        encoding_name, guessed = detect_encoding(data)
    if not encoding_name:
        msg = f"{name!r} is not a text: it has zero bytes"
        raise ToolError(msg)
    try:
        return Decoded(data[len(mark) :].decode(encoding_name), encoding_name, mark, guessed)
    except UnicodeDecodeError as error:
        msg = f"{name!r} is damaged, or not in {encoding_name}: byte {error.start + 1} fits no character"
        raise ToolError(msg) from None


def declared_encoding(encoding: str, marked: str) -> str:
    """Return the named encoding; empty without its order of bytes.

    Args:
        encoding: The name.
        marked: The encoding of the file's byte order mark, which says the order of bytes.

    Raises:
        ToolError: If there is no such encoding.
    """
    name = check_encoding(encoding)
    return marked or _MARKED[name] if name in _MARKED else name


class TextTools(FormatTools):
    """The tools of ``.txt`` and ``.md`` files."""

    @tool(effect=Effect.READ, roots=TEXT)
    def read_text(
        self, document: Document, *, offset: Offset = 0, limit: Limit = 20_000, encoding: Encoding = "auto"
    ) -> Answer:
        """Read the text of the file."""
        file = decoded(self._workspace.read(document), encoding)
        return {**part_of(plain_text(file.text), offset, limit), **file.notes}

    @tool(effect=Effect.ONCE, roots=TEXT)
    def write_text(
        self,
        document: Document,
        text: Text,
        *,
        append: Annotated[
            bool, Field(description="Whether the text is added at the end, on a line of its own.")
        ] = True,
        encoding: Encoding = "auto",
    ) -> Answer:
        """Append a text to the file, or replace the whole text."""
        with self._replacing(document) as file:
            original = decoded(file.snapshot, encoding)
            old, ends = original.text if append else "", original.line_break
            between = ends if old and not old.endswith(("\n", "\r")) else ""
            new = old + between + clean(text).replace("\n", ends)
            file.data = original.encoded(new)
            return file.answers({"characters": len(plain_text(new)), **original.notes})

    @tool(effect=Effect.ONCE, roots=TEXT)
    def replace_text(
        self,
        document: Document,
        find_text: Annotated[str, Field(min_length=1, description="The text to look for.")],
        new_text: Annotated[str, Field(description="The replacement.")],
        *,
        match_case: Annotated[bool, Field(description="Whether capitals matter.")] = True,
        encoding: Encoding = "auto",
    ) -> Answer:
        """Find and replace a text everywhere in the file.

        Other forms of quotation marks, hyphens and spaces match, too.
        """
        with self._replacing(document) as file:
            original = decoded(file.snapshot, encoding)
            text = clean(find_text)
            pattern = find_pattern(text, match_case=match_case, line_break=_LINE_BREAK)
            new = clean(new_text).replace("\n", original.line_break)
            matches = {plain_text(match) for match in pattern.findall(original.text)}
            changed, count = pattern.subn(lambda _: new, original.text)
            if not count:
                msg = f"{find_text!r} does not occur in {document!r}; nothing was replaced"
                raise ToolError(msg)
            file.data = original.encoded(changed)
            variants = variants_in(matches, text)
            notes: Answer = {"also_matched": [*variants]} if variants else {}
            return file.answers({"replaced": count, **notes, **original.notes})

    def preview(self, snapshot: Snapshot) -> str:
        """Return the beginning of the text."""
        return plain_text(snapshot.once(decoded).text)[:_PREVIEW]

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the number of lines and characters, and the encoding."""
        decoded_text = snapshot.once(decoded)
        return {
            "lines": len(decoded_text.text.splitlines()),
            "characters": len(decoded_text.text),
            "encoding": decoded_text.label,
        }

    def overwrites(self, document: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether existing text is replaced."""
        adds = tool == "write_text" and arguments.get("append", True) is True
        return not adds and bool(self._workspace.read(document).data)

    def empty(self) -> bytes:
        """Return an empty file."""
        return b""


def plain_text(text: str) -> str:
    """Return a text with line feeds as its line breaks."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
