"""The shared entries that members of a group see: those of members that they come after, in the order of numbers."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest

from callboard import EventName, FunctionModel, Task, tool
from callboard.messages import Effect
from callboard.surfaces import post_note
from callboard.testing import MemoryServer, assert_replays
from support import FINISH, PATIENCE

WINDOWS = ("first", "second", "third", "last")


class Minutes(MemoryServer):
    """A surface whose tool writes a note for all agents."""

    @tool(effect=Effect.IDEMPOTENT)
    def minute(self, target: str, text: str) -> str:
        """Write a note."""
        post_note(text)
        return "posted"


def minute(text):
    return {"Status": "FINISH", "Function": "minute", "Args": {"text": text}}


def member(name, *after):
    return {"Current Sub-Task": name, "ControlText": f"memo:{name}", "After": [*after], "AfterAny": []}


@pytest.fixture
def seen_by(start, tmp_path, until):
    """Run a group: two members write notes, one asks, and one comes after; return what each saw, by its name."""

    def run(*, earlier):
        seen, done = defaultdict(list), defaultdict(asyncio.Event)

        async def work(request):
            name = request.request
            seen[name].append([entry.text for entry in request.observation.shared])
            if name == "third" and request.call == 1:
                return {"Status": "PENDING", "Comment": "which one?"}
            if name in {"third", "last"}:
                return FINISH
            if request.call == 1 and name != earlier:
                await done[earlier].wait()  # its note is written by then
            if request.call == 1:
                return {**minute(f"a note of {name}"), "Status": "CONTINUE"}
            done[name].set()
            return FINISH

        group = [member("first"), member("second"), member("third"), member("last", 1, 2)]
        assign = {"Status": "ASSIGN", "Sub-Tasks": group}
        supervisor = start(
            host=FunctionModel(lambda request: FINISH if request.subtasks else assign),
            app=FunctionModel(work),
            servers=[Minutes(*map(MemoryServer.window, WINDOWS))],
            journal={"path": tmp_path / f"{earlier}.db"},
        )
        handle = supervisor.submit(Task(request="all"))
        until(handle, EventName.QUESTION_ASKED)
        handle.answer(handle.questions()[0].id, "the left one")
        assert handle.result(PATIENCE).ok
        supervisor.stop()
        assert_replays(tmp_path / f"{earlier}.db")
        return dict(seen)

    return run


@pytest.mark.parametrize("earlier", ["first", "second"])
def test_notes_of_members_do_not_depend_on_which_was_faster(seen_by, earlier):
    seen = seen_by(earlier=earlier)
    other = "second" if earlier == "first" else "first"
    own_note = [f"a note of {name}" for name in (earlier, other)]
    assert [seen[name] for name in (earlier, other)] == [[[], [own_note[0]]], [[], [own_note[1]]]]
    assert seen["third"] == [[], ["to 'which one?': 'the left one'"]]
    assert seen["last"] == [["a note of first", "a note of second"]]
