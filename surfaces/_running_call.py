"""The running tool call, as the tool sees it: caller, deadline, outputs."""

from __future__ import annotations

import fnmatch
import mimetypes
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from callboard.messages import encodable
from callboard.surfaces._effect_guard import current_guard
from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pydantic import JsonValue

    from callboard.messages import AskedQuestion
    from callboard.surfaces._effect_guard import EffectGuard

LONGEST = 4_000
"""The maximum length of a call's note, in characters."""
MOST_PICTURES = 4
"""The maximum number of pictures in one call's answer."""
MOST_PICTURE_BYTES = 3_500_000
"""The maximum size of such a picture, in bytes: providers refuse larger ones."""
PNG = b"\x89PNG\r\n\x1a\n"
"""The signature of a PNG file."""
_SHOWN = 500
"""The maximum length of a progress text, in characters; the rest is cut."""
_PAUSE = 0.1
"""The minimum number of seconds between two progress events."""


class CallKeeper(Protocol):
    """The receiver of a tool's outputs during its call.

    Each method may be called on any thread, and may block.
    """

    session: str
    """The id of the conversation that the call's task belongs to."""

    def foresee(self, path: str, before: str, after: str, answer: JsonValue) -> None:
        """Journal the fingerprints of a file before and after the call.

        `answer` is the call's answer if the write succeeds.
        """

    def keep_version(self, name: str, path: str, data: bytes) -> None:
        """Keep the bytes of a file before it changes.

        They are kept if the task names the file in `may_change`.
        """

    def post(self, text: str) -> None:
        """Journal a note for all agents of the conversation."""

    def note(self, text: str) -> None:
        """Journal a note of the call for `Server.probe`."""

    def progress(self, text: str, share: float | None) -> None:
        """Report the call's progress."""

    def artifact(self, content: bytes, suffix: str, name: str = "") -> Path:
        """Write bytes into a new file and return its path.

        Without a name, it is made of the call's id and the suffix.
        """
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """Stop the clocks of the call and its step while it waits."""
        ...

    async def ask(self, questions: tuple[AskedQuestion, ...]) -> tuple[str, ...] | None:
        """Ask a person on the event loop; the call's clock stands still.

        Return None if there will be no answer.

        Raises:
            ValueError: If an answer contains a secret, which must not reach the tool in this way.
        """
        ...


