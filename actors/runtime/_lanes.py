"""Lanes: daemon threads for blocking calls, one per target."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import inspect
import queue
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.actors.runtime._threads import mark_own_thread
from callboard.actors.runtime._watchdog import stack_of
from callboard.messages import SupervisorStoppedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")
_IDLE_SECONDS = 5.0

calls_of_job: ContextVar[dict[concurrent.futures.Future[Any], Lane] | None] = ContextVar(
    "callboard_calls", default=None
)
"""The running job's blocking calls and their lanes; the job ends only when all of them have returned."""


class Lane:
    """A thread that runs blocking calls one after the other.

    The thread starts with the first call and ends after some idle seconds. `lock` is shared by all lanes of one
    `Lanes`, so that there are never two lanes with the same name.
    """

    def __init__(
        self, name: str, lock: threading.Lock, on_exit: Callable[[Lane], None], *, stays_alive: bool = False
    ) -> None:
        self.name = name
        self._idle_seconds = None if stays_alive else _IDLE_SECONDS
        self._calls: queue.SimpleQueue[_LaneCall | None] = queue.SimpleQueue()
        self._lock = lock
        self._on_exit = on_exit
        self._waiting = 0
        self.thread = threading.Thread(target=self._main, name=f"callboard-lane-{name}", daemon=True)

    @property
    def busy(self) -> bool:
        """True while a call runs or is queued."""
        return self._waiting > 0

    def put(self, call: _LaneCall) -> None:
        """Queue a call. The caller must hold the lock."""
        if self.thread.ident is None:
            self.thread.start()  # before queueing: if it can't be started, the call must not stay in the queue
        self._waiting += 1
        self._calls.put(call)

    def _main(self) -> None:
        mark_own_thread()
        while True:
            try:
                call = self._calls.get(timeout=self._idle_seconds)
            except queue.Empty:
                with self._lock:
                    if self._waiting == 0:
                        self._on_exit(self)
                        return
                continue
            if call is None:
                return
            call.run()
            with self._lock:
                self._waiting -= 1
            call.settle()

    def close(self) -> None:
        """End the thread after its current call and cancel queued calls.

        The caller must hold the lock.
        """
        with contextlib.suppress(queue.Empty):  # the thread may take calls meanwhile
            while True:
                call = self._calls.get_nowait()
                if call is not None:
                    call.future.cancel()
        self._calls.put(None)


class _LaneCall:
    def __init__(self, function: Callable[[], Any]) -> None:
        self.future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._function = function
        self._context = contextvars.copy_context()
        self._settle: Callable[[], None] = lambda: None

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self._context.run(self._function)
        except StopIteration as error:  # a future can't carry it into a coroutine
            failure = RuntimeError("a tool raised StopIteration")
            failure.__cause__ = error
            self._fail(failure)
        except Exception as error:  # an edge: the caller that awaits the call gets it
            self._fail(error)
        except BaseException as error:  # a tool's SystemExit must end neither the lane nor the loop
            failure = RuntimeError(f"a tool tried to leave the process: {error!r}")
            failure.__cause__ = error
            self._fail(failure)
        else:
            self._settle = functools.partial(self.future.set_result, value)

    def _fail(self, error: Exception) -> None:
        self._settle = functools.partial(self.future.set_exception, error)

    def settle(self) -> None:
        self._settle()


async def _awaited(answer: _T | Awaitable[_T]) -> _T:
    return await answer if inspect.isawaitable(answer) else answer


class Lanes:
    """The lanes of one supervisor, by name. Thread-safe."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._kept_names: set[str] = set()

    def keep(self, name: str) -> None:
        """Keep a lane's thread alive until the lanes are closed.

        For calls that must all run on the thread of the first one.
        """
        self._kept_names.add(name)

    def submit(self, name: str, function: Callable[[], _T]) -> concurrent.futures.Future[_T]:
        """Queue a blocking call on a lane, in the caller's context.

        The context is copied. The call can be cancelled only until it starts.

        Raises:
            SupervisorStoppedError: If the lanes are closed; the call never runs.
        """
        return self._put(name, function)[0]

    def _put(self, name: str, function: Callable[[], _T]) -> tuple[concurrent.futures.Future[_T], Lane]:
        call = _LaneCall(function)
        with self._lock:
            if self._closed:
                msg = f"the lane {name!r} takes no more calls: the supervisor is stopped"
                raise SupervisorStoppedError(msg)
            lane = self._lanes.get(name) or Lane(name, self._lock, self._forget, stays_alive=name in self._kept_names)
            lane.put(call)
            self._lanes[name] = lane  # only now: a lane whose thread could not be started must not be kept
        return call.future, lane

    def _forget(self, lane: Lane) -> None:
        """Remove a lane whose thread ends. The caller must hold the lock."""
        if self._lanes.get(lane.name) is lane:
            del self._lanes[lane.name]

    def busy(self, name: str) -> bool:
        """Report whether a call runs or is queued on a lane."""
        lane = self._lanes.get(name)  # atomic, like the next line: a lane that ends between them is idle
        return lane is not None and lane.busy

    def stack(self, name: str) -> str:
        """Return the stack of a lane's thread, innermost frame last.

        It is empty if there is no such lane or its thread has ended.
        """
        lane = self._lanes.get(name)
        return "" if lane is None else stack_of(lane.thread)

    async def run(self, name: str, function: Callable[[], _T | Awaitable[_T]]) -> _T:
        """Run a call on a lane and wait for it.

        Without a lane's name the function is called directly. An awaitable that it returns is awaited on the event
        loop.

        A cancellation stops the wait, not the call: a started call runs until it returns, and its job does not count as
        ended before that. An exception that would end the loop is wrapped in a RuntimeError.

        On closed lanes the call never runs, and this coroutine waits until the event loop ends. It does not fail,
        because the failure would be journaled as the result of work that the next process resumes.
        """
        if not name:
            return await _awaited(function())
        try:
            future, lane = self._put(name, function)
        except SupervisorStoppedError:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # it has no result
        calls = calls_of_job.get()
        if calls is not None:
            calls[future] = lane
        return await _awaited(await asyncio.wrap_future(future))

    def close(self, timeout: float) -> tuple[str, ...]:
        """End all lanes and start no others.

        Returns the names of the lanes whose call did not return in time.
        """
        with self._lock:
            self._closed = True
            lanes = list(self._lanes.values())
            self._lanes.clear()
            for lane in lanes:
                lane.close()
        end = time.monotonic() + timeout
        for lane in lanes:
            lane.thread.join(max(0.0, end - time.monotonic()))
        return tuple(lane.name for lane in lanes if lane.thread.is_alive())
