"""Exceptions at each call and each resumed await of a step: its task ends, and does nothing twice."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import callboard
from callboard import FunctionModel, Outcome, Task
from callboard.testing import MemoryServer, VirtualClock
from support import ASSIGN, FINISH, PATIENCE, append

ROOT = f"{Path(callboard.__file__).parent}/"
STALL_SECONDS = 60.0
COMPLETIONS = ("actors/late_results.py", "actors/states/")
"""The files whose code runs after a phase: when a job ends, and when its agent handles the result."""
STEPS = (
    *COMPLETIONS,
    "actors/agent.py",
    "actors/commands/",
    "journal/",
    "actors/processing/",
    "actors/root/",
    "actors/runtime/_jobs.py",
    "config/",
    "messages/",
)
"""All files of a step, but for the loop, the mailboxes and the lanes, which call code and report what it raises, and
for answers of models and of the blackboard, whose loss ends with the time limit of the wait."""


class Raising:
    """Raise at one call of a function of the package, or at one resumption of a coroutine, on the loop's thread."""

    def __init__(self, supervisor, files):
        self._loop, self._files = supervisor._assembly.loop, files  # noqa: SLF001 - only on its thread can it be traced
        self.calls = Counter()
        self._at, self._error, self.raised = None, None, False

    def watch(self):
        """Trace the loop's thread from here on; an exception of the trace function ends that."""
        watching = threading.Event()

        def begin():
            sys.settrace(self._called)
            watching.set()

        self._loop.call(begin)
        assert watching.wait(PATIENCE)

    def at(self, place, error):
        """Raise an error at the next call of a place."""
        self._at, self._error, self.raised = place, error, False

    def _called(self, frame, event, _argument):
        file = frame.f_code.co_filename
        inside = event == "call" and file.startswith(ROOT) and file.removeprefix(ROOT).startswith(self._files)
        if not inside:
            return
        place = file.removeprefix(ROOT), frame.f_code.co_name, frame.f_lineno
        self.calls[place] += 1
        if place == self._at:
            self.last, self._at, self.raised = place, None, True
            raise self._error


def ends_everywhere(start, files, error):
    """Raise at each place in turn, and check each task's end; return the number of places."""
    clock, surface = VirtualClock(), MemoryServer(MemoryServer.window())
    supervisor = start(
        host=lambda request: FINISH if request.subtasks else ASSIGN,
        app=FunctionModel(lambda request: append(request.task_id) if not request.memory else FINISH),
        servers=[surface],
        clock=clock,
        supervision={"backoff": 0.0, "max_backoff": 0.0, "intensity": 10_000, "stall_seconds": STALL_SECONDS},
        limits={"step_seconds": 1e9, "command_seconds": 1e9, "model_seconds": 1e9},
    )
    raising = Raising(supervisor, files)

    def run():
        handle = supervisor.submit(Task(request="x"))
        end = time.monotonic() + PATIENCE
        while not handle.done():
            assert time.monotonic() < end, f"the task never ended: {raising.last}"
            clock.advance(STALL_SECONDS / 4)
            supervisor.status()
        return handle.result(0)

    run()
    raising.watch()
    raising.calls.clear()
    run()
    places = dict(raising.calls)
    for place in places:
        raising.at(place, error(f"at {place}"))
        assert run().outcome in {Outcome.FINISHED, Outcome.ERROR, Outcome.FAILED}, place
        if raising.raised:
            raising.watch()
    effects = Counter(text for _, _, text in surface.effects)
    assert set(effects.values()) == {1}
    return len(places)


@pytest.fixture(autouse=True)
def quiet(caplog):
    """Keep the log of the crashes short."""
    caplog.set_level(logging.CRITICAL, "pykka")
    caplog.set_level(logging.CRITICAL, "callboard")


def test_a_task_ends_whatever_the_completion_of_a_job_raises(start):
    assert ends_everywhere(start, COMPLETIONS, SystemExit) > 50


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "error", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, MemoryError, RecursionError]
)
def test_a_task_ends_whatever_any_function_of_a_step_raises(start, error):
    assert ends_everywhere(start, STEPS, error) > 200
