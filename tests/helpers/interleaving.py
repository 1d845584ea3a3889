"""Run two threads in every order, to test a lock.

Without the lock, such a test fails in every run.

CPython 3.11 switches threads at calls and loops alone: a lost update of ``self.count += 1`` may never show there,
however many threads try, and does elsewhere. So the first of two functions is preempted on purpose, at each of its
bytecodes in turn, and the second one runs there, on a thread of its own.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from unittest import mock

from support import PATIENCE

Scenario = Callable[[], Iterator[tuple[Callable[[], object], Callable[[], object]]]]
"""A generator that sets up, yields two functions, and checks the result."""

_running: list[_Preemption] = []


def in_every_order(scenario: Scenario) -> None:
    """Run a scenario once for each bytecode of its first function.

    The second function preempts the first one there, in our own code only. It runs until it ends, or waits for a lock
    that the scenario made. In the last round it runs after the first.
    Before the rounds both run once in sequence, so that a coverage tool sees their lines.
    """
    with contextmanager(scenario)() as (first, second):
        first()
        second()
    preempted = True
    for place in itertools.count():
        if not preempted:
            break
        preemption = _Preemption(place)
        with preemption.noticing_locks():
            running = contextmanager(scenario)()
            first, second = running.__enter__()
        try:
            preempted = preemption.run(first, second)
        except BaseException as error:
            if not running.__exit__(type(error), error, error.__traceback__):
                raise
        else:
            running.__exit__(None, None, None)
    assert place > 1, "the first function runs none of our code"


def preempted_here() -> None:
    """Preempt this thread from here on, with its callers."""
    for preemption in _running[-1:]:
        preemption.watch()


class _Preemption:
    def __init__(self, place: int) -> None:
        self._left = place
        self._settled = threading.Event()
        self._errors: list[BaseException] = []
        self._second: threading.Thread | None = None

    @contextmanager
    def noticing_locks(self) -> Iterator[None]:
        """Make locks that report when a thread waits for them."""
        with (
            mock.patch.object(threading, "Lock", functools.partial(_made, threading.Lock, self._settled)),
            mock.patch.object(threading, "RLock", functools.partial(_made, threading.RLock, self._settled)),
        ):
            yield

    def run(self, first: Callable[[], object], second: Callable[[], object]) -> bool:
        """Run both; return True if the first was preempted at its place."""
        self._second = threading.Thread(target=self._guarded, args=(second, self._settled.set), daemon=True)
        traced = threading.Thread(target=self._guarded, args=(lambda: (self.watch(), first()), None), daemon=True)
        _running.append(self)
        try:
            traced.start()
            traced.join(PATIENCE)
            preempted = self._second.ident is not None
            if not preempted:
                self._second.start()
            self._second.join(PATIENCE)
        finally:
            _running.remove(self)
        if self._errors:
            raise self._errors[0]
        assert not traced.is_alive(), "the first function does not end"
        assert not self._second.is_alive(), "the second function does not end"
        return preempted

    def watch(self) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if _is_ours(frame):
                frame.f_trace = self._trace
                frame.f_trace_opcodes = True
            frame = frame.f_back
        sys.settrace(self._trace)

    def _guarded(self, function: Callable[[], object], then: Callable[[], object] | None) -> None:
        try:
            function()
        except BaseException as error:  # it belongs to the test
            self._errors.append(error)
        finally:
            sys.settrace(None)
            if then is not None:
                then()

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        if not _is_ours(frame):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._left -= 1
            if self._left == -1:
                self._second.start()
                assert self._settled.wait(PATIENCE), "the second function neither ends nor waits for a lock"
        return self._trace


def _is_ours(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").startswith("callboard.")


def _made(lock: Callable[[], Any], waits: threading.Event) -> _Lock:
    return _Lock(lock(), waits)


class _Lock:
    """A lock that reports when a thread waits for it."""

    def __init__(self, lock: Any, waits: threading.Event) -> None:
        self._lock = lock
        self._waits = waits

    def acquire(self, *how: Any, **named: Any) -> bool:
        if self._lock.acquire(blocking=False):
            return True
        if (*how, *named.values())[:1] != (False,):  # a condition checks in this way that it holds its lock
            self._waits.set()
        return self._lock.acquire(*how, **named)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)
