"""The running tool call, as the tool itself sees it: who called, until when, and where what it says goes."""

from __future__ import annotations

import mimetypes
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from callboard.actors.runtime._lease import current_guard
from callboard.messages import encodable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pydantic import JsonValue

    from callboard.actors.runtime._lease import EffectGuard
    from callboard.messages import AskedQuestion

LONGEST = 4_000
"""The most characters of a note of a call."""
MOST_PICTURES = 4
"""The most pictures of one call's answer."""
MOST_PICTURE_BYTES = 3_500_000
"""The most bytes of such a picture: providers refuse larger ones."""
PNG = b"\x89PNG\r\n\x1a\n"
"""What a PNG begins with."""
_SHOWN = 500
"""The most characters of a progress text; more is cut."""
_PAUSE = 0.1
"""The seconds between two events of progress."""


class CallKeeper(Protocol):
    """Where what a tool says during its call goes. Each method may be called on any thread, and may block."""

    session: str
    """The conversation that the call's task belongs to."""

    def foresee(self, path: str, before: str, after: str, answer: JsonValue) -> None:
        """Keep the fingerprints of a file's bytes before and after the call, and what the call will answer."""

    def post(self, text: str) -> None:
        """Keep a note for all agents of the conversation."""

    def note(self, text: str) -> None:
        """Keep what `Server.probe` is told of the call."""

    def progress(self, text: str, share: float | None) -> None:
        """Tell how far the call is."""

    def artifact(self, content: bytes, suffix: str) -> Path:
        """Keep a file."""
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """Stop the clocks of the call and its step while it waits for others."""
        ...

    async def ask(self, questions: tuple[AskedQuestion, ...]) -> tuple[str, ...] | None:
        """Ask a person, on the event loop; the call's time stands still. None: there will be no answer.

        Raises:
            ValueError: If an answer holds a secret, which the tool must not get in this way.
        """
        ...


@dataclass(frozen=True)
class Call:
    """One tool call. A tool that runs without an agent, as a server of its own, has one without an id."""

    id: str = ""
    """Unique among all calls of a journal: ``<run>.<step>.<position>``. A call that is repeated after a crash has the
    same one, so that a mark with it tells whether it was done."""
    task_id: str = ""
    session: str = ""
    """The conversation that the task belongs to: what `Target.owner` should say of a target that the call opens."""
    deadline: float = float("inf")
    """When the call is given up, in seconds of `time.monotonic`."""
    _guard: EffectGuard | None = field(default=None, repr=False, compare=False)

    def artifact(self, content: Path | bytes, mime_type: str = "application/octet-stream") -> Path:
        """Name a file as a result of the call, or keep some bytes in one.

        Bytes are written into a folder beside the journal, readable by its user alone. They are deleted when the
        journal lets go of the task; without a journal, when the supervisor stops. The task's result lists the path.

        Args:
            content: A file that is there, or what is in a new one: 100 MB at most.
            mime_type: Of bytes: for the end of the file's name.

        Raises:
            ValueError: If it is too large, no file is there, or bytes are given where there is no agent.
            LeaseVoidError: If the call or its lease is void; nothing is kept.
            JournalError: If it can't be written.
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
            path = guard.keeper.artifact(content, mimetypes.guess_extension(mime_type) or ".bin")
        if guard is not None:
            with guard.committing():
                guard.wrote(path, new=isinstance(content, bytes))
        return path

    def picture(self, picture: bytes) -> None:
        """Add a picture to the call's answer: models that see are shown it in the next step.

        Nothing in it is blacked out.

        Args:
            picture: A PNG of 3.5 MB at most; a call has at most four.

        Raises:
            ValueError: If it is none, too large, or one too many.
        """
        pictures = self._guard.pictures if self._guard is not None else []
        if not picture.startswith(PNG) or len(picture) > MOST_PICTURE_BYTES or len(pictures) >= MOST_PICTURES:
            msg = f"an answer has at most {MOST_PICTURES} pictures, each a PNG of at most {MOST_PICTURE_BYTES:,} bytes"
            raise ValueError(msg)
        pictures.append(picture)

    def progress(self, text: str, share: float | None = None) -> None:
        """Tell how far the call is, by an event; at most ten a second are told, and the others dropped.

        So is what is said once the call is void.

        Args:
            text: What is being done; 500 characters of it are told.
            share: How much of it is done, from 0 to 1; None where that is not known.
        """
        guard = self._guard
        if guard is None or guard.keeper is None or not guard.valid or time.monotonic() < guard.quiet_until:
            return
        guard.quiet_until = time.monotonic() + _PAUSE
        guard.keeper.progress(encodable(text)[:_SHOWN], share)

    def note(self, text: str) -> None:
        """Have the journal keep something that tells after a crash whether the call was done; blocks until it is kept.

        `Server.probe` gets it as `Intent.noted`. Note right before the effect what the surface will show once it is
        done: the name of a file, the process id of a program, the number of a message. A coroutine calls it by
        `asyncio.to_thread`.

        Args:
            text: 1 to 4,000 characters.

        Raises:
            ValueError: If it is empty or longer.
            LeaseVoidError: If the call or its lease is void: nothing may be done any more, and nothing is kept.
            JournalError: If it can't be kept; then nothing may be done.
        """
        if not 0 < len(text) <= LONGEST:
            msg = f"a note has 1 to {LONGEST:,} characters, this one has {len(text):,}"
            raise ValueError(msg)
        if self._guard is not None and self._guard.keeper is not None:
            self._guard.check()
            self._guard.keeper.note(encodable(text))


def current_call() -> Call:
    """Give the tool call that runs now, in its tool or in what that calls on the same thread."""
    guard = current_guard()
    if guard is None or guard.command is None:
        return Call(_guard=guard)
    session = guard.keeper.session if guard.keeper is not None else ""
    return Call(guard.command.call_id, guard.command.task_id, session, guard.deadline, guard)
