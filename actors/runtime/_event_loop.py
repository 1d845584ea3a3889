"""The shared asyncio event loop, on its own thread."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from callboard.actors.runtime._threads import mark_own_thread

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine, Generator

_T = TypeVar("_T")


class EventLoop:
    """An asyncio event loop on a daemon thread.

    All methods may be called on any thread. Nothing that runs on the loop may block.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log_failure)
        self._stopped = False
        self._calls: collections.deque[Callable[[], object]] = collections.deque()
        self._woken = False
        self._ident = 0
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _main(self) -> None:
        mark_own_thread()
        self._ident = threading.get_ident()
        asyncio.set_event_loop(self._loop)
        try:
            while not self._stopped:
                with contextlib.suppress(
                    SystemExit, KeyboardInterrupt
                ):  # raised by a task, which keeps the exception; only the task ends
                    self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    @property
    def thread(self) -> threading.Thread:
        """The loop's thread."""
        return self._thread

    @property
    def is_here(self) -> bool:
        """True on the loop's thread."""
        return threading.get_ident() == self._ident

    def submit(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Run a coroutine on the loop; `cancel` of the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], object]) -> None:
        """Schedule a function on the loop; a closed loop ignores it.

        Functions are called in the order in which they were scheduled. A batch that is scheduled while the loop is busy
        wakes the loop only once: each wake-up is a system call and a switch to other threads.
        """
        self._calls.append(function)
        if self._woken:
            return
        self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._call_all)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _call_all(self) -> None:
        """Call the scheduled functions, on the loop's thread.

        An exception in one does not affect the others.
        """
        self._woken = False  # before counting the calls: one that is added after the count wakes the loop again
        for _ in range(len(self._calls)):
            try:
                self._calls.popleft()()
            except BaseException as error:  # an edge: a SystemExit here would drop the other calls
                self._loop.call_exception_handler({"message": "a call on the event loop failed", "exception": error})

    def stop(self, timeout: float) -> bool:
        """Cancel all tasks, wait for them, and stop the loop.

        Returns whether its thread ended in time.
        """
        if not self._thread.is_alive():
            self._loop.close()
            return True
        self.call(lambda: self._loop.create_task(self._drain()))
        self._thread.join(timeout)
        return not self._thread.is_alive()

    async def _drain(self) -> None:
        other_tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in other_tasks:
            task.cancel()
        await asyncio.gather(*other_tasks, return_exceptions=True)
        self._stopped = True
        self._loop.stop()


class Awaited(Generic[_T]):
    """A result that a coroutine awaits and any thread may set.

    Create it on the loop's thread.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[_T] = self._loop.create_future()

    def settle(self, result: _T) -> None:
        """Set the result; only the first counts. A closed loop ignores it."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, result)

    def _settle(self, result: _T) -> None:
        if not self._future.done():
            self._future.set_result(result)

    def __await__(self) -> Generator[Any, None, _T]:
        """Wait for it."""
        return self._future.__await__()


def _log_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception of a callback, as asyncio does.

    A logging handler of the host program that raises must not end the loop.
    """
    with contextlib.suppress(BaseException):
        loop.default_exception_handler(context)
