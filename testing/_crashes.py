"""Crashes of a surface's work at each relevant place, within one process."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from callboard.messages import CallboardError, EventName, Probe
from callboard.testing._faults import Faults, disk_full
from callboard.testing._stand import SECONDS, supervised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from callboard.actors.client import TaskHandle
    from callboard.testing._stand import SurfaceCall, SurfaceCase

Place = tuple[str, str, int]
"""``before`` or ``after``, the kind of a row, and its number."""
_NO_ROWS = {"effect", "event"}
"""Places without a crash: events follow from other rows, and are stored with them."""
_FROM, _TO = "decided", "command_result"
"""Between these rows the call runs. Elsewhere a crash before a row is the same as one after the row before it."""


class CrashTrials:
    """One call, interrupted at every row of the journal.

    Each interruption is on a new surface.
    """

    def __init__(
        self, make: Callable[[Path], SurfaceCase], once: SurfaceCall, done: Callable[[SurfaceCase], int]
    ) -> None:
        """Store the functions.

        `make` makes the cases, `once` is their call, and `done` counts how often it took effect.
        """
        self._make, self._once, self._done = make, once, done

    def places(self, folder: Path, *, in_call: bool = False) -> list[tuple[Place, ...]]:
        """Work once without a crash, and return the crashes to try.

        Each is one crash, or one during the recovery from another. The likeliest failures come first: crashes while the
        call runs. With `in_call`, there are only these: after the intent, and until the result is stored.
        """
        case = self._case(folder)
        with Faults() as faults, supervised(case, self._once, journal=folder / "journal.db") as worker:
            result = worker.submit().result(SECONDS)
            assert result.ok, f"`once` does not work: {[cause.reason for cause in result.causes]}"
            assert self._done(case) == 1, f"`once` ran once, and `done` counts {self._done(case)}"
        rows = [kind for (when, kind), _ in faults.passed.items() if when == "after" and kind not in _NO_ROWS]
        acting = rows[rows.index(_FROM) : rows.index(_TO)]
        kinds = [("after", kind) for kind in acting] + [("before", kind) for kind in dict.fromkeys([_TO, *rows])]
        if in_call:
            kinds = [*(("after", kind) for kind in acting if kind != _FROM), ("before", _TO)]
        ones = [((*kind, nth),) for kind in kinds for nth in range(1, faults.passed[kind] + 1)]
        return [*ones, (("before", _TO, 1), ("before", _TO, 1))]

    def tried(self, folder: Path, places: Sequence[Place]) -> bool:
        """Crash at some places, one process after the other, and then resume.

        Returns whether a person had to be asked.
        """
        case, journal = self._case(folder), folder / "journal.db"
        for when, kind, nth in places:
            with Faults() as faults:
                (faults.before if when == "before" else faults.after)(kind, disk_full, nth=nth)
                with (
                    contextlib.suppress(CallboardError, OSError),  # the crash itself
                    supervised(case, self._once, journal=journal) as worker,
                ):
                    _answer(worker.submit(), done=self._done(case) > 0)
        where = "after a crash " + " and one ".join(f"{when} row {kind} {nth}" for when, kind, nth in places)
        was, begin = self._done(case), time.time()
        with supervised(case, self._once, journal=journal) as worker:
            handle = worker.submit()  # the same task: if it was accepted before, it resumes
            was_asked = _answer(handle, done=was > 0)
            result = handle.result(SECONDS)
            probes = [
                Probe(str(event.data["probe"]))
                for event in handle.events()
                if event.name is EventName.COMMAND_IN_DOUBT and event.at >= begin
            ]
            assert result.ok, f"{where} the work ended as {result.outcome}: {result.causes}"
        if probes and probes[0] not in {Probe.UNKNOWN, Probe.BEGUN}:  # for an action that was begun, both may be true
            truth = Probe.DONE if was else Probe.NOT_DONE
            assert probes[0] is truth, (
                f"{where} it was {truth.value}, and `probe` said {probes[0].value}: "
                "`probe` and `expected` must check, not guess; an outcome that they can't determine is `unknown`"
            )
        done = self._done(case)
        assert done == 1, f"{where} it was done {done} times: mark what must not be repeated as `Effect.ONCE`"
        return was_asked

    def _case(self, folder: Path) -> SurfaceCase:
        folder.mkdir()
        return self._make(folder)


def _answer(handle: TaskHandle, *, done: bool) -> bool:
    """Answer a person's questions truthfully, until the work is over.

    Returns whether there was a question.
    """
    has_question = False
    for event in handle.events():
        if event.name is EventName.QUESTION_ASKED:
            for question in handle.questions():
                has_question = True
                handle.answer(question.id, "it was done" if done else "it was not done")
    handle.result(SECONDS)
    return has_question
