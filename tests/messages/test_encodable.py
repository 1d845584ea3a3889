"""Texts that are no Unicode: written as escapes where they come in, and nothing fails because of them."""

from __future__ import annotations

import pytest

from callboard import EventName, Task, ToolError, tool
from callboard.messages import Control, Effect, Observation, ResultStatus, encodable
from callboard.surfaces import post_note
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, call

HALF, ESCAPED = "\ud800x", "\\ud800x"


class Odd(MemoryServer):
    """A surface and a tool that say half a surrogate pair in one place."""

    def __init__(self, where):
        window = MemoryServer.window()
        super().__init__(window.model_copy(update={"name": HALF}) if where == "target" else window)
        self.where = where

    def observe(self, target):
        seen = super().observe(target)
        odd = Control(id=HALF, name=HALF, kind="field", detail={HALF: [HALF]})
        more = {"text": {"text": HALF}, "window": {"window": {HALF: HALF}}, "control": {"controls": (odd,)}}
        return seen.model_copy(update=more.get(self.where, {}))

    @tool(effect=Effect.ONCE)
    def say(self, target: str) -> dict[str, list[str]]:
        """Say something."""
        if self.where == "error":
            raise ToolError(HALF)
        if self.where == "crash":
            raise ValueError(HALF)
        if self.where == "note":
            post_note(HALF)
        return {HALF: [HALF]} if self.where == "value" else {}


@pytest.mark.parametrize("where", ["error", "crash", "value", "note", "text", "window", "control", "target", "model"])
def test_half_a_surrogate_pair_ends_no_task(start, tmp_path, where, caplog):
    def app(request):
        comment = HALF if where == "model" else ""
        return {**call("say"), "Comment": comment} if request.call == 1 else FINISH

    def host(request):
        return {"Status": "ASSIGN", "ControlText": "memo:one"} if request.call == 1 else FINISH

    given = {"journal": {"path": tmp_path / "journal.db"}, "log": {"file": tmp_path / "events.log"}}
    supervisor = start(app=app, host=host, servers=[Odd(where)], **given)
    handle = supervisor.submit(Task(request="x"))
    result = handle.result(PATIENCE)
    assert result.ok, result.causes
    (ended,) = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    failed = where in {"error", "crash"}
    assert ended["status"] == (ResultStatus.FAILURE if failed else ResultStatus.SUCCESS)
    assert (ESCAPED in ended["error"]) is failed
    supervisor.stop()
    assert "left out" not in caplog.text


def test_unreadable_surface_gives_an_escaped_reason(start):
    class Blind(MemoryServer):
        def observe(self, target):
            raise ToolError(HALF)

    supervisor = start(app=[FINISH], servers=[Blind(MemoryServer.window())])
    result = supervisor.submit(Task(request="x", target="memo:one")).result(PATIENCE)
    assert ESCAPED in str(result.causes)
    assert result.model_dump_json()


def test_encodable_leaves_valid_text_unchanged():
    seen = Observation(text="ä", window={"a": ["b", 1]}, picture=b"\xff")
    assert encodable(seen) is seen
    assert encodable("ä\U0001f600") == "ä\U0001f600"
    odd = encodable(seen.model_copy(update={"text": HALF, "window": {HALF: [HALF, 1]}}))
    assert (odd.text, odd.window, odd.picture) == (ESCAPED, {ESCAPED: [ESCAPED, 1]}, b"\xff")
