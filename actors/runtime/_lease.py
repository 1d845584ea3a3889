"""The right to act on a target: voided at once by cancel, checked where an effect commits."""

from __future__ import annotations

import contextlib
import itertools
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from callboard.messages import LeaseVoidError, encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.messages import Command, CommandResult, Effect, Observation, Usage


COMMIT_SECONDS = 0.1
"""How long taking a right away waits for a commit that is under way."""


class Foresee(Protocol):
    """Takes what a tool call is about to do to a file; blocks until it is kept."""

    def __call__(self, path: str, before: str, after: str, answer: JsonValue) -> None:
        """Take the fingerprints of the file's bytes before and after it, and what the call will answer."""
        ...


class OnNote(Protocol):
    """Takes a note of a tool call for the blackboard; blocks until it is kept."""

    def __call__(self, text: str) -> None:
        """Take it."""
        ...


class Spent(Protocol):
    """What a step has used and done so far."""

    running: Command | None
    """The tool call that runs now."""
    seen: Observation | None
    """What it saw at its beginning."""

    @property
    def usage(self) -> Usage:
        """What it has used."""
        ...

    def done(self, deed: Deed | None) -> tuple[CommandResult, ...]:
        """Give the results so far; `deed` is the tool call that is being broken off."""
        ...


class Lease:
    """One agent's right to act on one target. Shared between threads.

    The switchboard voids it; the tool that changes the world asks it within `committing`. Both take the same lock,
    so that no commit begins after `void` has returned.
    """

    def __init__(self, target: str, token: int) -> None:
        self.target = target
        self.token = token
        self.lock = threading.RLock()  # a commit may be part of a larger one of the same call
        self.paused = False
        """Whether the task is paused: asked before each action."""
        self.suspended = False
        """Whether the supervisor stops: no step begins, and none fails, because the stop may be the cause."""
        self._valid = True
        self.spent: Spent | None = None
        """What the step that runs under it has used and done so far; a cancel must not lose it."""
        self.deed: Deed | None = None
        """The tool call that runs under it now."""

    @property
    def valid(self) -> bool:
        """Whether the lease still allows anything."""
        return self._valid

    def void(self) -> None:
        """Take the right away, for good. May be called from any thread, any number of times.

        A commit that is under way is waited for, but not long: one that is slow goes through, as if it had been first.
        """
        held = self.lock.acquire(timeout=COMMIT_SECONDS)
        self._valid = False
        if held:
            self.lock.release()


class Deed:
    """One tool call under a lease: whether it may still commit, and which files it wrote."""

    def __init__(
        self,
        lease: Lease,
        on_late: Callable[[], None] | None = None,
        on_foreseen: Foresee | None = None,
        on_note: OnNote | None = None,
    ) -> None:
        """Make a deed.

        Args:
            lease: Under which lease.
            on_late: Called, on the tool's thread, if it returns when nobody awaits it any more.
            on_foreseen: Called, on the tool's thread, with what it is about to write (see `foresee`); may block.
            on_note: Called, on the tool's thread, with a note of it (see `post_note`); may block.
        """
        self.lease = lease
        self._on_late = on_late
        self._on_foreseen = on_foreseen
        self._on_note = on_note
        self.artifacts: list[str] = []
        self.effect: Effect | None = None
        """What the tool does to the world; None until it is known which one it is."""
        self.pictures: list[bytes] = []
        """Pictures that the tool answered, as PNG."""
        self.made: list[str] = []
        """Those of the files that were not there before."""
        self._valid = True

    def void(self) -> None:
        """Take this one call's right away: it took too long, and its answer is no longer awaited."""
        held = self.lease.lock.acquire(timeout=COMMIT_SECONDS)
        self._valid = False
        if held:
            self.lease.lock.release()

    def returned(self) -> None:
        """Note that the call has returned; a late one is told of, and what it says is dropped."""
        if self._on_late is not None and not (self._valid and self.lease.valid):
            self._on_late()

    @contextlib.contextmanager
    def writing(self, artifact: Path | None) -> Iterator[None]:
        """Note a file for as long as its write does not fail: a cancel may be told while the write goes through."""
        path = str(artifact)
        if artifact is None or path in self.artifacts:
            yield
            return
        new = not artifact.exists()
        self.artifacts.append(path)
        if new:
            self.made.append(path)
        try:
            yield
        except BaseException:
            self.artifacts.remove(path)
            if new:
                self.made.remove(path)
            raise

    def foresee(self, path: Path, before: str, after: str, answer: JsonValue) -> None:
        """Note which bytes a file has before and after what is about to be committed, and what the call will answer.

        Raises:
            LeaseVoidError: If the lease or this call is void: nothing may be committed, and nothing is noted.
        """
        self._check()
        if self._on_foreseen is not None:
            self._on_foreseen(str(path), before, after, answer)

    def note(self, text: str) -> None:
        """Post a note for all agents of the conversation.

        Raises:
            LeaseVoidError: If the lease or this call is void; nothing is posted.
        """
        self._check()
        if self._on_note is not None:
            self._on_note(text)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make this the deed that `committing` asks, in this context (and threads that copy it)."""
        reset = _current.set(self)
        try:
            yield
        finally:
            _current.reset(reset)

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Hold the right while an effect commits; keep what happens inside short.

        Raises:
            LeaseVoidError: If the lease or this call is void. The body does not run.
        """
        with self.lease.lock:
            self._check()
            yield

    def _check(self) -> None:
        if not (self._valid and self.lease.valid):
            msg = f"the lease {self.lease.token} on {self.lease.target!r} is void: nothing was changed"
            raise LeaseVoidError(msg)


