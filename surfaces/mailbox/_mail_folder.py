"""Folders of a mailbox: list, search and read, by IMAP.

`imaplib` returns the parts of answers as the server sent them. They are read by patterns, which can't recurse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.surfaces import ToolError
from callboard.surfaces.mailbox._folder_names import decode_folder, encode_folder, is_folder_name
from callboard.surfaces.mailbox._mail_connection import BoundedImap, bounded, quoted

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence

_LIST = re.compile(rb'\(([^()]*)\) (?:NIL|"(?:\\.|[^"])*") (.*)', re.DOTALL)
_STRING = re.compile(rb'"((?:\\.|[^"\\])*)"', re.DOTALL)
_BEGIN = re.compile(rb"\d{1,10} \(")
_UID = re.compile(rb"\bUID (\d{1,10})\b")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d{1,15})\b")
_FLAGS = re.compile(rb"\bFLAGS \(([^()]*)\)")
_MOST_FOLDERS = 500
_SEARCH_BYTES = 4_000_000
"""The most bytes of the numbers that a search finds, about 500,000."""
_HEADERS = "FROM TO CC SUBJECT DATE"
_HEADER_BYTES = 200_000
"""The most bytes of headers that are read of one message in a list."""
_REFERENCE = re.compile(r"(.+)/(\d{1,10})\.(\d{1,10})", re.DOTALL)
SENT = b"\\sent"
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@dataclass(frozen=True)
class MessageReference:
    """A message of a folder, as tools name it: ``INBOX/1700000000.12``.

    The first number changes when the folder numbers its messages again, so that no other message is taken for it.
    """

    folder: str
    validity: int
    uid: int

    def __str__(self) -> str:
        return f"{self.folder}/{self.validity}.{self.uid}"

    @classmethod
    def parse(cls, text: str) -> MessageReference:
        """Parse a reference.

        Raises:
            ToolError: If it is none.
        """
        match = _REFERENCE.fullmatch(text.strip())
        if match is None:
            msg = f"{text[:100]!r} is no message; use the `message` of one that find_messages lists"
            raise ToolError(msg)
        return cls(match[1], int(match[2]), int(match[3]))


@dataclass(frozen=True)
class ListedMessage:
    """A message of a list: its headers, not its text."""

    uid: int
    flags: frozenset[bytes]
    size_bytes: int
    headers: bytes


class MailFolder:
    """A folder that is open on a connection."""

    def __init__(self, imap: BoundedImap, name: str, *, writable: bool = False) -> None:
        """Open it, read-only unless it is to be written to.

        Raises:
            ToolError: If there is none of that name.
        """
        self.name = name
        self._imap = imap
        imap.expect()
        command = "SELECT" if writable else "EXAMINE"
        status, _ = imap.select(quoted(encode_folder(name)), readonly=not writable)
        numbers = imap.response("UIDVALIDITY")[1]
        if status != "OK" or not numbers or not isinstance(numbers[0], bytes) or not numbers[0].isdigit():
            msg = f"there is no folder {name!r}, or it can't be opened ({command}); list the folders"
            raise ToolError(msg)
        self.validity = int(numbers[0])

    def search(self, criteria: Sequence[tuple[str, str]]) -> list[int]:
        """Find messages that meet all criteria, by their numbers, the newest first.

        Args:
            criteria: Keys of IMAP, each with a text; empty for a key without one.
        """
        plain = [(key, text) for key, text in criteria if text.isascii()]
        words = [word for key, text in plain for word in ((key, quoted(text)) if text else (key,))]
        numbers = self._numbers(None, words or ["ALL"])
        for key, text in criteria:
            if not text.isascii():  # `imaplib` sends one literal a command
                quoted(text)
                numbers &= self._numbers(text, ["CHARSET", "UTF-8", key])
        return sorted(numbers, reverse=True)

    def _numbers(self, literal: str | None, words: Sequence[str]) -> set[int]:
        self._imap.literal = literal.encode() if literal is not None else None  # type: ignore[assignment,unused-ignore]
        self._imap.expect(_SEARCH_BYTES)
        data = _checked(self._imap.uid("SEARCH", *words), "the search")
        numbers = [int(word) for part in data if isinstance(part, bytes) for word in part.split() if word.isdigit()]
        return set(numbers)

    def listed(self, uids: Sequence[int]) -> list[ListedMessage]:
        """Read the headers of messages, in the order of their numbers given."""
        if not uids:
            return []
        self._imap.expect(len(uids) * _HEADER_BYTES)
        items = f"(UID FLAGS RFC822.SIZE BODY.PEEK[HEADER.FIELDS ({_HEADERS})])"
        rows = self._fetched(uids, items)
        return [rows[uid] for uid in uids if uid in rows]

    def read(self, uid: int, max_bytes: int) -> bytes:
        """Read a whole message, without marking it as read.

        Raises:
            ToolError: If it is gone, or larger than allowed.
        """
        sizes = self._fetched([uid], "(UID RFC822.SIZE)")
        if uid not in sizes:
            msg = f"there is no such message in {self.name!r} any more; find it again"
            raise ToolError(msg)
        if sizes[uid].size_bytes > max_bytes:
            msg = f"the message has {sizes[uid].size_bytes:,} bytes; {max_bytes:,} are allowed (imap.max_bytes)"
            raise ToolError(msg)
        self._imap.expect(max_bytes)
        return self._fetched([uid], "(UID BODY.PEEK[])")[uid].headers

    def mark(self, uid: int, flag: str, *, is_set: bool) -> None:
        """Set or remove a flag of a message."""
        self._imap.expect()
        _checked(self._imap.uid("STORE", str(uid), "+FLAGS" if is_set else "-FLAGS", f"({flag})"), "the flag")

    def _fetched(self, uids: Iterable[int], items: str) -> dict[int, ListedMessage]:
        data = _checked(self._imap.uid("FETCH", ",".join(map(str, uids)), items), "the message")
        records: list[tuple[bytes, bytes]] = []
        for part in data:
            facts, literal = part if isinstance(part, tuple) else (part or b"", b"")
            if _BEGIN.match(facts):
                records.append((facts, literal))
            elif records:  # what follows a literal
                records[-1] = (records[-1][0] + b" " + facts, records[-1][1] or literal)
        rows: dict[int, ListedMessage] = {}
        for message in filter(None, map(_listed, records)):
            rows.setdefault(message.uid, message)
        return rows


def _listed(record: tuple[bytes, bytes]) -> ListedMessage | None:
    """Read the facts of one message; None if it has no number."""
    uid, size, flags = (pattern.search(record[0]) for pattern in (_UID, _SIZE, _FLAGS))
    if uid is None:
        return None
    names = frozenset(flags[1].lower().split()) if flags is not None else frozenset()
    return ListedMessage(int(uid[1]), names, int(size[1]) if size is not None else 0, record[1])


def folders_of(imap: BoundedImap) -> list[tuple[str, frozenset[bytes]]]:
    """List the folders, each with its attributes in lower case."""
    imap.expect()
    folders: list[tuple[str, frozenset[bytes]]] = []
    for part in _checked(imap.list(), "the list of folders"):
        line = part[0] if isinstance(part, tuple) else part
        match = _LIST.match(line or b"")
        if match is None:
            continue
        name = part[1] if isinstance(part, tuple) else _unquoted(match[2])
        text = decode_folder(name)
        if is_folder_name(text):  # others can't be named in a command
            folders.append((text, frozenset(match[1].lower().split())))
    return folders[:_MOST_FOLDERS]


def _unquoted(text: bytes) -> bytes:
    match = _STRING.match(text)
    return re.sub(rb"\\(.)", rb"\1", match[1], flags=re.DOTALL) if match is not None else text.strip()


def imap_date(day: dt.date) -> str:
    """Format a day for a search; names of months are English everywhere."""
    return f"{day.day}-{_MONTHS[day.month - 1]}-{day.year:04}"


def _checked(answer: tuple[str, Sequence[Any]], command: str) -> Sequence[Any]:
    status, data = answer
    if status != "OK":
        reason = data[0].decode("utf-8", "replace") if data and isinstance(data[0], bytes) else ""
        msg = f"the mail server refuses {command}: {bounded(reason)}"
        raise ToolError(msg)
    return data
