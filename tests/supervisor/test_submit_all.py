"""Many tasks, taken before the first of them is waited for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from callboard import EventName, FunctionModel, Task
from callboard.messages import NotAllTakenError, SupervisorStoppedError, TaskRefusedError, UnknownTargetError
from callboard.testing import MemoryServer
from support import HELD, PATIENCE, write

WRITE = write(status="FINISH")


def hello(**fields):
    return Task(request="write hello", target="memo:one", **fields)


@pytest.fixture(params=["memory", "process"])
def journal(request, tmp_path):
    if request.param == "memory":
        return {}
    return {"journal": {"path": tmp_path / "journal.db", "durability": request.param}}


def test_all_run_and_their_handles_have_the_order_of_the_tasks(start, journal):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: WRITE, servers=[surface], **journal)
    tasks = [hello() for _ in range(50)]
    handles = supervisor.submit_all(iter(tasks))
    assert [handle.task_id for handle in handles] == [task.id for task in tasks]
    assert all(handle.result(PATIENCE).ok for handle in handles)
    assert len(surface.effects) == 50


def test_no_tasks_are_no_handles(start):
    assert start().submit_all([]) == ()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("write hello", TypeError),
        (Task(request="half a pair: \ud800", target="memo:one"), ValueError),
        (Task(request="write hello", target="memo:two"), UnknownTargetError),
        (Task(request="write hello", target="memo:one", id="for-hunter2-only"), ValueError),
    ],
)
def test_a_mistake_in_one_starts_none(start, wrong, error):
    supervisor = start(app=lambda _: WRITE, secrets={"password": "hunter2"})
    with pytest.raises(error):
        supervisor.submit_all([hello(), wrong, hello()])
    assert supervisor.pending() == ()
    assert supervisor.status().agents == ()


def test_a_key_that_stands_twice_in_them_is_one_task(start, journal):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: WRITE, servers=[surface], **journal)
    handles = supervisor.submit_all([hello(key="order-17"), hello(key="order-18"), hello(key="order-17")])
    assert handles[0].task_id == handles[2].task_id != handles[1].task_id
    assert all(handle.result(PATIENCE).ok for handle in handles)
    assert len(surface.effects) == 2


def test_one_that_is_over_is_not_done_again(start, journal):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: WRITE, servers=[surface], **journal)
    before = supervisor.submit(hello(key="order-17"))
    assert before.result(PATIENCE).ok
    again, other = supervisor.submit_all([hello(key="order-17"), hello(key="order-18")])
    assert again.task_id == before.task_id
    assert again.result(PATIENCE).ok
    assert other.result(PATIENCE).ok
    assert len(surface.effects) == 2


def test_a_task_refused_at_intake_is_reported_with_the_others_handles(start, journal):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: WRITE, servers=[surface], **journal)
    other = Task(request="write something else", target="memo:one", id="order-17")
    first, last = hello(id="order-17"), hello()
    with pytest.raises(NotAllTakenError, match=r"2 of 3 tasks were accepted; order-17: .*order-17") as refused:
        supervisor.submit_all([first, other, last])
    assert [(task, type(error)) for task, error in refused.value.errors] == [(other, TaskRefusedError)]
    assert [handle.task_id for handle in refused.value.handles] == ["order-17", last.id]
    assert all(handle.result(PATIENCE).ok for handle in refused.value.handles)
    assert len(surface.effects) == 2


def test_a_follow_up_of_an_unknown_conversation_costs_the_others_nothing(start):
    supervisor = start(host=lambda _: {"Status": "FINISH"})
    lost = Task(request="and now?", session="nowhere")
    with pytest.raises(NotAllTakenError) as refused:
        supervisor.submit_all([Task(request="one"), lost, Task(request="two")])
    assert [task for task, _ in refused.value.errors] == [lost]
    assert [handle.result(PATIENCE).task_id for handle in refused.value.handles] == [
        h.task_id for h in refused.value.handles
    ]
    with pytest.raises(TaskRefusedError, match="nowhere"):
        supervisor.submit(lost)


def test_of_one_that_stands_in_them_twice_both_handles_give_all_events(start, journal):
    supervisor = start(app=lambda _: WRITE, **journal)
    others = [hello() for _ in range(50)]
    first, *_, again = supervisor.submit_all([hello(key="order-17"), *others, hello(key="order-17")])
    assert first.result(PATIENCE).ok
    assert [event.seq for event in again.events()] == [event.seq for event in first.events()]
    assert next(iter(again.events())).name is EventName.TASK_SUBMITTED


def test_one_that_stands_in_them_again_with_its_secrets_gets_them(start, tmp_path):
    journal = {"path": tmp_path / "journal.db", "durability": "process"}
    go_on = threading.Event()

    async def app(_request):
        await asyncio.to_thread(go_on.wait, HELD)
        return WRITE

    supervisor = start(app=FunctionModel(app), journal=journal)
    handles = supervisor.submit_all([hello(key="order-17"), hello(key="order-17", secrets={"PIN": "1234-5678"})])
    assert handles[0].task_id == handles[1].task_id
    assert supervisor._assembly.secrets.names(handles[0].task_id) == ("PIN",)
    go_on.set()
    assert handles[0].result(PATIENCE).ok


def test_unanswered_batch_is_waited_for_once(start):
    supervisor, let_go = start(app=lambda _: WRITE), threading.Event()

    class Hanging:
        def handle(self, _message, _reply_to):
            let_go.wait(HELD)

    supervisor._assembly.client.seconds = 0.5
    supervisor._assembly.schedulers.root.put(Hanging(), None)
    try:
        with pytest.raises(NotAllTakenError, match="0 of 500 tasks were accepted") as refused:
            supervisor.submit_all([hello() for _ in range(500)])  # not half a second each
    finally:
        let_go.set()
    assert {type(error) for _, error in refused.value.errors} == {SupervisorStoppedError}


def test_the_targets_are_listed_once(start):
    class Counted(MemoryServer):
        looks = 0

        def targets(self):
            type(self).looks += 1
            return super().targets()

    windows = [MemoryServer.window(name) for name in ("one", "two", "three")]
    supervisor = start(app=lambda _: WRITE, servers=[Counted(*windows)])
    tasks = [Task(request="write hello", target=window.id) for window in windows]
    assert all(handle.result(PATIENCE).ok for handle in supervisor.submit_all(tasks))
    assert Counted.looks == 1


def test_a_supervisor_that_is_stopped_takes_none(start):
    supervisor = start(app=lambda _: WRITE)
    supervisor.stop()
    with pytest.raises(SupervisorStoppedError):
        supervisor.submit_all([hello(), hello()])


def test_with_a_journal_all_are_there_for_the_next_process(start, tmp_path):
    journal = {"journal": {"path": tmp_path / "journal.db", "durability": "process"}}
    first = start(app=lambda _: WRITE, servers=[MemoryServer(MemoryServer.window())], **journal)
    tasks = [hello() for _ in range(20)]
    first.submit_all(tasks)
    first.stop()
    second = start(app=lambda _: WRITE, servers=[MemoryServer(MemoryServer.window())], **journal)
    assert all(second.handle(task.id).result(PATIENCE).ok for task in tasks)
