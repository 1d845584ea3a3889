"""Lanes: our own daemon threads for calls that block, one per target."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import queue
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.actors.runtime._threads import mark_own_thread

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_IDLE_SECONDS = 5.0

calls_of_job: ContextVar[set[concurrent.futures.Future[Any]] | None] = ContextVar("callboard_calls", default=None)
"""The lane calls that the running job has started; the job ends only when they have returned."""


class Lane:
    """Runs blocking calls one after the other. Its thread starts with the first call and leaves when idle."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether a call runs or waits."""
        return self._waiting > 0

    @property
    def thread(self) -> threading.Thread | None:
        """The lane's thread, while there is one."""
        return self._thread

    def submit(self, function: Callable[[], _T]) -> concurrent.futures.Future[_T]:
        """Queue a call, in a copy of the caller's context. Cancelling works only until it starts."""
        future: concurrent.futures.Future[_T] = concurrent.futures.Future()
        call = _Call(future, function, contextvars.copy_context())
        with self._lock:
            self._waiting += 1
            self._calls.put(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, name=f"callboard-lane-{self.name}", daemon=True)
                self._thread.start()
        return future

    def _main(self) -> None:
        mark_own_thread()
        while True:
            try:
                call = self._calls.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._waiting == 0:
                        self._thread = None
                        return
                continue
            if call.stop:
                return
            call.run()
            with self._lock:
                self._waiting -= 1
            call.settle()

    def close(self) -> None:
        """Let the thread end after what it runs now; calls that wait are cancelled."""
        with self._lock:
            thread, waiting = self._thread, []
            while not self._calls.empty():
                waiting.append(self._calls.get())
            if thread is not None:
                self._calls.put(_Call(concurrent.futures.Future(), lambda: None, contextvars.copy_context(), stop=True))
        for call in waiting:
            call.future.cancel()


class _Call:
    def __init__(
        self,
        future: concurrent.futures.Future[Any],
        function: Callable[[], Any],
        context: contextvars.Context,
        *,
        stop: bool = False,
    ) -> None:
        self.future = future
        self.stop = stop
        self._function = function
        self._context = context
        self._settle: Callable[[], None] = lambda: None

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self._context.run(self._function)
        except Exception as error:  # noqa: BLE001 - an edge: it belongs to whoever waits for the call
            self._fail(error)
        except BaseException as error:  # noqa: BLE001 - a tool's SystemExit must end neither the lane nor the loop
            failure = RuntimeError(f"a tool tried to leave the process: {error!r}")
            failure.__cause__ = error
            self._fail(failure)
        else:
            self._settle = lambda: self.future.set_result(value)

    def _fail(self, error: Exception) -> None:
        self._settle = lambda: self.future.set_exception(error)

    def settle(self) -> None:
        self._settle()


class Lanes:
    """The lanes of one supervisor, by name."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Lane:
        """Give the lane of that name, made on first use."""
        with self._lock:
            return self._lanes.setdefault(name, Lane(name))

    async def run(self, name: str, function: Callable[[], _T]) -> _T:
        """Run a blocking call on a lane and wait for it.

        A cancel stops the waiting, not the call: what has started goes on until it returns, and the job that started
        it does not count as ended before. An exception that would end the loop arrives wrapped in a RuntimeError.
        """
        future = self.get(name).submit(function)
        calls = calls_of_job.get()
        if calls is not None:
            calls.add(future)
        return await asyncio.wrap_future(future)

    def close(self, timeout: float) -> tuple[str, ...]:
        """End all lanes. Returns the names of those whose call did not return in time."""
        with self._lock:
            lanes = list(self._lanes.values())
            self._lanes.clear()
        for lane in lanes:
            lane.close()
        left: list[str] = []
        for lane in lanes:
            thread = lane.thread
            if thread is not None:
                thread.join(timeout)
                if thread.is_alive():
                    left.append(lane.name)
        return tuple(left)
