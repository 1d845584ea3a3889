"""Sign-in to the console by links and sessions.

A link works once, and a session survives a restart.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.config import open_own, write_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

LINK_SECONDS = 600.0
"""The time in which a link can be used."""
SESSION_SECONDS = 86_400.0
"""The time after which a person signs in again."""
_KEY_BYTES = 32


@dataclass(frozen=True)
class SignIn:
    """One person's sign-in in one browser."""

    id: str
    person: str
    """The name that is recorded with each answer."""
    expires: int


class SignIns:
    """The sessions of a console.

    A session is told by two secrets: a cookie that scripts can't read, and a token that only pages of the console have.
    A browser sends cookies to each port of a machine, so another program there may get the first, but not the second.
    Both are signed, so none has to be stored.
    """

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time, *, port: int = 0) -> None:
        """Create it; sessions of the same key hold across restarts.

        Links are for one port. They may come from another process, which has read the key: it may lack the page.
        """
        self._key = key
        self._clock = clock
        self._port = port
        self._began = clock()
        self._used_links: dict[str, float] = {}
        """The links that were used, each with its time."""

    def new_link(self) -> str:
        """Return the secret of a link that signs in once."""
        payload = f"{secrets.token_urlsafe(16)}.{self._clock()!r}"
        return f"{payload}.{self._link_signature(payload)}"

    def use_link(self, link: str) -> bool:
        """Return whether a link signs in; it does so once.

        A link from before the start does not: it may have been used.
        """
        payload, _, signature = link.rpartition(".")
        if not _equal(signature, self._link_signature(payload)) or link in self._used_links:
            return False
        created_at, now = float(payload.partition(".")[2]), self._clock()
        self._used_links = {used: at for used, at in self._used_links.items() if at > now - LINK_SECONDS}
        self._used_links[link] = created_at
        return self._began <= created_at <= now < created_at + LINK_SECONDS

    def _link_signature(self, payload: str) -> str:
        return self._signed("link", f"{self._port}:{payload}")

    def start(self, person: str, cookies: Iterable[str] = ()) -> tuple[str, str]:
        """Start a session, and return its cookie and its token.

        Args:
            person: The person.
            cookies: The cookies of the browser. A session of the same person in them is renewed, so that its other
                tabs, which share the cookie, stay signed in.
        """
        sessions = filter(None, map(self._session, cookies))
        session_id = next((session.id for session in sessions if session.person == person), secrets.token_hex(16))
        fields = {"id": session_id, "person": person, "expires": int(self._clock() + SESSION_SECONDS)}
        payload = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
        return f"{payload}.{self._signed('cookie', payload)}", self._signed("token", session_id)

    def find(self, cookie: str, token: str) -> SignIn | None:
        """Return the session of a cookie and a token.

        None unless both are of one that holds.
        """
        session = self._session(cookie)
        return session if session is not None and _equal(token, self._signed("token", session.id)) else None

    def _session(self, cookie: str) -> SignIn | None:
        """Return the session of a cookie; None unless it holds."""
        payload, _, signature = cookie.partition(".")
        if not _equal(signature, self._signed("cookie", payload)):
            return None
        try:
            session = SignIn(**json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))
        except (binascii.Error, ValueError, TypeError):
            return None
        return session if session.expires > self._clock() else None

    def _signed(self, purpose: str, payload: str) -> str:
        return hmac.new(self._key, f"{purpose}:{payload}".encode(errors="replace"), hashlib.sha256).hexdigest()


def _equal(text: str, expected: str) -> bool:
    return hmac.compare_digest(text.encode(errors="replace"), expected.encode())


def new_key() -> bytes:
    """Make a key of sign-ins."""
    return secrets.token_bytes(_KEY_BYTES)


def key_beside(journal: Path) -> bytes:
    """Return the key of a journal's console.

    It is in a file beside the journal that only its user can read. One that others could read is replaced.

    Raises:
        OSError: If the file can't be read or written.
        NotOwnError: If it is not this user's.
    """
    path = journal.with_name(f"{journal.name}.console-key")
    if path.exists() or path.is_symlink():
        with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
            key = file.read(_KEY_BYTES + 1)
            is_private = os.name != "posix" or not os.fstat(file.fileno()).st_mode & 0o077
        if is_private and len(key) == _KEY_BYTES:
            return key
    key = new_key()
    write_own(path, key)
    return key
