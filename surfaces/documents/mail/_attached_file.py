"""A file that is sent with a message."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING

from callboard.surfaces.documents.mail._message_parts import BEFORE_HEADERS, POLICY

if TYPE_CHECKING:
    from collections.abc import Sequence

_MESSAGE = "message/rfc822"
_CHARSET = re.compile(r"[\w.:+-]{1,40}")
_KIND = re.compile(r"(?!message/|multipart/)[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+", re.IGNORECASE)
"""The types that can be declared for bytes; a damaged one may hold signs that end a line."""
_LONGEST_LINE = 998
"""The most bytes of a line that servers have to take."""
_MOST_NAMED = 20
"""The most files that an error names."""


@dataclass(frozen=True)
class AttachedFile:
    """A file that is sent with a message."""

    name: str
    kind: str
    """The type of its content, such as ``application/pdf``."""
    data: bytes
    charset: str = ""
    """The encoding that its sender declared; empty for none."""
    remark: str = ""
    """A fact for the person who approves it."""

    def __str__(self) -> str:
        """Return the facts by which a person approves it."""
        digest = hashlib.sha256(self.data).hexdigest()[:16]
        facts = [self.remark] if self.remark else []
        return f"{self.name} ({', '.join([*facts, f'{len(self.data):,} bytes', f'SHA-256 {digest}'])})"

    def attach_to(self, message: EmailMessage) -> None:
        """Add it to a message; a reader gets the same bytes."""
        if self.kind == _MESSAGE and _is_plain_message(self.data):
            self._attach_as_message(message)
            return
        kind = self.kind if _KIND.fullmatch(self.kind) else "application/octet-stream"
        maintype, _, subtype = kind.partition("/")
        params = {"charset": self.charset} if _CHARSET.fullmatch(self.charset) else {}
        message.add_attachment(self.data, maintype=maintype, subtype=subtype, filename=self.name, params=params)

    def _attach_as_message(self, message: EmailMessage) -> None:
        """Add a message as it is; MIME forbids encoding it."""
        part = EmailMessage(policy=POLICY)
        part["Content-Type"] = _MESSAGE
        part["Content-Transfer-Encoding"] = "7bit"
        part.add_header("Content-Disposition", "attachment", filename=self.name)
        part.set_payload(self.data.decode("ascii"))
        if message.get_content_type() != "multipart/mixed":
            message.make_mixed()
        message.attach(part)


def _is_plain_message(data: bytes) -> bool:
    """Return whether a message can be sent without an encoding.

    Its bytes stay the same, but for the ends of lines.
    """
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    is_plain = data.isascii() and b"\0" not in data and not any(b"\r" in line for line in lines)
    has_headers = BEFORE_HEADERS.match(data) is not None
    has_one_line_end = data.count(b"\n") in {0, data.count(b"\r\n")} or b"\r" not in data
    return is_plain and has_headers and has_one_line_end and max(map(len, lines)) <= _LONGEST_LINE


def named_files(files: Sequence[AttachedFile]) -> str:
    """Name files with their sizes, the largest first, for an error."""
    ordered_files = sorted(files, key=lambda file: -len(file.data))
    names = [f"{file.name} ({len(file.data):,} bytes)" for file in ordered_files[:_MOST_NAMED]]
    return ", ".join(names) + (f" and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else "")
