"""FAIL and ERROR are told with details for diagnosis: reason, last action, controls, the last picture."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from callboard import EventName, Task
from callboard.testing import Faults, MemoryServer
from support import ASSIGN, HELD, PATIENCE, PNG, command_line, lone, write


class Pictured(MemoryServer):
    """A surface with a picture, which can break."""

    broken = False

    def observe(self, target):
        if self.broken:
            msg = "the cable is cut"
            raise OSError(msg)
        return super().observe(target).model_copy(update={"picture": PNG})


KINDS = {"app": MemoryServer.window, "mobile": MemoryServer.device, "linux": MemoryServer.shell}


def failures(handle):
    return [event for event in handle.events() if event.name is EventName.RUN_FAILED]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["FAIL", "an exception"])
def test_an_agent_that_fails_tells_all_of_it(begin, kind, ending):
    target = KINDS[kind]()
    surface = Pictured(target)

    def answer(request):
        if request.call == 1:
            return write("hello")
        if ending == "an exception":
            surface.broken = True
            msg = "the model fell over"
            raise OSError(msg)
        return {"Status": "FAIL", "Comment": "the field is locked"}

    supervisor = begin(servers=[surface], **{kind: answer})
    handle = supervisor.submit(lone(target.id, id="t"))
    handle.result(PATIENCE)
    (told,) = failures(handle)
    app_error = ending == "an exception" and kind == "app"
    assert (told.agent, told.state) == (target.address, "ERROR" if app_error else "FAIL")
    assert told.data["outcome"] == ("error" if app_error else "failed")
    assert ("the field is locked" if ending == "FAIL" else "the model fell over") in told.data["reason"]
    arguments = {"control_id": "field-1", "text": "hello"}
    assert told.data["action"] == {"tool": "write", "arguments": arguments, "status": "success", "error": ""}
    assert told.data["controls"] == {"field-1": "field-1"}
    supervisor.stop()
    assert Path(told.data["picture"]).read_bytes() == PNG


def test_a_host_agent_that_fails_tells_it_too(start):
    steps = [ASSIGN, {"Status": "FAIL", "Comment": "it can't be done"}]
    handle = start(host=steps, app=[{"Status": "FAIL", "Comment": "the field is locked"}]).submit(Task(request="do it"))
    handle.result(PATIENCE)
    app, host = failures(handle)
    assert (app.agent, app.data["reason"]) == ("app/memo/one", "the field is locked")
    assert (host.agent.partition("/")[0], host.data["reason"]) == ("host", "it can't be done")
    assert (host.data["action"], host.data["picture"]) == ({}, "")


def test_failure_event_has_no_action_when_a_question_is_cancelled(start):
    handle = start(app=[{"Status": "PENDING", "Questions": ["which?"]}]).submit(lone())
    next(event for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    handle.cancel("enough")
    handle.result(PATIENCE)
    (told,) = failures(handle)
    assert (told.data["outcome"], told.data["reason"], told.data["action"]) == ("cancelled", "enough", {})


def test_many_controls_are_cut(start):
    surface = MemoryServer(MemoryServer.window(), controls={f"field-{number}": "" for number in range(60)})
    handle = start(servers=[surface], app=[{"Status": "FAIL"}]).submit(lone())
    handle.result(PATIENCE)
    assert len(failures(handle)[0].data["controls"]) == 50


def test_failure_event_has_action_and_view_of_a_first_step_that_is_stopped(begin):
    acting, go = threading.Event(), threading.Event()
    surface = Pictured(MemoryServer.window())
    with Faults() as faults:
        faults.before("effect", lambda: (acting.set(), go.wait(HELD)))
        handle = begin(servers=[surface], app=[write("hello")]).submit(lone())
        assert acting.wait(PATIENCE)
        handle.cancel("enough")
        go.set()
        handle.result(PATIENCE)
    (told,) = failures(handle)
    assert (told.data["action"]["tool"], told.data["action"]["arguments"]["text"]) == ("write", "hello")
    assert told.data["controls"] == {"field-1": "field-1"}
    assert told.data["picture"].endswith(".png")


def test_a_failed_steps_picture_is_no_part_of_the_history_for_machines(begin, tmp_path):
    def app(_request):
        msg = "the model fell over"
        raise OSError(msg)

    supervisor = begin(servers=[Pictured(MemoryServer.window())], app=app)
    supervisor.submit(lone(id="t")).result(PATIENCE)
    supervisor.stop()
    told = command_line("show", "t", tmp_path / "journal.db", "--json").stdout
    (failed,) = [entry["message"] for entry in json.loads(told)["history"] if entry["message"]["kind"] == "step_failed"]
    assert failed["seen"]["controls"]
    assert failed["seen"]["picture"] is None
