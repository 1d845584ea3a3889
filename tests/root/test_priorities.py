"""Priorities of tasks in the queue of one target.

They interrupt nothing.
"""

from __future__ import annotations

import pytest

from callboard import EventName, Task
from support import ASK, ASSIGN, FINISH, PATIENCE, append, lone


def order(supervisor, handles):
    """Answer the first task, and list the requests.

    The order is that in which they got their target.
    """
    first, *queued = handles
    first.answer(first.questions()[0].id, "this one")
    assert all(handle.result(PATIENCE).ok for handle in handles)
    assigned = {handle.task.request: _when(handle) for handle in queued}
    return "".join(sorted(assigned, key=assigned.__getitem__))


def _when(handle):
    return next(event.seq for event in handle.events() if event.name is EventName.SUBTASK_ASSIGNED)


def app(request):
    if request.task_request == "first" and request.call == 1:
        return ASK
    return append("x", "FINISH")


PRIORITIES = {"a": 0, "b": 5, "c": 0, "d": -5, "e": 5}


def test_a_higher_priority_comes_first_and_equals_in_order(start, until):
    supervisor = start(app=app)
    first = supervisor.submit(lone(request="first", priority=-100))
    until(first, EventName.QUESTION_ASKED)
    rest = supervisor.submit_all(lone(request=name, priority=number) for name, number in PRIORITIES.items())
    assert order(supervisor, [first, *rest]) == "beacd"


def test_a_subtask_has_the_priority_of_its_task(start, until):
    supervisor = start(host=[ASSIGN, FINISH], app=app)
    first = supervisor.submit(lone(request="first"))
    until(first, EventName.QUESTION_ASKED)
    rest = [supervisor.submit(Task(request=name, priority=number)) for name, number in (("a", 0), ("b", 1))]
    for handle in rest:
        until(handle, EventName.SUBTASK_QUEUED)
    assert order(supervisor, [first, *rest]) == "ba"


def test_priorities_hold_after_a_restart(begin, until):
    before = begin(app=app)
    first = before.submit(lone(request="first", priority=-1))
    until(first, EventName.QUESTION_ASKED)
    before.submit_all(lone(request=name, priority=number) for name, number in PRIORITIES.items())
    before.stop()
    after = begin(app=app)
    handles = sorted(after.pending(), key=lambda handle: handle.task.request != "first")
    until(handles[0], EventName.QUESTION_ASKED)
    assert order(after, handles) == "beacd"


def test_follow_ups_keep_their_order(start, until):
    seen = []

    def host(request):
        seen.append(request.task_request)
        return ASK if request.task_request == "first" and request.call == 1 else FINISH

    supervisor = start(host=host)
    first = supervisor.submit(Task(request="first"))
    until(first, EventName.QUESTION_ASKED)
    rest = [first.follow_up("low", priority=-5), first.follow_up("high", priority=5)]
    first.answer(first.questions()[0].id, "this one")
    assert all(handle.result(PATIENCE).ok for handle in rest)
    assert list(dict.fromkeys(seen)) == ["first", "low", "high"]


@pytest.mark.parametrize("priority", [101, -101, 1.0, True, "high"])
def test_a_priority_is_a_whole_number_within_bounds(priority):
    with pytest.raises(ValueError, match="priority"):
        Task(request="x", priority=priority)
