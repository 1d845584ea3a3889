"""Supervisors in coroutines of the host program."""

from __future__ import annotations

import asyncio
import threading

import pytest

from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.messages import SupervisorStoppedError, UnknownTargetError, WouldDeadlockError
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, lone


class Slow(MemoryServer):
    """A surface whose end waits for a coroutine of the host program."""

    def __init__(self):
        super().__init__(self.window())
        self.released = threading.Event()
        self.closing = threading.Event()
        self.in_time = False

    def close(self):
        self.closing.set()
        self.in_time = self.released.wait(PATIENCE)


def started(*surfaces, **models):
    return Supervisor.start(Settings.load(), models=models or {"app": lambda _: FINISH}, servers=surfaces)


async def test_leaving_async_with_does_not_block_the_loop():
    surface = Slow()

    async def release():
        await asyncio.to_thread(surface.closing.wait, PATIENCE)
        surface.released.set()

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group, started(surface) as supervisor:
        group.create_task(release())
    assert surface.in_time
    with pytest.raises(SupervisorStoppedError):
        supervisor.submit(Task(request="x"))


async def test_an_error_in_async_with_still_stops():
    with pytest.raises(ZeroDivisionError):
        async with started(MemoryServer(MemoryServer.window())) as supervisor:
            raise ZeroDivisionError
    with pytest.raises(SupervisorStoppedError):
        supervisor.status()


async def test_two_hundred_tasks_are_submitted_at_once():
    windows = [MemoryServer.window(f"w{number}") for number in range(200)]
    async with started(MemoryServer(*windows)) as supervisor:
        handles = await asyncio.gather(*(supervisor.submit_async(lone(window.id)) for window in windows))
        results = await asyncio.gather(*handles)
    assert [result.task_id for result in results] == [handle.task_id for handle in handles]
    assert all(result.ok for result in results)


async def test_submit_async_refuses_as_submit_does():
    async with started(MemoryServer(MemoryServer.window())) as supervisor:
        with pytest.raises(UnknownTargetError):
            await supervisor.submit_async(lone("nowhere"))
        with pytest.raises(TypeError):
            await supervisor.submit_async("look around")
        first = await supervisor.submit_async(lone(key="once"))
        assert (await supervisor.submit_async(lone(key="once"))).task_id == first.task_id


async def test_cancelling_the_wait_does_not_cancel_the_stop():
    surface = Slow()
    supervisor = started(surface)
    stopping = asyncio.create_task(supervisor.stop_async())
    await asyncio.to_thread(surface.closing.wait, PATIENCE)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    surface.released.set()
    assert await supervisor.stop_async() == ()
    assert surface.in_time


async def test_a_model_must_not_wait_for_the_stop():
    refused = []

    async def model(_request):
        try:
            await supervisor.stop_async()
        except WouldDeadlockError as error:
            refused.append(error)
        return FINISH

    async with started(MemoryServer(MemoryServer.window()), app=FunctionModel(model)) as supervisor:
        assert (await supervisor.submit(lone())).ok
    assert len(refused) == 1
