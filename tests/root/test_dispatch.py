"""The dispatch table of the root: one handler for each type of message."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from callboard import Task
from callboard.actors import root
from callboard.actors.root import Root
from callboard.actors.root._dispatch import Dispatch
from callboard.messages import Answer, SubtaskEnding, SubtaskFinished
from support import FINISH, PATIENCE

ROOT_FOLDER = Path(inspect.getfile(root)).parent


class Part:
    """A part that notes its messages."""

    def __init__(self, *message_types):
        self.message_types = message_types
        self.messages = []

    def register(self, dispatch):
        for message_type in self.message_types:
            dispatch.on(message_type, self.take)

    def take(self, message):
        self.messages.append(message)
        return len(self.messages)


def test_dispatch_calls_the_part_that_registered_the_type():
    answers, texts = Part(Answer), Part(str, int)
    dispatch = Dispatch(answers, texts)
    assert (dispatch.handle("x"), dispatch.handle(3)) == (1, 2)
    assert (answers.messages, texts.messages) == ([], ["x", 3])


def test_dispatch_handles_a_subclass_like_its_base():
    part = Part(SubtaskEnding)
    ending = SubtaskFinished.model_construct(task_id="t")
    Dispatch(part).handle(ending)
    assert part.messages == [ending]


def test_dispatch_refuses_two_handlers_of_one_type():
    with pytest.raises(ValueError, match="two parts of the root handle str"):
        Dispatch(Part(str), Part(str))


def test_dispatch_refuses_a_message_without_a_handler():
    with pytest.raises(TypeError, match="the root does not handle float"):
        Dispatch(Part(str)).handle(1.0)


def test_root_handles_each_message_class_of_its_parts(start, monkeypatch):
    """A message class of the root's package that no part registers would fail at its first use."""
    tables = []
    handle = Dispatch.handle
    monkeypatch.setattr(Dispatch, "handle", lambda self, message: (tables.append(self), handle(self, message))[1])
    start(app=[FINISH]).submit(Task(request="x", target="memo:one")).result(PATIENCE)
    registered = {message_type.__name__ for message_type in tables[0]._handlers}
    posted = {
        call.func.id
        for file in ROOT_FOLDER.glob("*.py")
        for post in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(post, ast.Call) and ast.unparse(post.func).endswith("post")
        for call in post.args
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    assert len(posted) >= 10
    assert posted <= registered
    assert Root.__name__ not in registered