@dataclass(frozen=True)
class Call:
    """One tool call.

    If the tool runs without an agent, as an MCP server of its own, the call has no id.
    """

    id: str = ""
    """The idempotency key, unique among all calls of a journal: ``<run>.<step>.<position>``. A call that is repeated
    after a crash has the same id, so that a mark that contains it proves that the call was done."""
    task_id: str = ""
    session: str = ""
    """The id of the conversation that the task belongs to; the right `Target.owner` for a target that the call opens.
    """
    deadline: float = float("inf")
    """The time at which the call is given up, in seconds of `time.monotonic`."""
    _guard: EffectGuard | None = field(default=None, repr=False, compare=False)

    @property
    def given_up(self) -> bool:
        """True once the call must end.

        It is cancelled or late, or the supervisor stops. A tool that waits on its lane asks regularly, and ends what it
        has started. If it then fails because of the stop, that is not recorded as its failure: the next process finds
        out whether the call was done, and otherwise repeats it.
        """
        return self._guard is not None and self._guard.given_up

    @property
    def is_for_origins(self) -> bool:
        """True if its arguments have a secret for some origins alone.

        Such a text must not go to whatever has the focus, which another frame may take.
        """
        return self._guard is not None and bool(self._guard.origins)

    def check_origin(self, origin: str) -> None:
        """Check that the call's secrets may be put into a page.

        They are those in its arguments. Call this right before they are put there.

        Args:
            origin: The origin of the page, or of the frame in it, such as ``https://shop.example``.

        Raises:
            ToolError: If one of them may not; nothing must be put into the page.
        """
        for name, patterns in self._guard.origins.items() if self._guard is not None else ():
            if not any(fnmatch.fnmatchcase(origin, pattern) for pattern in patterns):
                msg = f"the secret {name!r} is not for {origin or 'this page'}, but for {', '.join(patterns)}"
                raise ToolError(msg)

    def artifact(self, content: Path | bytes, mime_type: str = "application/octet-stream", *, name: str = "") -> Path:
        """Add a file, or bytes as a new file, to the results.

        Bytes are written into a folder beside the journal that only its user can read. The file is deleted when the
        journal drops the task or, without a journal, when the supervisor stops. The task's result lists the path.

        Args:
            content: The path of an existing file, or the bytes of a new one: at most 100 MB.
            mime_type: The type of bytes; it determines the file's suffix.
            name: The name of a file of bytes, such as that of a download; without one it is made of the call's id.

        Raises:
            ValueError: If the content is too large, the file does not exist, or bytes are given without an agent.
            LeaseVoidError: If the call or its lease is void; no file is added.
            JournalError: If the file can't be written.
        """
        guard = self._guard
        if isinstance(content, Path):
            path = content.absolute()
            if not path.is_file():
                msg = f"{path} can't be a result: there is no such file"
                raise ValueError(msg)
        elif guard is None or guard.keeper is None:
            msg = "only a call of an agent can keep bytes as a file; write a file, and give its path"
            raise ValueError(msg)
        else:
            guard.check()
            path = guard.keeper.artifact(content, mimetypes.guess_extension(mime_type) or ".bin", name)
        if guard is not None:
            with guard.committing():
                guard.wrote(path, new=isinstance(content, bytes))
        return path

    def picture(self, picture: bytes) -> None:
        """Add a picture to the call's answer.

        Models with vision get it in the next step. It is not redacted.

        Args:
            picture: A PNG of at most 3.5 MB; a call has at most four pictures.

        Raises:
            ValueError: If it is not a PNG or is too large, or if the call has four pictures already.
        """
        pictures = self._guard.pictures if self._guard is not None else []
        if not picture.startswith(PNG) or len(picture) > MOST_PICTURE_BYTES or len(pictures) >= MOST_PICTURES:
            msg = f"an answer has at most {MOST_PICTURES} pictures, each a PNG of at most {MOST_PICTURE_BYTES:,} bytes"
            raise ValueError(msg)
        pictures.append(picture)

    def progress(self, text: str, share: float | None = None) -> None:
        """Publish the call's progress as an event.

        At most ten events a second are published; the others are dropped, as are those after the call became void.

        Args:
            text: A description of the current activity; only its first 500 characters are published.
            share: The completed fraction, from 0 to 1; None if unknown.
        """
        guard = self._guard
        if guard is None or guard.keeper is None or not guard.valid or time.monotonic() < guard.quiet_until:
            return
        guard.quiet_until = time.monotonic() + _PAUSE
        guard.keeper.progress(encodable(text)[:_SHOWN], share)

    def note(self, text: str) -> None:
        """Journal a note as evidence of the call for a recovery.

        After a crash `Server.probe` gets it in `Intent.noted`, to find out whether the call was done. Note right before
        the side effect the evidence that the surface will show afterwards: the name of a file, the process id of a
        program, the number of a message. This blocks until the note is journaled; a coroutine calls it with
        `asyncio.to_thread`.

        Args:
            text: 1 to 4,000 characters.

        Raises:
            ValueError: If the text is empty or longer.
            LeaseVoidError: If the call or its lease is void: the side effect must not happen, and no note is journaled.
            JournalError: If the note can't be journaled; the side effect must not happen.
        """
        if not 0 < len(text) <= LONGEST:
            msg = f"a note has 1 to {LONGEST:,} characters, this one has {len(text):,}"
            raise ValueError(msg)
        if self._guard is not None and self._guard.keeper is not None:
            self._guard.check()
            self._guard.keeper.note(encodable(text))


def current_call() -> Call:
    """Return the tool call that runs in the current context.

    Call it in the tool, or in code that the tool calls on the same thread.
    """
    guard = current_guard()
    if guard is None or guard.command is None:
        return Call(_guard=guard)
    session = guard.keeper.session if guard.keeper is not None else ""
    return Call(guard.command.call_id, guard.command.task_id, session, guard.deadline, guard)
