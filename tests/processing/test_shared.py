"""DATA_COLLECTION asks the blackboard, also one that crashes meanwhile."""

from __future__ import annotations

import pytest

from callboard.actors.blackboard import Blackboard, ReadShared
from callboard.actors.processing import SharedNotes, _services
from callboard.messages import ToolTimeoutError
from support import FINISH, PATIENCE, lone


def test_a_blackboard_that_crashes_while_it_is_asked_is_asked_again(start, monkeypatch):
    monkeypatch.setattr(_services, "SECONDS", 0.2)
    real, broken = Blackboard.receive, []

    def receive(board, message):
        if isinstance(message, ReadShared) and not broken:
            broken.append(message)
            msg = "the board fell down"
            raise RuntimeError(msg)
        real(board, message)

    monkeypatch.setattr(Blackboard, "receive", receive)
    always_none = property(lambda _: None, lambda *_: None)  # as while it is made again
    monkeypatch.setattr(SharedNotes, "pages", always_none, raising=False)
    assert start(app=[FINISH]).submit(lone(id="t")).result(PATIENCE).ok
    assert len(broken) == 1


async def test_one_that_never_answers_is_an_error(monkeypatch, stage):
    here = stage()
    monkeypatch.setattr(_services, "SECONDS", 0.01)
    shared, asked = SharedNotes(), []
    shared.ask = lambda query, _answer: bool(asked.append(query.task_id))
    with pytest.raises(ToolTimeoutError, match="the blackboard did not answer"):
        await shared.read(here.run())
    assert asked == ["t"] * 3


async def test_where_there_is_none_nothing_is_shared(stage):
    assert await SharedNotes().read(stage().run()) == ()
