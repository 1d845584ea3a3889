"""Targets that share something are leased together, and one that a task opened belongs to that task."""

from __future__ import annotations

import pytest

from callboard import Server, Task, tool
from callboard.messages import Effect, Observation, Target, TargetKind, UnknownTargetError
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, PATIENCE, action, actions, lone

KEYS = 300


class Desktop(Server):
    """Two windows with one keyboard: a key goes to the window that has the focus."""

    name = "desktop"
    settles = False

    def __init__(self, group="desktop:0"):
        self.group, self.focus, self.typed = group, "", {"left": [], "right": []}

    def targets(self):
        return tuple(self.window(name) for name in self.typed)

    def window(self, name):
        address = f"app/editor/{name}"
        binds = {"window": name}
        return Target(
            id=name, name=name, kind=TargetKind.WINDOW, address=address, server="desktop", binds=binds, group=self.group
        )

    def observe(self, target, look):
        return Observation(text=str(len(self.typed[target.id])), fingerprint=str(len(self.typed[target.id])))

    @tool(effect=Effect.IDEMPOTENT)
    def activate(self, window: str) -> None:
        """Give a window the focus."""
        self.focus = window

    @tool(effect=Effect.IDEMPOTENT)
    def press(self, window: str) -> None:
        """Press a key; the test notes for which window it was meant."""
        self.typed[self.focus].append(window)


def test_keystrokes_of_two_tasks_on_one_desktop_reach_their_windows(start):
    desktop, a_step = Desktop(), 30
    typing = [actions(*([action("press")] * a_step)) for _ in range(KEYS // a_step)]
    answers = [actions(action("activate")), *typing, FINISH]
    supervisor = start(app=answers, servers=[desktop])
    handles = supervisor.submit_all([lone("left"), lone("right")])
    assert all(handle.result(PATIENCE).ok for handle in handles)
    assert desktop.typed == {"left": ["left"] * KEYS, "right": ["right"] * KEYS}


@pytest.fixture
def owned():
    """A surface with a window that the task ``mine`` opened."""
    window = MemoryServer.window().model_copy(update={"owner": "mine"})
    return MemoryServer(window)


def test_a_window_is_offered_to_the_task_that_opened_it_alone(start, owned):
    seen = {}

    def host(request):
        seen[request.task_id] = [target.id for target in request.observation.targets]
        return FINISH

    supervisor = start(host=host, servers=[owned])
    supervisor.submit(Task(id="mine", request="x")).result(PATIENCE)
    supervisor.submit(Task(id="other", request="x")).result(PATIENCE)
    assert seen == {"mine": ["memo:one"], "other": []}


def test_a_follow_up_still_sees_what_its_conversation_opened(start, owned):
    answers = iter([FINISH, ASSIGN, FINISH])
    supervisor = start(host=lambda _: next(answers), app=[FINISH], servers=[owned])
    first = supervisor.submit(Task(id="mine", request="x"))
    first.result(PATIENCE)
    result = first.follow_up("again").result(PATIENCE)
    assert [done.address for done in result.subtasks] == ["app/memo/one"]


def test_another_task_cannot_name_a_window_that_it_does_not_own(start, owned):
    supervisor = start(app=[FINISH], servers=[owned])
    with pytest.raises(UnknownTargetError):
        supervisor.submit(lone(id="other"))
    assert supervisor.submit(lone(id="mine")).result(PATIENCE).ok
