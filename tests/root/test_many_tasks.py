"""Many tasks at once: side by side on different targets, in turn on one."""

from __future__ import annotations

import asyncio
import threading

from callboard import EventName, FunctionModel, Outcome, Task
from callboard.testing import MemoryServer
from support import FINISH, HELD, PATIENCE

APPEND = {"Status": "FINISH", "ControlLabel": "field-1", "Function": "append", "Args": {"text": "."}}


def test_an_app_agent_is_shared_and_takes_its_subtasks_in_turn(start):
    surface = MemoryServer(MemoryServer.window())
    inside, most, lock = [0], [0], threading.Lock()

    async def app(_request):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        await asyncio.sleep(0)
        with lock:
            inside[0] -= 1
        return APPEND

    host = [{"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "append"}, FINISH]
    supervisor = start(host=host, app=FunctionModel(app), servers=[surface])
    handles = [supervisor.submit(Task(request=f"task {number}")) for number in range(50)]
    results = [handle.result(PATIENCE) for handle in handles]
    assert {result.outcome for result in results} == {Outcome.FINISHED}
    assert len(surface.effects) == 50
    assert most[0] == 1
    assert [agent for agent in supervisor.status().agents if agent.startswith("app/")] == ["app/memo/one"]
    started = [event for event in supervisor_events(supervisor) if event.name is EventName.AGENT_STARTED]
    assert [event.agent for event in started].count("app/memo/one") == 1


def supervisor_events(supervisor):
    ended = threading.Event()
    events = []

    def keep(event):
        events.append(event)
        if event.name is EventName.TASK_ENDED and len([e for e in events if e.name is EventName.TASK_ENDED]) == 50:
            ended.set()

    supervisor.subscribe(keep, after=0)
    ended.wait(PATIENCE)
    return events


def test_subtasks_on_one_target_run_first_in_first_out(start):
    order: list[str] = []
    asked, release = threading.Event(), threading.Event()

    async def app(request):
        if not order:
            asked.set()
            await asyncio.to_thread(release.wait)
        order.append(request.task_id)
        return FINISH

    supervisor = start(app=FunctionModel(app))
    handles = [supervisor.submit(Task(id="t0", request="x", target="memo:one"))]
    assert asked.wait(PATIENCE)
    handles += [supervisor.submit(Task(id=f"t{number}", request="x", target="memo:one")) for number in range(1, 6)]
    release.set()
    for handle in handles:
        handle.result(PATIENCE)
    assert order == [f"t{number}" for number in range(6)]


def test_tasks_on_different_targets_run_side_by_side(start):
    surface = MemoryServer(*(MemoryServer.window(name) for name in ("one", "two", "three")))
    everybody = threading.Barrier(3)

    async def app(_request):
        await asyncio.to_thread(everybody.wait, HELD)
        return FINISH

    supervisor = start(app=FunctionModel(app), servers=[surface])
    handles = [supervisor.submit(Task(request="x", target=f"memo:{name}")) for name in ("one", "two", "three")]
    assert all(handle.result(PATIENCE).ok for handle in handles)


def test_memory_of_one_task_is_hidden_from_another_on_the_same_agent(start):
    seen: dict[str, list[str]] = {}

    def app(request):
        seen.setdefault(request.task_id, []).extend(record.decision.thought for record in request.memory)
        if request.step == 1:
            return {"Status": "CONTINUE", "Thought": f"a secret of {request.task_id}"}
        return FINISH

    supervisor = start(app=app)
    for name in ("a", "b"):
        supervisor.submit(Task(id=name, request="x", target="memo:one")).result(PATIENCE)
    assert seen == {"a": ["a secret of a"], "b": ["a secret of b"]}


def test_a_hundred_tasks_with_a_host_agent_each_all_end(start):
    surface = MemoryServer(*(MemoryServer.window(str(number)) for number in range(10)))

    def host(request):
        if request.subtasks:
            return {"Status": "FINISH", "Result": request.task_request}
        window = f"memo:{int(request.task_request) % 10}"
        return {"Status": "ASSIGN", "ControlText": window, "Current Sub-Task": "append"}

    supervisor = start(host=host, app=lambda _request: APPEND, servers=[surface])
    handles = [supervisor.submit(Task(request=str(number))) for number in range(100)]
    assert [handle.result(PATIENCE).output for handle in handles] == [str(number) for number in range(100)]
    assert len(surface.effects) == 100
    assert supervisor.status().tasks == ()
