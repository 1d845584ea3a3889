"""The places of subtasks that work side by side: one that waits for another task's target takes none."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict

import pytest

from callboard import EventName, FunctionModel, Outcome, PlanStep, Task
from callboard.testing import MemoryServer, assert_replays
from support import FINISH, PATIENCE, lone


class Workers:
    """The model of AppAgents that work until they are told to end."""

    def __init__(self):
        self.loop = None
        self.started = threading.Event()
        self.working, self.order = [], []
        self.ends = defaultdict(asyncio.Event)
        self.begins = defaultdict(asyncio.Event)

    async def work(self, request):
        self.loop = asyncio.get_running_loop()
        self.started.set()
        self.working.append(request.request)
        self.order.append(request.request)
        self.begins[request.request].set()
        await self.ends[request.request].wait()
        self.working.remove(request.request)
        return FINISH

    def end(self, name):
        """Let one end, from any thread, also before it begins."""
        self.loop.call_soon_threadsafe(self.ends[name].set)

    def wait_for(self, name):
        """Wait until one works."""

        async def begun():
            await asyncio.wait_for(self.begins[name].wait(), PATIENCE)

        asyncio.run_coroutine_threadsafe(begun(), self.loop).result(PATIENCE)


GROUP = [
    {"Current Sub-Task": "queued", "ControlText": "memo:busy", "After": [], "AfterAny": []},
    {"Current Sub-Task": "other", "ControlText": "memo:free", "After": [], "AfterAny": []},
]


@pytest.fixture
def crowd(start, tmp_path, until):
    """A task of another program on one window, and a group of width 1 whose first member waits for it."""
    workers = Workers()
    supervisor = start(
        host=FunctionModel(lambda request: FINISH if request.subtasks else {"Status": "ASSIGN", "Sub-Tasks": GROUP}),
        app=FunctionModel(workers.work),
        servers=[MemoryServer(MemoryServer.window("busy"), MemoryServer.window("free"))],
        journal={"path": tmp_path / "journal.db"},
        limits={"parallel_subtasks": 1},
    )
    blocker = supervisor.submit(lone("memo:busy", request="blocker"))
    until(blocker, EventName.SUBTASK_ASSIGNED)
    group = supervisor.submit(Task(request="all"))
    until(group, EventName.SUBTASK_ASSIGNED, request="other")
    assert workers.started.wait(PATIENCE)
    workers.wait_for("other")
    return supervisor, workers, blocker, group


def test_member_that_waits_for_another_task_leaves_its_place_to_others(crowd, tmp_path):
    supervisor, workers, blocker, group = crowd
    assert sorted(workers.working) == ["blocker", "other"]
    later = supervisor.submit(lone("memo:busy", request="later"))
    workers.end("blocker")
    assert blocker.result(PATIENCE).ok
    workers.wait_for("later")  # the place is taken, so the member has given the target back
    assert sorted(workers.working) == ["later", "other"]
    workers.end("later")
    assert later.result(PATIENCE).ok
    workers.end("other")
    workers.end("queued")
    result = group.result(PATIENCE)
    assert result.ok
    assert [subtask.number for subtask in result.subtasks] == [1, 2]
    assert_replays(tmp_path / "journal.db")


def free_target(supervisor, workers, blocker):
    """End the other task, and wait until the group's first member has had its target, and given it back."""
    workers.end("blocker")
    assert blocker.result(PATIENCE).ok
    workers.end("later")
    assert supervisor.submit(lone("memo:busy", request="later")).result(PATIENCE).ok


def test_member_that_gave_its_target_back_can_be_cancelled(crowd):
    supervisor, workers, blocker, group = crowd
    free_target(supervisor, workers, blocker)
    group.cancel("enough")
    result = group.result(PATIENCE)
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.CANCELLED] * 2


def test_member_that_gave_its_target_back_goes_on_after_a_pause(crowd):
    supervisor, workers, blocker, group = crowd
    free_target(supervisor, workers, blocker)
    assert group.pause()
    workers.end("other")
    workers.end("queued")
    assert group.resume()
    assert group.result(PATIENCE).ok


def test_subtasks_on_one_target_wait_in_its_queue_one_by_one(start, until):
    workers = Workers()
    supervisor = start(app=FunctionModel(workers.work), servers=[MemoryServer(MemoryServer.window("busy"))])
    steps = [PlanStep(request=name, target="memo:busy", after=[]) for name in ("a", "b", "c")]
    plan = supervisor.submit(Task(plan=steps))
    until(plan, EventName.SUBTASK_ASSIGNED)
    assert workers.started.wait(PATIENCE)
    workers.wait_for("a")
    other = supervisor.submit(lone("memo:busy", request="other"))
    until(other, EventName.SUBTASK_QUEUED)
    for name in ("a", "other", "b", "c"):
        workers.end(name)
    assert plan.result(PATIENCE).ok
    assert other.result(PATIENCE).ok
    assert workers.order == ["a", "other", "b", "c"]
