"""The guard of a tool call's side effects."""

from __future__ import annotations

import contextlib
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from callboard.messages import LeaseVoidError, encodable

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.messages import Command, Effect
    from callboard.surfaces._running_call import CallKeeper

COMMIT_SECONDS = 0.1
"""The time that a cancel waits for a commit that is under way."""


class CallTimeLimit(Protocol):
    """The time limit of a call, which can be suspended."""

    def hold(self) -> None:
        """Stop its clock."""

    def release(self) -> None:
        """Let its clock go on."""


class LeaseOfCall(Protocol):
    """The lease of a tool call, as its guard sees it."""

    target: str
    token: int
    lock: threading.RLock
    """The lock that voids the lease and commits effects."""
    valid: bool
    suspended: bool
    """Whether the supervisor is stopping."""

    def holder_of(self, key: str) -> str:
        """Return the address of another agent with a lease."""
        ...


class EffectGuard:
    """The guard of one tool call's side effects, under a lease.

    It knows whether the call may still commit, and the files that the call wrote.
    """

    __slots__ = (
        "_on_late_return",
        "_valid",
        "artifacts",
        "command",
        "deadline",
        "effect",
        "keeper",
        "lease",
        "limit",
        "new_artifacts",
        "origins",
        "pictures",
        "quiet_until",
        "saw_stop",
    )

    def __init__(
        self,
        lease: LeaseOfCall,
        command: Command | None = None,
        keeper: CallKeeper | None = None,
        on_late_return: Callable[[], None] | None = None,
    ) -> None:
        """Create the guard of a call.

        Args:
            lease: The lease that the call runs under.
            command: The call, if an agent made it.
            keeper: The receiver of the tool's outputs during the call.
            on_late_return: Called on the tool's thread if the call returns after it was given up.
        """
        self.lease = lease
        self.command = command
        self.keeper = keeper
        self._on_late_return = on_late_return
        self.deadline = float("inf") if command is None else time.monotonic() + command.timeout
        """The time at which the call is given up, in seconds of `time.monotonic`."""
        self.limit: CallTimeLimit | None = None
        """The time limit that gives it up; its clock stands still while a person is asked."""
        self.quiet_until = 0.0
        """The earliest time of the next progress event, in seconds of `time.monotonic`."""
        self.artifacts: list[str] = []
        self.effect: Effect | None = None
        """The kind of side effect that the tool has; None until the tool is known."""
        self.pictures: list[bytes] = []
        """The pictures in the tool's answer, as PNG."""
        self.new_artifacts: list[str] = []
        """The artifacts that did not exist before the call."""
        self.origins: Mapping[str, tuple[str, ...]] = {}
        """The patterns of origins of each secret in the call's arguments that has some."""
        self.saw_stop = False
        """Whether the tool was told that the supervisor stops; a failure after that may be an effect of the stop."""
        self._valid = True

    @property
    def valid(self) -> bool:
        """True while neither the call nor its lease is void."""
        return self._valid and self.lease.valid

    @property
    def given_up(self) -> bool:
        """True once the call must end.

        The guard remembers that the tool was told of a stop.
        """
        if self.valid and self.lease.suspended:
            self.saw_stop = True
        return self.saw_stop or not self.valid

    def void(self) -> None:
        """Void this call alone: it took too long and was given up."""
        held = self.lease.lock.acquire(timeout=COMMIT_SECONDS)
        self._valid = False
        if held:
            self.lease.lock.release()

    def returned(self) -> None:
        """Report the call's return if it is late; its result is dropped."""
        if self._on_late_return is not None and not self.valid:
            self._on_late_return()

    @contextlib.contextmanager
    def writing(self, artifact: Path | None) -> Iterator[None]:
        """List a file as an artifact, unless its write fails.

        It is listed before the write, because a cancel may report the artifacts while the write is under way.
        """
        path = str(artifact)
        if artifact is None or path in self.artifacts:
            yield
            return
        new = not artifact.exists()
        self.wrote(artifact, new=new)
        try:
            yield
        except BaseException:
            self.artifacts.remove(path)
            if new:
                self.new_artifacts.remove(path)
            raise

    def wrote(self, artifact: Path, *, new: bool) -> None:
        """List a file that the call wrote, and whether it is new."""
        path = str(artifact)
        if path not in self.artifacts:
            self.artifacts.append(path)
            if new:
                self.new_artifacts.append(path)

    def foresee(self, path: Path, before: str, after: str, answer: JsonValue) -> None:
        """Journal a write that is about to be committed, write-ahead.

        Args:
            path: The file.
            before: The fingerprint of its bytes before the write.
            after: The fingerprint of its bytes after the write.
            answer: The call's answer if the write succeeds.

        Raises:
            LeaseVoidError: If the lease or this call is void: it must not commit, and the write is not journaled.
        """
        self.check()
        if self.keeper is not None:
            self.keeper.foresee(str(path), before, after, answer)

    def keep_version(self, name: str, path: Path, data: bytes) -> None:
        """Keep the bytes of a file that is about to be replaced.

        They are kept if the task names the file in `may_change`.

        Raises:
            LeaseVoidError: If the lease or this call is void; nothing is kept.
            JournalError: If they can't be kept: the file must not be replaced.
        """
        self.check()
        if self.keeper is not None:
            self.keeper.keep_version(name, str(path), data)

    def post(self, text: str) -> None:
        """Post a note for all agents of the conversation.

        Raises:
            LeaseVoidError: If the lease or this call is void; nothing is posted.
        """
        self.check()
        if self.keeper is not None:
            self.keeper.post(text)

    def active(self) -> AbstractContextManager[None]:
        """Make this the current guard in this context and in its copies."""
        return _Active(self)

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Commit a side effect in the body, under the lease's lock.

        Keep the body short.

        Raises:
            LeaseVoidError: If the lease or this call is void. The body does not run.
        """
        # Fencing: the check and the commit are one step for `void`, which takes the same lock.
        with self.lease.lock:
            self.check()
            yield

    def check(self) -> None:
        """Check that neither the call nor its lease is void.

        Raises:
            LeaseVoidError: If the lease or this call is void.
        """
        if not self.valid:
            msg = f"the lease {self.lease.token} on {self.lease.target!r} is void: nothing was changed"
            raise LeaseVoidError(msg)


_current: ContextVar[EffectGuard | None] = ContextVar("callboard_effect_guard", default=None)


class _Active:
    """The context manager of `EffectGuard.active`.

    A class, because every tool call creates one, and a generator costs more.
    """

    def __init__(self, guard: EffectGuard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._reset = _current.set(self._guard)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._reset)


def current_guard() -> EffectGuard | None:
    """Return the guard of the running tool call."""
    return _current.get()


@contextlib.contextmanager
def committing(artifact: Path | None = None) -> Iterator[None]:
    """Commit a side effect of the running call in the body.

    The file that the body writes, if any, is listed as an artifact of the call. A tool that runs without a lease, as an
    MCP server of its own, is not restricted.

    Raises:
        LeaseVoidError: If the call or its lease is void. The body does not run.
    """
    guard = _current.get()
    if guard is None:
        yield
        return
    with guard.committing(), guard.writing(artifact):
        yield


def foresee(path: Path, before: str, after: str, answer: JsonValue = None) -> None:
    """Journal a file write of the running call, write-ahead.

    After a crash the file's fingerprint then shows whether the write happened. Call this right before `committing`; it
    blocks until the entry is journaled.

    Args:
        path: The file.
        before: The fingerprint of its bytes before the write; empty if there is no file.
        after: The fingerprint of its bytes after the write; empty if there will be no file.
        answer: The call's answer if the write succeeds; after a crash the work resumes with it.

    Raises:
        JournalError: If the entry can't be journaled; the tool must not write.
        LeaseVoidError: If the call or its lease is void; the tool must not write, and the entry is not journaled.
    """
    guard = _current.get()
    if guard is not None:
        guard.foresee(path, before, after, answer)


def keep_version(name: str, path: Path, data: bytes) -> None:
    """Keep a file's version before the running call replaces it.

    Call this before `foresee`; it blocks until the version is on the disk. It is kept only if the task names the file
    in `may_change`, and did not itself write these bytes, so that `callboard undo` can bring it back. A tool that runs
    without a lease, as an MCP server of its own, keeps nothing.

    Args:
        name: The file's name in `may_change`: the id of its target.
        path: The file, absolute and without links.
        data: Its bytes. `foresee` gets their SHA-256 in hexadecimal as the fingerprint before the write.

    Raises:
        JournalError: If it can't be kept; the tool must not write.
        LeaseVoidError: If the call or its lease is void; the tool must not write, and nothing is kept.
    """
    guard = _current.get()
    if guard is not None:
        guard.keep_version(name, path, data)


def post_note(text: str) -> None:
    """Post a note of the running call to the conversation's agents.

    The agents see it from their next step on, among the notes of other agents, with the tool's name. The function
    blocks until the note is journaled. A call that is repeated after a crash may post the same text again; it counts
    once. A tool that runs without a lease, as an MCP server of its own, posts nothing.

    Args:
        text: 1 to 4,000 characters; agents see the first 500.

    Raises:
        ValueError: If the text is empty or longer.
        LeaseVoidError: If the call or its lease is void; nothing is posted.
        JournalError: If the note can't be journaled.
    """
    guard = _current.get()
    if guard is not None:
        guard.post(encodable(text))
