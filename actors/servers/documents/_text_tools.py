"""Text tools, which keep a file's encoding."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.actors.servers._server import ToolError, tool
from callboard.actors.servers.documents._formats import FormatTools, Limit, Offset, part_of
from callboard.actors.servers.documents._tables import Answer, Document, Text, clean
from callboard.messages import Effect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from callboard.actors.servers.documents._workspace import Snapshot

TEXT = ("text",)
_PREVIEW = 1500
"""The characters that an observation shows."""
_LINE_BREAK = r"(?>\r\n|\r|\n)"  # atomic: otherwise one CRLF would match two line breaks
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class Decoded:
    """The text of a file, and how it is encoded."""

    text: str
    """As it is in the file, with its line breaks."""
    encoding: str
    mark: bytes = b""
    """The byte order mark."""

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
            odd = error.object[error.start]
            msg = f"the file is in {self.encoding}, which has no {odd!r}; leave it out, or make a new file"
            raise ToolError(msg) from None


def most_frequent(line_breaks: Iterable[str]) -> str:
    """Return the most frequent line break, by default a line feed."""
    return next((each for each, _ in Counter(line_breaks).most_common(1)), "\n")


def decoded(snapshot: Snapshot) -> Decoded:
    """Decode a file: by its mark, or as UTF-8 or Windows-1252.

    Raises:
        ToolError: If it is not a text.
    """
    data, name = snapshot.data, snapshot.document
    mark, encoding = next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", ""))
    if not encoding and b"\0" in data:
        msg = f"{name!r} is not a text: it has zero bytes"
        raise ToolError(msg)
    for each in (encoding,) if encoding else ("utf-8", "cp1252", "latin-1"):
        try:
            return Decoded(data[len(mark) :].decode(each), each, mark)
        except UnicodeDecodeError:
            continue
    msg = f"{name!r} is damaged: it begins as {encoding}, and is not"
    raise ToolError(msg)


class TextTools(FormatTools):
    """The tools of ``.txt`` and ``.md`` files."""

    @tool(effect=Effect.READ, roots=TEXT)
    def read_text(self, document: Document, *, offset: Offset = 0, limit: Limit = 20_000) -> Answer:
        """Read the text of the file."""
        return part_of(_plain(decoded(self._workspace.read(document)).text), offset, limit)

    @tool(effect=Effect.ONCE, roots=TEXT)
    def write_text(
        self,
        document: Document,
        text: Text,
        *,
        append: Annotated[
            bool, Field(description="Whether the text is added at the end, on a line of its own.")
        ] = True,
    ) -> Answer:
        """Append a text to the file, or replace the whole text."""
        with self._replacing(document) as file:
            before = decoded(file.snapshot)
            old, ends = before.text if append else "", before.line_break
            between = ends if old and not old.endswith(("\n", "\r")) else ""
            new = old + between + clean(text).replace("\n", ends)
            file.data = before.encoded(new)
            return file.answers({"characters": len(_plain(new))})

    @tool(effect=Effect.ONCE, roots=TEXT)
    def replace_text(
        self,
        document: Document,
        find_text: Annotated[str, Field(min_length=1, description="The text to look for.")],
        new_text: Annotated[str, Field(description="The replacement.")],
        *,
        match_case: Annotated[bool, Field(description="Whether capitals matter.")] = True,
    ) -> Answer:
        """Find and replace a text everywhere in the file."""
        with self._replacing(document) as file:
            before = decoded(file.snapshot)
            wanted = re.escape(clean(find_text)).replace("\\\n", _LINE_BREAK)
            pattern = re.compile(wanted, 0 if match_case else re.IGNORECASE)
            new = clean(new_text).replace("\n", before.line_break)
            changed, count = pattern.subn(lambda _: new, before.text)
            if not count:
                msg = f"{find_text!r} does not occur in {document!r}; nothing was replaced"
                raise ToolError(msg)
            file.data = before.encoded(changed)
            return file.answers({"replaced": count})

    def preview(self, snapshot: Snapshot) -> str:
        """Return the beginning of the text."""
        return _plain(snapshot.once(decoded).text)[:_PREVIEW]

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the number of lines and characters, and the encoding."""
        found = snapshot.once(decoded)
        return {"lines": len(found.text.splitlines()), "characters": len(found.text), "encoding": found.encoding}

    def overwrites(self, document: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether existing text is replaced."""
        adds = tool == "write_text" and arguments.get("append", True) is True
        return not adds and bool(self._workspace.read(document).data)

    def empty(self) -> bytes:
        """Return an empty file."""
        return b""


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