_current: ContextVar[Deed | None] = ContextVar("callboard_deed", default=None)


@contextlib.contextmanager
def committing(artifact: Path | None = None) -> Iterator[None]:
    """Ask the lease of the running tool call, commit inside, and note the file that was written.

    A tool that runs without a lease, as a server of its own, is not restricted.

    Raises:
        LeaseVoidError: If the call or its lease is void. The body does not run.
    """
    deed = _current.get()
    if deed is None:
        yield
        return
    with deed.committing(), deed.writing(artifact):
        yield


def foresee(path: Path, before: str, after: str, answer: JsonValue = None) -> None:
    """Have the journal keep what the running tool call is about to do to a file, so that a crash leaves no doubt.

    Blocks until it is kept. Call it right before `committing`, with fingerprints of the bytes that are there and of
    those that will be, an empty one for no file, and with what the call will answer once it is done: so that after a
    crash the work goes on with that answer.

    Raises:
        JournalError: If it can't be kept; then nothing may be written.
        LeaseVoidError: If the call or its lease is void; then nothing may be written, and nothing is kept.
    """
    deed = _current.get()
    if deed is not None:
        deed.foresee(path, before, after, answer)


def post_note(text: str) -> None:
    """Have the running tool call tell all agents of the conversation something, from their next step on.

    Blocks until the note is kept in the journal. It stands in their requests among what others said, with the tool's
    name. A call that is repeated after a crash may post the same text again, and it counts once. A tool that runs
    without a lease, as a server of its own, posts nothing.

    Args:
        text: 1 to 4,000 characters; agents are shown the first 500.

    Raises:
        ValueError: If it is empty or longer.
        LeaseVoidError: If the call or its lease is void; nothing is posted.
        JournalError: If it can't be kept.
    """
    deed = _current.get()
    if deed is not None:
        deed.note(encodable(text))


class Leases:
    """The leases that are in force, by token. Thread-safe."""

    def __init__(self, after: int = 0) -> None:
        """Make them; tokens count up from the one after `after`, the highest that a journal knows."""
        self._tokens = itertools.count(after + 1)
        self._leases: dict[int, Lease] = {}

    def grant(self, target: str) -> Lease:
        """Make a new lease on a target; that the target is free is the switchboard's business."""
        lease = Lease(target, next(self._tokens))
        self._leases[lease.token] = lease
        return lease

    def get(self, token: int) -> Lease:
        """Give the lease of a token; a void one where there is none any more."""
        lease = self._leases.get(token)
        if lease is None:
            lease = Lease("", token)
            lease.void()
        return lease

    def drop(self, token: int) -> None:
        """Void a lease and forget it."""
        lease = self._leases.pop(token, None)
        if lease is not None:
            lease.void()
