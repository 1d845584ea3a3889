"""Requests of people that no one looks at are told."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from callboard import EventName, Settings, Supervisor, Task
from callboard.testing import MemoryServer
from support import PATIENCE, wait_for

HINT = (
    "waits for approval of write: decide with handle.approvals() and handle.approve(), in a console, or by a rule of "
    "the policy"
)


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("callboard.actors.client._handle._UNSEEN_SECONDS", 0.05)


@pytest.fixture
def supervisor():
    """Give a supervisor whose agent writes, which a person has to approve."""

    def write(request):
        if request.memory:
            return {"Status": "FINISH"}
        return {"Status": "CONTINUE", "Function": "write", "Args": {"control_id": "field-1", "text": "one"}}

    settings = Settings.load(policy={"rules": [{"tool": "write", "verdict": "approve", "reason": "a person looks"}]})
    surface = MemoryServer(MemoryServer.window("one"))
    with Supervisor.start(settings, servers=[surface], models={"app": write}) as supervisor:
        yield supervisor


def asked(handle):
    """Wait until an approval is open, without a look at it."""
    wait_for(lambda: "waits for" in repr(handle))


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_wait_for_an_unseen_approval_warns_once(supervisor, caplog):
    handle = supervisor.submit(Task(id="a", request="Write", target="memo:one"))
    asked(handle)
    assert repr(handle) == f"<TaskHandle a running, 1 step, {HINT}>"
    with pytest.raises(TimeoutError) as error:
        handle.result(0.4)
    assert str(error.value) == f"the task a is not over after 0.4 s; it {HINT}"
    assert told(caplog).count(f"a {HINT}") == 1
    (approval,) = handle.approvals()
    handle.approve(approval.id)
    assert handle.result(PATIENCE).ok
    assert "waits for" not in repr(handle)


async def test_wait_in_a_coroutine_warns_as_well(supervisor, caplog):
    handle = supervisor.submit(Task(id="a", request="Write", target="memo:one"))

    def answer():
        wait_for(lambda: told(caplog))
        handle.approve(handle.approvals()[0].id)

    thread = threading.Thread(target=answer)
    thread.start()
    assert (await handle).ok
    thread.join(PATIENCE)
    assert told(caplog) == [f"a {HINT}"]


@pytest.mark.parametrize("attends", ["lists", "subscribes", "follows"])
def test_program_that_attends_to_requests_is_not_warned(supervisor, caplog, attends):
    handle = supervisor.submit(Task(request="Write", target="memo:one"))
    asked(handle)
    ends = []
    match attends:
        case "lists":
            assert supervisor.status().approvals
        case "subscribes":
            ends.append(supervisor.subscribe(lambda event: None))
        case "follows":
            events = handle.events()
            assert next(event for event in events if event.name is EventName.APPROVAL_REQUESTED)
            ends.append(events.close)
    with pytest.raises(TimeoutError):
        handle.result(0.3)
    assert told(caplog) == []
    for end in ends:
        end()


def test_traces_are_no_reader_of_requests(caplog):
    def write(request):
        return {"Status": "CONTINUE", "Function": "write", "Args": {"control_id": "field-1", "text": "one"}}

    settings = Settings.load(observe={"traces": True}, policy=[{"tool": "write", "verdict": "approve"}])
    surface = MemoryServer(MemoryServer.window("one"))
    with Supervisor.start(settings, servers=[surface], models={"app": write}) as supervisor:
        handle = supervisor.submit(Task(id="a", request="Write", target="memo:one"))
        asked(handle)
        with pytest.raises(TimeoutError):
            handle.result(0.4)
        assert told(caplog)[0] == f"a {HINT}"


CANCELLED_WAIT = """
import asyncio, sys, threading

from callboard import Settings, Supervisor, Task
from callboard.testing import MemoryServer

release = threading.Event()


def app(request):
    release.wait(60)
    return {"Status": "FINISH"}


async def main():
    settings = Settings.load(journal={"path": sys.argv[1]})
    surface = MemoryServer(MemoryServer.window("one"))
    supervisor = Supervisor.start(settings, servers=[surface], models={"app": app})
    handle = supervisor.submit(Task(request="x", target="memo:one"))
    try:
        await asyncio.wait_for(handle, 0.1)
    except TimeoutError:
        print("cancelled")
    await asyncio.to_thread(supervisor.stop)
    release.set()
    await asyncio.sleep(0.1)


asyncio.run(main())
"""


def test_wait_that_was_cancelled_leaves_no_error_behind(tmp_path):
    """The supervisor stops later, and the task may have no result then; a program's end tells of lost errors."""
    command = [sys.executable, "-c", CANCELLED_WAIT, str(tmp_path / "journal.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "cancelled\n"
    assert "never retrieved" not in done.stderr
