"""The name of this machine, which no other machine may have."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.config import HostLog
from callboard.fleet._engine import Bucket, ConflictError, EngineAwayError
from callboard.fleet._machines import AWAY_SECONDS, STATE
from callboard.fleet._work_messages import MachineState

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from callboard.fleet._engine import BucketEntry, FleetEngine

_T = TypeVar("_T")
_log = HostLog()


class OwnName:
    """The name of this machine. Belongs to the event loop.

    The queue of a machine is under its name: two machines of one name would both do its work. The one whose state is
    under the name holds it. States tell their machines apart by the identities of their journals. A state is replaced
    by its own machine, or once its machine has left or was silent.
    """

    def __init__(self, engine: FleetEngine, name: str, identity: str) -> None:
        """Create it; the identity is that of this machine's journal."""
        self._engine = engine
        self.name = name
        self.identity = identity
        self.since = time.time()
        """The time from which this process has the name, or tries to."""
        self.is_held = asyncio.Event()
        self._is_lost = asyncio.Event()
        self._revision: int | None = None
        """The revision of this machine's last state; None if another one may be there."""
        self._other: MachineState | None = None
        self._other_revision = 0
        self._other_seen = 0.0
        self._is_other_alive = False
        """Whether the other machine gave a sign since this one knows it."""

    @property
    def taken(self) -> str:
        """The reason why the name is taken; empty if none is seen."""
        if self._other is None or not self._is_other_alive or self._is_silent():
            return ""
        since = dt.datetime.fromtimestamp(self._other.since).astimezone().isoformat(" ", "seconds")
        return (
            f"another machine of the fleet is called {self.name}, since {since}: give this one another name "
            f"(fleet.name), or stop the other, and wait {AWAY_SECONDS:g} s if it was killed"
        )

    def _is_silent(self) -> bool:
        return self._other_seen < time.monotonic() - AWAY_SECONDS

    def observe(self, entry: BucketEntry) -> None:
        """Take note of a state under the name."""
        state = _state_in(entry)
        if state is None or state.identity == self.identity or state.left:
            self._other = None
        elif self._other is None or self._other.identity != state.identity:
            self._other, self._other_revision, self._is_other_alive = state, entry.revision, False
            is_old = state.at < time.time() - 10 * AWAY_SECONDS
            self._other_seen = 0.0 if is_old else time.monotonic()
        elif self._other_revision < entry.revision:
            self._other, self._other_revision, self._is_other_alive = state, entry.revision, True
            self._other_seen = time.monotonic()

    async def beat(self, state: MachineState) -> None:
        """Write this machine's state, unless another machine has the name.

        Raises:
            EngineAwayError: If the engine does not answer.
        """
        try:
            while not await self._written(state):
                if self._revision is None and self._other is not None and not self._is_silent():
                    self._lose()
                    return
        except EngineAwayError:
            self._other_seen = max(self._other_seen, time.monotonic())  # no signs arrive
            raise
        self._is_lost.clear()
        self.is_held.set()

    async def _written(self, state: MachineState) -> bool:
        """Try to write a state after the last one."""
        key = f"{self.name}.{STATE}"
        if self._revision is None:
            entry = await self._engine.get(Bucket.MACHINES, key)
            if entry is not None:
                self.observe(entry)
            if self._other is not None and not self._is_silent():
                return False
            self._revision = 0 if entry is None else entry.revision
        try:
            self._revision = await self._engine.update(
                Bucket.MACHINES, key, state.model_dump_json().encode(), self._revision
            )
        except ConflictError:
            self._revision = None
            return False
        self._other = None
        return True

    def _lose(self) -> None:
        if self.is_held.is_set():
            _log.error("this machine takes no more work of others: %s", self.taken or "its name was taken")
        self.is_held.clear()
        self._is_lost.set()

    async def while_held(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Wait for a result while the name is held; None otherwise."""
        working, losing = asyncio.ensure_future(work), asyncio.ensure_future(self._is_lost.wait())
        try:
            await asyncio.wait({working, losing}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            working.cancel()
            losing.cancel()
            await asyncio.gather(working, losing, return_exceptions=True)


def _state_in(entry: BucketEntry) -> MachineState | None:
    """Return the state of an entry; None if none can be read."""
    if entry.value is None:
        return None
    try:
        return MachineState.model_validate_json(entry.value)
    except ValueError:
        return None
