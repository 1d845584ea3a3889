"""The right to act on a target: voided at once by cancel, checked where an effect commits."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from callboard.messages import LeaseVoidError, encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.actors.runtime._call import CallKeeper
    from callboard.actors.runtime._clock import TimeLimit
    from callboard.messages import Command, CommandResult, Effect, Observation, Usage


COMMIT_SECONDS = 0.1
"""How long taking a right away waits for a commit that is under way."""


class Spent(Protocol):
    """What a step has used and done so far."""

    phases: list[dict[str, Any]]
    """Its phases that ended."""
    running: Command | None
    """The tool call that runs now."""
    seen: Observation | None
    """What it saw at its beginning."""

    @property
    def usage(self) -> Usage:
        """What it has used."""
        ...

    def done(self, guard: EffectGuard | None) -> tuple[CommandResult, ...]:
        """Give the results so far; `guard` is the tool call that is being broken off."""
        ...


class Lease:
    """One agent's right to act on one target. Shared between threads.

    The switchboard voids it; the tool that changes the world asks it within `committing`. Both take the same lock,
    so that no commit begins after `void` has returned.
    """

    __slots__ = (
        "_leases",
        "asking",
        "guard",
        "key",
        "lock",
        "order",
        "paused",
        "spent",
        "suspended",
        "target",
        "token",
        "valid",
    )

    def __init__(self, target: str, token: int, leases: Leases | None = None, key: str = "") -> None:
        self.target = target
        self.token = token
        self.key = key
        """The group of targets that nobody else uses meanwhile."""
        self._leases = leases
        self.lock = threading.RLock()  # a commit may be part of a larger one of the same call
        self.order = threading.RLock()
        """Held by whoever keeps a message that counts only while the lease is valid: so it stands in the journal before
        the word of whatever voids the lease, or is late. Never held for long, as the other lock may be."""
        self.paused = False
        """Whether the task is paused: asked before each action."""
        self.suspended = False
        """Whether the supervisor stops: no step begins, and none fails, because the stop may be the cause."""
        self.asking = False
        """Whether a running call waits for a person: its job does not hang, however long it takes."""
        self.valid = True
        """Whether the lease still allows anything; `void` alone changes it."""
        self.spent: Spent | None = None
        """What the step that runs under it has used and done so far; a cancel must not lose it."""
        self.guard: EffectGuard | None = None
        """The tool call that runs under it now."""

    def holder_of(self, key: str) -> str:
        """Name the agent that has a lease on a group of targets now; empty if none has, or this lease is that."""
        held = () if self._leases is None else self._leases.in_force
        return next((each.target for each in held if each.key == key and each is not self), "")

    def void(self) -> None:
        """Take the right away, for good. May be called from any thread, any number of times.

        A commit that is under way is waited for, but not long: one that is slow goes through, as if it had been first.
        """
        held = self.lock.acquire(timeout=COMMIT_SECONDS)
        with self.order:
            self.valid = False
        if held:
            self.lock.release()


class EffectGuard:
    """One tool call under a lease: whether it may still commit, and which files it wrote."""

    __slots__ = (
        "_on_late",
        "_valid",
        "artifacts",
        "command",
        "deadline",
        "effect",
        "keeper",
        "lease",
        "limit",
        "made",
        "pictures",
        "quiet_until",
    )

    def __init__(
        self,
        lease: Lease,
        command: Command | None = None,
        keeper: CallKeeper | None = None,
        on_late: Callable[[], None] | None = None,
    ) -> None:
        """Make it.

        Args:
            lease: Under which lease.
            command: The call, if an agent made it.
            keeper: Takes what the tool says during its call.
            on_late: Called, on the tool's thread, if it returns when nobody awaits it any more.
        """
        self.lease = lease
        self.command = command
        self.keeper = keeper
        self._on_late = on_late
        self.deadline = float("inf") if command is None else time.monotonic() + command.timeout
        """When the call is given up, in seconds of `time.monotonic`."""
        self.limit: TimeLimit | None = None
        """What gives it up then; it stands still while a person is asked."""
        self.quiet_until = 0.0
        """Before that no progress is told."""
        self.artifacts: list[str] = []
        self.effect: Effect | None = None
        """What the tool does to the world; None until it is known which one it is."""
        self.pictures: list[bytes] = []
        """Pictures that the tool answered, as PNG."""
        self.made: list[str] = []
        """Those of the files that were not there before."""
        self._valid = True

    @property
    def valid(self) -> bool:
        """True while neither the call nor its lease is void."""
        return self._valid and self.lease.valid

    def void(self) -> None:
        """Take this one call's right away: it took too long, and its answer is no longer awaited."""
        held = self.lease.lock.acquire(timeout=COMMIT_SECONDS)
        self._valid = False
        if held:
            self.lease.lock.release()

    def returned(self) -> None:
        """Note that the call has returned; a late one is told of, and what it says is dropped."""
        if self._on_late is not None and not self.valid:
            self._on_late()

    @contextlib.contextmanager
    def writing(self, artifact: Path | None) -> Iterator[None]:
        """Note a file for as long as its write does not fail: a cancel may be told while the write goes through."""
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
                self.made.remove(path)
            raise

    def wrote(self, artifact: Path, *, new: bool) -> None:
        """Note a file that the call has written, and whether it was not there before."""
        path = str(artifact)
        if path not in self.artifacts:
            self.artifacts.append(path)
            if new:
                self.made.append(path)

    def foresee(self, path: Path, before: str, after: str, answer: JsonValue) -> None:
        """Note which bytes a file has before and after what is about to be committed, and what the call will answer.

        Raises:
            LeaseVoidError: If the lease or this call is void: nothing may be committed, and nothing is noted.
        """
        self.check()
        if self.keeper is not None:
            self.keeper.foresee(str(path), before, after, answer)

    def post(self, text: str) -> None:
        """Post a note for all agents of the conversation.

        Raises:
            LeaseVoidError: If the lease or this call is void; nothing is posted.
        """
        self.check()
        if self.keeper is not None:
            self.keeper.post(text)

    def active(self) -> AbstractContextManager[None]:
        """Make this the effect that `committing` asks, in this context (and threads that copy it)."""
        return _Active(self)

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Hold the right while an effect commits; keep what happens inside short.

        Raises:
            LeaseVoidError: If the lease or this call is void. The body does not run.
        """
        with self.lease.lock:
            self.check()
            yield

    def check(self) -> None:
        """Refuse to go on under a right that was taken away.

        Raises:
            LeaseVoidError: If the lease or this call is void.
        """
        if not self.valid:
            msg = f"the lease {self.lease.token} on {self.lease.target!r} is void: nothing was changed"
            raise LeaseVoidError(msg)


_current: ContextVar[EffectGuard | None] = ContextVar("callboard_effect_guard", default=None)


class _Active:
    """The context of `EffectGuard.active`; a class, since each call of a tool has one, and a generator costs more."""

    def __init__(self, guard: EffectGuard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._reset = _current.set(self._guard)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._reset)


def current_guard() -> EffectGuard | None:
    """Give the effect of the running tool call."""
    return _current.get()


@contextlib.contextmanager
def committing(artifact: Path | None = None) -> Iterator[None]:
    """Ask the lease of the running tool call, commit inside, and note the file that was written.

    A tool that runs without a lease, as a server of its own, is not restricted.

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
    """Have the journal keep what the running tool call is about to do to a file, so that a crash leaves no doubt.

    Blocks until it is kept. Call it right before `committing`, with fingerprints of the bytes that are there and of
    those that will be, an empty one for no file, and with what the call will answer once it is done: so that after a
    crash the work goes on with that answer.

    Raises:
        JournalError: If it can't be kept; then nothing may be written.
        LeaseVoidError: If the call or its lease is void; then nothing may be written, and nothing is kept.
    """
    guard = _current.get()
    if guard is not None:
        guard.foresee(path, before, after, answer)


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
    guard = _current.get()
    if guard is not None:
        guard.post(encodable(text))


class Leases:
    """The leases that are in force, by token. Thread-safe."""

    def __init__(self, after: int = 0) -> None:
        """Make them; tokens count up from the one after `after`, the highest that a journal knows."""
        self._tokens = itertools.count(after + 1)
        self._leases: dict[int, Lease] = {}

    @property
    def in_force(self) -> tuple[Lease, ...]:
        """Those that are not dropped, also void ones: until then a call under them may go on."""
        return tuple(self._leases.values())

    def grant(self, target: str, key: str = "") -> Lease:
        """Make a new lease on a target, of a group; that the group is free is the switchboard's business."""
        lease = Lease(target, next(self._tokens), self, key)
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
            lease.spent = lease.guard = None  # they know the lease, too
