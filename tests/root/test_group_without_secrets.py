"""A group whose member fails while its task lacks a secret: the others are stopped once the task goes on."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import SecretStr

from callboard import FunctionModel, Outcome, Task
from callboard.messages import Secret
from callboard.testing import Faults, MemoryServer, assert_replays, disk_full
from support import PATIENCE, append

WINDOWS = ("fails", "works")
GROUP = {
    "Status": "ASSIGN",
    "Sub-Tasks": [{"Current Sub-Task": name, "ControlText": f"memo:{name}"} for name in WINDOWS],
    "StopAtFailure": True,
}


def test_failure_that_an_earlier_process_left_stops_the_others(begin, tmp_path):
    lives, may_act = [], asyncio.Event()

    async def work(request):
        if request.request == "fails":
            await lives[-1].wait()
            return {"Status": "FAIL"}
        lives[-1].set()
        await may_act.wait()
        return append("too late", "FINISH")

    surface = MemoryServer(*map(MemoryServer.window, WINDOWS))
    models = {
        "host": FunctionModel(lambda request: {"Status": "FAIL"} if request.subtasks else GROUP),
        "app": FunctionModel(work),
        "servers": [surface],
    }
    task = Task(id="t", request="all", secrets={"p": Secret(value=SecretStr("a long secret"))})
    lives.append(asyncio.Event())
    with Faults() as faults:  # the agent's ending is stored, and not that of the root
        faults.after("subtask_failed", disk_full)
        supervisor = begin(**models)
        handle = supervisor.submit(task)
        with pytest.raises(OSError, match="No space left"):
            handle.result(PATIENCE)
        supervisor.stop()
    lives.append(asyncio.Event())
    supervisor = begin(**models)
    assert supervisor.status().tasks[0].lacks
    result = supervisor.submit(task).result(PATIENCE)  # gives the secret again
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.FAILED, Outcome.CANCELLED]
    assert result.subtasks[1].causes[0].reason == "subtask 1 ended as failed, which stops its group"
    assert surface.effects == []
    supervisor.stop()
    assert_replays(tmp_path / "journal.db")
