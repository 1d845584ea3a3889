"""The places of subtasks that work side by side: one that waits for another task's target takes none."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict

import pytest

from callboard import EventName, FunctionModel, Outcome, Task
from callboard.testing import MemoryServer, assert_replays
from support import FINISH, PATIENCE, lone


class Workers:
    """The model of AppAgents that work until they are told to end."""

    def __init__(self):
        self.loop = None
        self.working = []
        self.ends = defaultdict(asyncio.Event)
        self.begins = defaultdict(asyncio.Event)

    async def work(self, request):
        self.loop = asyncio.get_running_loop()
        self.working.append(request.request)
        self.begins[request.request].set()
        await self.ends[request.request].wait()
        self.working.remove(request.request)
        return FINISH

    def end(self, name):
        """Let one end, from any thread."""
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
    workers.wait_for("other")
    return supervisor, workers, blocker, group


def free_target(supervisor, workers, blocker):
    """End the other task, and wait until the group's first member has its target."""
    workers.end("blocker")
    assert blocker.result(PATIENCE).ok
    end = time.monotonic() + PATIENCE
    while not any(run.leased and run.request == "queued" for task in supervisor.status().tasks for run in task.runs):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_member_that_waits_for_another_task_leaves_its_place_to_others(crowd, tmp_path):
    supervisor, workers, blocker, group = crowd
    assert sorted(workers.working) == ["blocker", "other"]
    free_target(supervisor, workers, blocker)
    assert workers.working == ["other"]  # the target is free now, and the place is taken
    workers.end("other")
    workers.end("queued")
    result = group.result(PATIENCE)
    assert result.ok
    assert [subtask.number for subtask in result.subtasks] == [1, 2]
    assert_replays(tmp_path / "journal.db")


def test_cancelled_member_with_a_target_and_no_place_gives_it_back(crowd):
    supervisor, workers, blocker, group = crowd
    free_target(supervisor, workers, blocker)
    later = supervisor.submit(lone("memo:busy", request="later"))
    group.cancel("enough")
    assert group.result(PATIENCE).outcome is Outcome.CANCELLED
    workers.end("later")
    assert later.result(PATIENCE).ok


def test_paused_member_with_a_target_and_no_place_goes_on_when_resumed(crowd):
    supervisor, workers, blocker, group = crowd
    free_target(supervisor, workers, blocker)
    assert group.pause()
    workers.end("other")
    workers.end("queued")
    assert group.resume()
    assert group.result(PATIENCE).ok
