"""Two crashes in one step, after any two of its journal rows; a person answers the questions that the program can't."""

from __future__ import annotations

import shutil

import pytest

from callboard import EventName
from callboard.actors.states import STOP, WAS_DONE, WAS_NOT_DONE
from callboard.messages import JournalError, Probe
from callboard.testing import Faults, MemoryServer, disk_full
from support import FINISH, PATIENCE, action, lone

TEXTS = ["a", "b"]
BOTH = {"Status": "CONTINUE", "Actions": [action("append", "field-1", text=text) for text in TEXTS]}
IN_DOUBT = [("effect", 1), ("command_result", 1), ("effect", 2), ("command_result", 2)]
"""The places where a crash leaves an action in doubt."""
OTHERS = [("decided", 1), ("intent", 1), ("intent", 2), ("step_done", 1), ("answered", 2), ("task_result", 1)]


class Untold(MemoryServer):
    """A window that does not show whether an action was done."""

    def probe(self, target, intent, foreseen, fingerprint):
        return Probe.UNKNOWN


class World:
    """A window, a journal, and supervisors on them, one after the other."""

    def __init__(self, start, path, policy):
        self._start, self._path, self._policy = start, path, policy
        self._surface = Untold(MemoryServer.window())

    def copy(self, path):
        """Make another world that is as far as this one."""
        other = World(self._start, path, self._policy)
        for file in self._path.parent.glob(f"{self._path.name}*"):
            shutil.copy(file, f"{path}{file.name.removeprefix(self._path.name)}")
        for effect in self._surface.effects:
            other._surface.append(*effect)
        return other

    @property
    def done(self):
        return [text for _, _, text in self._surface.effects]

    def live(self, place=None):
        """Run up to a crash at a place, or to the end; return the places passed, and the result, None after a crash."""
        with Faults() as faults:
            if place is not None:
                crash(faults, *place)
            given = {"journal": {"path": self._path}, "policy": self._policy}
            supervisor = self._start(servers=[self._surface], app=[BOTH, FINISH], **given)
            try:
                handle = supervisor.submit(lone(id="t", key="t"))
                self._answer(handle)
                result = handle.result(PATIENCE)
            except JournalError:
                result = None
            supervisor.stop()
        counts = [(kind, count) for (when, kind), count in faults.passed.items() if when == "before"]
        kinds = [(kind, count) for kind, count in counts if kind not in {"event", "in_force"}]
        return [(kind, nth) for kind, count in kinds for nth in range(1, count + 1)], result

    def _answer(self, handle):
        self._answer_all(handle)  # questions of another life are asked no more
        for event in handle.events():
            if event.name in {EventName.QUESTION_ASKED, EventName.APPROVAL_REQUESTED}:
                self._answer_all(handle)

    def _answer_all(self, handle):
        for question in handle.questions():
            (asked,) = question.questions
            assert set(asked.choices) == {WAS_DONE, WAS_NOT_DONE, STOP}
            text = next(text for text in TEXTS if f"'{text}'" in asked.text)
            handle.answer(question.id, WAS_DONE if text in self.done else WAS_NOT_DONE)
        for request in handle.approvals():
            handle.approve(request.id)


def crash(faults, kind, nth):
    """Let nothing be kept from a place on; an action that was not done there is not done."""
    if kind != "effect":
        faults.before(kind, disk_full, nth=nth)
        return

    def undone():
        faults.before("command_result", disk_full, nth=faults.passed["before", "command_result"] + 1)
        disk_full()

    faults.before("effect", undone, nth=nth)


@pytest.fixture(
    params=[
        pytest.param([], id="allowed"),
        pytest.param([{"verdict": "approve", "tool": "append"}], id="approved", marks=pytest.mark.slow),
    ]
)
def world(start, tmp_path, request):
    return World(start, tmp_path / "journal.db", request.param)


@pytest.mark.parametrize("first", [*IN_DOUBT, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)])
def test_after_two_crashes_a_step_is_done_to_its_end_and_once(world, tmp_path, first):
    world.live(first)
    once = world.copy(tmp_path / "once.db")
    places, result = once.live()
    assert (result.ok, once.done) == (True, TEXTS)
    for number, second in enumerate(places):
        twice = world.copy(tmp_path / f"{number}.db")
        assert twice.live(second)[1] is None
        _, result = twice.live()
        assert (result.ok, twice.done) == (True, TEXTS), (second, result.causes)
