"""Subtasks that another machine does: their results, requests, cancels, pauses and restarts."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import sqlite3
import threading

import pytest

from callboard import EventName, Outcome, Task
from callboard.fleet import Bucket, EngineAwayError, MemoryEngine
from callboard.fleet._engine import BucketEntry
from callboard.fleet._memory_engine import MemoryDelivery
from callboard.fleet._work_messages import MachineState
from callboard.journal import JournalReader
from callboard.messages import UNATTENDED, Answer, ApprovalAnswer, RequestExpired
from callboard.testing import MemoryServer, assert_replays
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

REMOTE_WINDOW = "finance-3:memo:finance-3"


def worker(request):
    """Append its request to the window once, and answer with it."""
    if request.step == 1:
        return append(request.request)
    return {**FINISH, "Result": f"{request.request} is done"}


def test_task_on_another_machine_is_done_there(fleet):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    there = fleet.machine("finance-3", surface=surface, app=worker)
    here = fleet.machine("desk", app=worker, serves=False)
    result = fleet.submit(here, lone(REMOTE_WINDOW, request="sum")).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "sum is done")
    (subtask,) = result.subtasks
    assert (subtask.machine, subtask.target, subtask.actions) == ("finance-3", "memo:finance-3", 1)
    assert [text for _, _, text in surface.effects] == ["sum"]
    with JournalReader.open(fleet.journal("finance-3")) as reader:
        (line,) = reader.tasks()
        (task, *_) = [row.message for row in reader.rows(line.id) if isinstance(row.message, Task)]
    assert (task.origin.submitter, task.origin.task_request, task.labels) == ("desk", "sum", {"submitter": "desk"})
    there.stop()
    here.stop()
    assert_replays(fleet.journal("finance-3"), line.id)
    assert_replays(fleet.journal("desk"), result.task_id)


def test_host_agent_assigns_to_other_machines_which_see_earlier_results(fleet):
    def host(request):
        if len(request.subtasks) == 2:
            return {**FINISH, "Result": request.subtasks[-1].output}
        names = [target.id for target in request.observation.targets]
        assert REMOTE_WINDOW in names
        text = ("memo:desk", "first") if not request.subtasks else (REMOTE_WINDOW, "second")
        return {"Status": "ASSIGN", "ControlText": text[0], "Current Sub-Task": text[1]}

    def there(request):
        assert [done.output for done in request.subtasks] == ["first is done"]
        return {**FINISH, "Result": f"{request.request} after {request.subtasks[0].output}"}

    fleet.machine("finance-3", app=there)
    here = fleet.machine("desk", host=host, app=worker, serves=False)
    result = here.submit(Task(request="both")).result(PATIENCE)
    assert result.ok, result.causes
    assert result.output == "second after first is done"
    assert [(done.run_id[-2:], done.machine) for done in result.subtasks] == [("~1", ""), ("~2", "finance-3")]


def test_question_there_is_asked_here_and_recorded_on_both_sides(fleet, until):
    def there(request):
        if request.step == 1:
            return ASK
        (note,) = request.observation.notes
        return {**FINISH, "Result": note}

    served = fleet.machine("finance-3", app=there)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    assert (question.address, question.task_id) == ("remote/finance-3/app/memo/finance-3", handle.task_id)
    handle.answer(question.id, "the blue one", by="Ms Kim")
    result = handle.result(PATIENCE)
    assert (result.ok, result.output) == (True, "asked 'which one?', a person answered 'the blue one'")
    assert served.status().questions == ()
    answers = {}
    for name in ("desk", "finance-3"):
        with JournalReader.open(fleet.journal(name)) as reader:
            rows = [row.message for line in reader.tasks() for row in reader.rows(line.id)]
        answers[name] = [(row.by, row.texts) for row in rows if row.kind == "answer"]
    assert answers == {name: [("Ms Kim", ("the blue one",))] for name in ("desk", "finance-3")}


def test_question_there_gets_the_answer_that_nobody_is_asked_here(fleet):
    def there(request):
        return ASK if request.step == 1 else {**FINISH, "Result": request.observation.notes[0]}

    served = fleet.machine("finance-3", app=there)
    here = fleet.machine("desk", serves=False, system={"ask_question": False})
    result = fleet.submit(here, lone(REMOTE_WINDOW)).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, UNATTENDED)
    served.stop()
    here.stop()
    answers = {}
    for name in ("desk", "finance-3"):
        with JournalReader.open(fleet.journal(name)) as reader:
            (line,) = reader.tasks()
            rows = [row.message for row in reader.rows(line.id)]
        answers[name] = [(row.nobody, row.by) for row in rows if row.kind == "answer"]
        assert_replays(fleet.journal(name), line.id)
    assert answers == {"desk": [(True, "")], "finance-3": [(True, "desk")]}


def test_limit_there_ends_the_work_if_nobody_is_asked_here(fleet):
    budget = {"at_limit": "ask", "task": {"steps": 1}}
    fleet.machine("finance-3", app=lambda request: append(f"{request.step}"), budget=budget)
    here = fleet.machine("desk", serves=False, system={"ask_question": False})
    result = fleet.submit(here, lone(REMOTE_WINDOW)).result(PATIENCE)
    assert (result.outcome, result.actions) == (Outcome.OUT_OF_BUDGET, 1)


@pytest.mark.parametrize("is_approved", [True, False])
def test_approval_of_the_other_machine_is_asked_here(fleet, until, is_approved):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    fleet.machine("finance-3", surface=surface, app=worker, policy=[{"verdict": "approve", "tool": "append"}])
    here = fleet.machine("desk", serves=False, policy=[{"verdict": "allow"}])
    handle = fleet.submit(here, lone(REMOTE_WINDOW, request="sum"))
    until(handle, EventName.APPROVAL_REQUESTED)
    (request,) = handle.approvals()
    assert request.target.machine == "finance-3"
    assert [action.arguments["text"] for action in request.actions] == ["sum"]
    if is_approved:
        handle.approve(request.id, by="Ms Kim")
    else:
        handle.reject(request.id, "not today", by="Ms Kim")
    result = handle.result(PATIENCE)
    assert result.outcome is (Outcome.FINISHED if is_approved else Outcome.REJECTED)
    assert [text for _, _, text in surface.effects] == (["sum"] if is_approved else [])
    assert is_approved or "rejected by Ms Kim: not today" in result.causes[0].reason


@pytest.mark.parametrize("asks", ["question", "approval"])
def test_request_is_asked_here_though_its_machine_stopped_before_telling(fleet, until, asks):
    engine = MemoryEngine(fleet.hub, "finance-3")
    policy = [{"verdict": "approve", "tool": "append"}]

    def there(request):
        if request.step > 1 or request.observation.notes:
            return FINISH
        engine.cut()
        return ASK if asks == "question" else append("one")

    served = fleet.machine("finance-3", app=there, policy=policy, engine=engine)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    wait_for(lambda: served.status().questions or served.status().approvals)
    served.stop()
    with contextlib.closing(sqlite3.connect(fleet.journal("finance-3"))) as journal, journal:
        event = "question.asked" if asks == "question" else "approval.requested"
        deleted = journal.execute("DELETE FROM rows WHERE seq IS NOT NULL AND body LIKE ?", [f"%{event}%"])
        assert deleted.rowcount == 1
    fleet.machine("finance-3", app=there, policy=policy)
    until(handle, EventName.QUESTION_ASKED if asks == "question" else EventName.APPROVAL_REQUESTED)
    if asks == "question":
        handle.answer(handle.questions()[0].id, "the blue one")
    else:
        handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok


def test_request_that_is_answered_there_is_withdrawn_here(fleet, until):
    there = fleet.machine("finance-3", app=lambda request: ASK if request.step == 1 else FINISH)
    engine = Overheard(fleet.hub, "desk")
    here = fleet.machine("desk", serves=False, engine=engine)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = there.status().questions
    there.handle(question.task_id).answer(question.id, "the red one", by="Mr Bell")
    assert handle.result(PATIENCE).ok
    assert handle.questions() == ()
    (answer,) = _answers(fleet, handle)
    assert (answer.texts, answer.by) == (("the red one",), "finance-3/Mr Bell")
    assert not any(signals["verdicts"] for signals in engine.signals)


def test_question_of_a_long_task_is_recorded_with_its_answer_there(fleet, until):
    asked_twice = iter((ASK, {**ASK, "Comment": "and how many?"}, FINISH))
    there = fleet.machine("finance-3", app=lambda _: next(asked_twice))
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = there.status().questions
    there.handle(question.task_id).answer(question.id, "the red one")
    (second,) = wait_for(lambda: [ask for ask in handle.questions() if ask.questions[0].text == "and how many?"])
    handle.answer(second.id, "two", by="Ms Reed")
    assert handle.result(PATIENCE).ok
    answers = [(answer.texts, answer.by) for answer in _answers(fleet, handle)]
    assert answers == [(("the red one",), "finance-3"), (("two",), "Ms Reed")]


@pytest.mark.parametrize("approved", [True, False])
def test_approval_that_is_answered_there_is_recorded_here(fleet, until, approved):
    policy = [{"verdict": "approve", "tool": "append"}]
    there = fleet.machine("finance-3", app=worker, policy=policy)
    engine = Overheard(fleet.hub, "desk")
    here = fleet.machine("desk", serves=False, engine=engine)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.APPROVAL_REQUESTED)
    (approval,) = there.status().approvals
    if approved:
        there.handle(approval.task_id).approve(approval.id, by="Mr Bell")
    else:
        there.handle(approval.task_id).reject(approval.id, "not today", by="Mr Bell")
    handle.result(PATIENCE)
    (answer,) = _answers(fleet, handle)
    assert (answer.approved, answer.by) == (approved, "finance-3/Mr Bell")
    assert answer.reason == ("" if approved else "not today")
    assert not any(signals["verdicts"] for signals in engine.signals)


@pytest.mark.parametrize("asks", ["question", "approval"])
def test_request_that_expires_there_is_recorded_here_as_expired(fleet, until, asks):
    policy = [{"verdict": "approve", "tool": "append"}] if asks == "approval" else []
    app = worker if asks == "approval" else (lambda request: ASK)
    limits = {"question_seconds": 0.3, "approval_seconds": 0.3}
    fleet.machine("finance-3", app=app, policy=policy, limits=limits)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED if asks == "question" else EventName.APPROVAL_REQUESTED)
    assert not handle.result(PATIENCE).ok
    (expired,) = _answers(fleet, handle)
    assert (expired.kind, expired.at_deadline) == ("request_expired", "fail" if asks == "question" else "deny")


def test_answer_there_that_does_not_fit_closes_the_request(fleet, until, monkeypatch):
    monkeypatch.setattr(
        "callboard.fleet._settled_requests.SettledRequests.of",
        lambda self, task_id: tuple(
            settled.model_copy(update={"texts": ("one", "too many")}) for settled in self._tasks[task_id].values()
        ),
    )
    there = fleet.machine("finance-3", app=lambda request: ASK if request.step == 1 else FINISH)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = there.status().questions
    there.handle(question.task_id).answer(question.id, "the red one")
    assert handle.result(PATIENCE).ok
    (expired,) = _answers(fleet, handle)
    assert expired.kind == "request_expired"


def _answers(fleet, handle):
    """Read the answers to a task's requests from the submitter's journal."""
    with JournalReader.open(fleet.journal("desk")) as reader:
        kinds = Answer | ApprovalAnswer | RequestExpired
        return [row.message for row in reader.rows(handle.task_id) if isinstance(row.message, kinds)]


class Overheard(MemoryEngine):
    """An engine that keeps all that its machine said to tasks."""

    def __init__(self, hub, name):
        super().__init__(hub, name)
        self.signals = []

    async def put(self, bucket, key, value):
        """Set a key's value, and keep it."""
        if bucket is Bucket.SIGNALS:
            self.signals.append(json.loads(value))
        return await super().put(bucket, key, value)


def test_cancel_stops_the_work_there_and_reports_what_was_done(fleet, until):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    there = fleet.machine("finance-3", surface=surface, app=lambda request: append("one") if request.step == 1 else ASK)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    assert handle.cancel("enough")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.actions, result.causes[0].reason) == (Outcome.CANCELLED, 1, "enough")
    assert wait_for(lambda: there.pending() == ())


def test_cancel_while_the_machine_is_away_begins_nothing_there(fleet):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    first = fleet.machine("finance-3", surface=surface, app=worker)
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone(REMOTE_WINDOW, request="known")).result(PATIENCE).ok
    first.stop()
    handle = here.submit(lone(REMOTE_WINDOW, request="late"))
    assert handle.cancel("too late")
    fleet.machine("finance-3", surface=surface, app=worker)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.actions) == (Outcome.CANCELLED, 0)
    assert [text for _, _, text in surface.effects] == ["known"]


def test_cancelled_work_that_is_delivered_again_is_not_begun(fleet):
    surface, engine = MemoryServer(MemoryServer.window("finance-3")), MemoryEngine(fleet.hub, "finance-3")
    first = fleet.machine("finance-3", surface=surface, app=worker)
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone(REMOTE_WINDOW, request="known")).result(PATIENCE).ok
    first.stop()
    handle = here.submit(lone(REMOTE_WINDOW, request="late"))
    works = wait_for(lambda: tuple(fleet.hub.queues["finance-3"]))
    assert handle.cancel("too late")
    again = fleet.machine("finance-3", surface=surface, app=worker, engine=engine)
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    deliver_again(fleet, engine, works)
    wait_for(lambda: not fleet.hub.queues["finance-3"] and not live_keys(fleet.hub))
    assert [text for _, _, text in surface.effects] == ["known"]
    assert again.status().tasks == ()


def test_submitter_that_restarts_gets_the_result_once(fleet, until):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    fleet.machine("finance-3", surface=surface, app=lambda request: append("one") if request.step == 1 else ASK)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    here.stop()
    again = fleet.machine("desk", serves=False).handle(handle.task_id)
    (question,) = again.questions()
    again.cancel("enough")
    result = again.result(PATIENCE)
    assert (result.outcome, result.actions, result.subtasks[0].machine) == (Outcome.CANCELLED, 1, "finance-3")
    assert [text for _, _, text in surface.effects] == ["one"]
    assert question.address == "remote/finance-3/app/memo/finance-3"


def test_submitter_that_was_away_learns_the_result_later(fleet):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    there = fleet.machine("finance-3", surface=surface, app=worker)
    engine = MemoryEngine(fleet.hub, "desk")
    here = fleet.machine("desk", serves=False, engine=engine)
    assert fleet.submit(here, lone(REMOTE_WINDOW, request="first")).result(PATIENCE).ok
    handle = here.submit(lone(REMOTE_WINDOW, request="second"))
    engine.cut()
    here.stop()
    wait_for(lambda: not there.pending())
    again = fleet.machine("desk", serves=False).handle(handle.task_id)
    assert (again.result(PATIENCE).output, len(surface.effects)) == ("second is done", 2)


def test_machine_that_restarts_goes_on_where_it_was(fleet, until):
    surface = MemoryServer(MemoryServer.window("finance-3"))

    def there(request):
        if request.step == 1:
            return append("one")
        return ASK if request.step == 2 else FINISH

    first = fleet.machine("finance-3", surface=surface, app=there)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    fleet.machine("finance-3", surface=surface, app=there)
    (question,) = handle.questions()
    handle.answer(question.id, "the blue one")
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["one"]


def test_machine_that_restarts_takes_new_work_while_old_work_waits(fleet, until):
    def surface():
        return MemoryServer(MemoryServer.window("finance-3"), MemoryServer.window("other"))

    def there(request):
        return ASK if request.request == "old" else FINISH

    first = fleet.machine("finance-3", surface=surface(), app=there)
    here = fleet.machine("desk", serves=False)
    old = fleet.submit(here, lone(REMOTE_WINDOW, request="old"))
    until(old, EventName.QUESTION_ASKED)
    first.stop()
    (work,) = fleet.hub.queues["finance-3"]
    before = work.deliveries
    fleet.machine("finance-3", surface=surface(), app=there)
    wait_for(lambda: work.deliveries > before)
    assert fleet.submit(here, lone("finance-3:memo:other", request="new")).result(PATIENCE).ok
    assert not old.done()


def test_question_that_was_not_told_before_a_crash_is_told(fleet, until):
    engine = MemoryEngine(fleet.hub, "finance-3")

    def there(request):
        if request.step == 1:
            engine.cut()
            return ASK
        return FINISH

    first = fleet.machine("finance-3", app=there, engine=engine)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    wait_for(lambda: first.status().questions)
    first.stop()
    assert handle.questions() == ()
    fleet.machine("finance-3", app=there)
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    handle.answer(question.id, "the blue one")
    assert handle.result(PATIENCE).ok


def test_work_that_is_delivered_after_its_end_leaves_nothing(fleet):
    engine = MemoryEngine(fleet.hub, "finance-3")
    fleet.machine("finance-3", app=worker, engine=engine)
    here = fleet.machine("desk", serves=False)
    end_and_deliver_again(fleet, here, engine)
    wait_for(lambda: not fleet.hub.queues["finance-3"])
    assert live_keys(fleet.hub) == []


def test_delivery_that_the_server_has_forgotten_does_not_block_others(fleet, monkeypatch):
    engine, unanswered = MemoryEngine(fleet.hub, "finance-3"), threading.Event()
    fleet.machine("finance-3", app=worker, engine=engine)
    here = fleet.machine("desk", serves=False)
    done = MemoryDelivery.done

    async def done_unless_old(delivery):
        if json.loads(delivery.body)["task"]["request"] == "old":
            unanswered.set()
            raise EngineAwayError
        await done(delivery)

    assert fleet.submit(here, lone(REMOTE_WINDOW, request="known")).result(PATIENCE).ok
    monkeypatch.setattr(MemoryDelivery, "done", done_unless_old)
    assert here.submit(lone(REMOTE_WINDOW, request="old")).result(PATIENCE).ok
    for number in range(3):
        assert unanswered.wait(PATIENCE)
        unanswered.clear()
        assert here.submit(lone(REMOTE_WINDOW, request=f"new {number}")).result(PATIENCE).ok


class FullDisk(MemoryEngine):
    """A machine's connection that can't tell its targets at first."""

    failures = 3

    async def put(self, bucket, key, value):
        """Set a key's value."""
        if key == "finance-3.targets" and self.failures:
            self.failures -= 1
            await asyncio.sleep(0.05)  # the next work is waited for by then
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return await super().put(bucket, key, value)


def test_machine_has_all_its_slots_after_errors(fleet, monkeypatch):
    monkeypatch.setattr("callboard.fleet._fleet_link._RETRY_SECONDS", 0.01)
    fleet.machine("finance-3", app=worker, engine=FullDisk(fleet.hub, "finance-3"), fleet={"slots": 1})
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone(REMOTE_WINDOW)).result(PATIENCE).ok


def end_and_deliver_again(fleet, here, engine):
    """Have a task done, and its work delivered once more."""
    assert fleet.submit(here, lone(REMOTE_WINDOW, request="known")).result(PATIENCE).ok
    handle = here.submit(lone(REMOTE_WINDOW, request="sum"))
    works = wait_for(lambda: tuple(fleet.hub.queues["finance-3"]))
    assert handle.result(PATIENCE).ok
    deliver_again(fleet, engine, works)


def deliver_again(fleet, engine, works):
    """Deliver the work of a subtask that is over once more."""
    wait_for(lambda: not fleet.hub.queues["finance-3"] and not live_keys(fleet.hub))
    for work in works:
        work.due = 0.0
        fleet.hub.queues["finance-3"].append(work)
    engine.cut(off=False)  # it looks at its queue again


def live_keys(hub):
    """Return the keys of tasks that a hub keeps."""
    return [
        key for (bucket, key), entry in hub.entries.items() if bucket is not Bucket.MACHINES and entry.value is not None
    ]


def test_task_that_the_other_machine_refuses_fails(fleet):
    fleet.machine("finance-3", app=worker)
    here = fleet.machine("desk", serves=False, checks={"holds": lambda: True})
    checks = ({"program": "holds"},)
    result = fleet.submit(here, lone(REMOTE_WINDOW, checks=checks)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "has a check that runs a program" in result.causes[0].reason


def test_machine_that_restarts_does_nothing_more_for_a_cancelled_task(fleet, until):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    first = fleet.machine(
        "finance-3", surface=surface, app=lambda request: ASK if request.step == 1 else append("late")
    )
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    assert handle.cancel("enough")
    back = fleet.machine("finance-3", surface=surface, app=worker, serves=False)
    (waiting,) = back.status().tasks
    assert "the machine desk was not asked yet" in waiting.lacks
    back.serve()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert surface.effects == []


def test_pause_and_resume_hold_on_the_other_machine(fleet):
    entered, gate = threading.Event(), threading.Event()

    def there(request):
        entered.set()
        gate.wait(PATIENCE)
        return worker(request)

    surface = MemoryServer(MemoryServer.window("finance-3"))
    served = fleet.machine("finance-3", surface=surface, app=there)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW, request="sum"))
    assert entered.wait(PATIENCE)
    assert handle.pause()
    wait_for(lambda: [task for task in served.status().tasks if task.paused])
    gate.set()
    assert surface.effects == []
    assert handle.resume()
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["sum"]


def running(fleet, name):
    """Return the number of tasks of others that a machine says it has."""
    state = fleet.hub.get(Bucket.MACHINES, f"{name}.state")
    return MachineState.model_validate_json(state.value).running


@pytest.mark.parametrize("is_resumed", [True, False])
def test_pause_before_the_machine_begins_holds_back_its_first_model_call(fleet, is_resumed):
    surface, requests = MemoryServer(MemoryServer.window("finance-3")), []

    def there(request):
        requests.append(request.request)
        return worker(request)

    served = fleet.machine("finance-3", surface=surface, app=there)
    here = fleet.machine("desk", serves=False)
    wait_for(lambda: [target for target in here.targets() if target.machine])
    served.stop()
    handle = here.submit(lone(REMOTE_WINDOW, request="sum"))
    wait_for(lambda: fleet.hub.queues["finance-3"])
    handle.pause()
    wait_for(lambda: any(b'"paused":true' in (entry.value or b"") for entry in fleet.hub.entries.values()))
    back = fleet.machine("finance-3", surface=surface, app=there)
    wait_for(lambda: running(fleet, "finance-3"))
    assert (requests, back.status().tasks) == ([], ())
    if is_resumed:
        assert handle.resume()
        assert handle.result(PATIENCE).ok
        assert [text for _, _, text in surface.effects] == ["sum"]
    else:
        assert handle.cancel("no more")
        assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
        assert requests == []
    wait_for(lambda: not fleet.hub.queues["finance-3"] and not live_keys(fleet.hub))


class LateWatch(MemoryEngine):
    """A connection whose watch of signals comes to earlier ones once the last were read."""

    def __init__(self, hub, name):
        super().__init__(hub, name)
        self.is_read, self.is_late = asyncio.Event(), threading.Event()

    async def get(self, bucket, key):
        """Return a key's value."""
        entry = await super().get(bucket, key)
        if bucket is Bucket.SIGNALS:
            self.is_read.set()
        return entry

    async def watch(self, bucket, prefix=""):
        """Yield an earlier value before the first."""
        if bucket is Bucket.SIGNALS:
            await self.is_read.wait()
        async for entry in super().watch(bucket, prefix):
            if bucket is Bucket.SIGNALS and entry is not None and not self.is_late.is_set():
                yield BucketEntry(entry.key, b"{}", entry.revision - 1)
                self.is_late.set()
            yield entry


def test_what_was_said_before_a_pause_does_not_end_it(fleet):
    requests = []
    served = fleet.machine("finance-3", app=worker)
    here = fleet.machine("desk", serves=False)
    wait_for(lambda: [target for target in here.targets() if target.machine])
    served.stop()
    handle = here.submit(lone(REMOTE_WINDOW, request="sum"))
    wait_for(lambda: fleet.hub.queues["finance-3"])
    handle.pause()
    wait_for(lambda: any(b'"paused":true' in (entry.value or b"") for entry in fleet.hub.entries.values()))
    engine = LateWatch(fleet.hub, "finance-3")
    back = fleet.machine("finance-3", app=lambda request: requests.append(request) or worker(request), engine=engine)
    assert engine.is_late.wait(PATIENCE)
    assert handle.cancel("no more")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert (requests, back.status().tasks) == ([], ())


def test_subtask_is_resumed_though_its_submitter_restarted_meanwhile(fleet, until):
    entered, gate = threading.Event(), threading.Event()

    def there(request):
        entered.set()
        gate.wait(PATIENCE)
        return worker(request)

    served = fleet.machine("finance-3", app=there)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    assert entered.wait(PATIENCE)
    handle.pause()
    wait_for(lambda: [task for task in served.status().tasks if task.paused])
    gate.set()
    here.stop()
    again = fleet.machine("desk", serves=False).handle(handle.task_id)
    until(again, EventName.RUN_RECOVERED)
    assert again.resume()
    assert again.result(PATIENCE).ok


def test_task_with_secrets_of_its_own_is_not_sent(fleet):
    fleet.machine("finance-3", app=worker)
    here = fleet.machine("desk", serves=False)
    result = fleet.submit(here, lone(REMOTE_WINDOW, secrets={"pin": "4711-0815"})).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert result.causes[0].reason == "secrets of a task are not sent to another machine, and it has: pin"


def test_machine_without_room_in_its_queue_fails_the_subtask(fleet):
    fleet.hub.most_work = 0
    fleet.machine("finance-3", app=worker)
    here = fleet.machine("desk", serves=False)
    result = fleet.submit(here, lone(REMOTE_WINDOW)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "the queue 'finance-3' has 0 pieces of work, as many as it may" in result.causes[0].reason


def test_large_results_and_requests_travel_as_files(fleet):
    fleet.machine("finance-3", app=lambda _: {**FINISH, "Result": "x" * 300_000})
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW, request="y" * 300_000))
    assert len(handle.result(PATIENCE).output) == 300_000
    wait_for(lambda: not fleet.hub.files)


def test_usage_there_counts_for_the_budget_here(fleet):
    fleet.machine("finance-3", app=lambda request: worker(request) if request.step < 9 else FINISH)
    here = fleet.machine("desk", host=two_subtasks, serves=False)
    wait_for(lambda: here.submit(Task(request="x", budget={"steps": 4})).result(PATIENCE).subtasks)
    result = here.submit(Task(request="x", budget={"steps": 4})).result(PATIENCE)
    assert result.usage.steps <= 4
    assert result.outcome is Outcome.OUT_OF_BUDGET


def two_subtasks(request):
    names = [target.id for target in request.observation.targets]
    if REMOTE_WINDOW not in names or len(request.subtasks) == 2:
        return FINISH
    return {"Status": "ASSIGN", "ControlText": REMOTE_WINDOW, "Current Sub-Task": "work"}


def test_machine_that_is_away_is_told_with_the_work_that_waits(fleet, monkeypatch):
    monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", 0.5)
    monkeypatch.setattr("callboard.fleet._machines.BEAT_SECONDS", 0.2)
    engine = MemoryEngine(fleet.hub, "finance-3")
    fleet.machine("finance-3", app=worker, engine=engine)
    here, told = fleet.machine("desk", serves=False), []
    here.subscribe(lambda event: told.append((event.name, event.data.get("machine"), event.data.get("waiting"))))
    assert fleet.submit(here, lone(REMOTE_WINDOW)).result(PATIENCE).ok
    engine.cut()
    handle = here.submit(lone(REMOTE_WINDOW))
    wait_for(lambda: (EventName.MACHINE_AWAY, "finance-3", [f"{handle.task_id}~1"]) in told)
    engine.cut(off=False)
    assert handle.result(PATIENCE).ok
    wait_for(lambda: (EventName.MACHINE_BACK, "finance-3") in [(name, machine) for name, machine, _ in told])


class CountingEngine(MemoryEngine):
    """An engine that counts how often work was waited for."""

    receptions = 0

    async def receive(self, queue):
        """Wait for the next piece of work."""
        self.receptions += 1
        return await super().receive(queue)


def test_drain_waits_for_begun_work_and_begins_no_more(fleet):
    gate = threading.Event()

    def there(request):
        gate.wait(PATIENCE)
        return worker(request)

    engine = CountingEngine(fleet.hub, "finance-3")
    served = fleet.machine("finance-3", app=there, engine=engine)
    here = fleet.machine("desk", serves=False)
    first = fleet.submit(here, lone(REMOTE_WINDOW, request="first"))
    wait_for(lambda: engine.receptions == 2)  # the next work is waited for
    assert not served.drain(0.2)
    gate.set()
    assert served.drain(PATIENCE)
    assert first.result(PATIENCE).ok
    second = here.submit(lone(REMOTE_WINDOW, request="second"))
    wait_for(lambda: [work for work in fleet.hub.queues["finance-3"] if work.deliveries])
    served.stop()
    with JournalReader.open(fleet.journal("finance-3")) as reader:
        assert [line.request for line in reader.tasks()] == ["first"]
    fleet.machine("finance-3", app=worker)
    assert second.result(PATIENCE).ok


def test_machine_that_drains_gives_paused_work_back_before_its_begin(fleet):
    surface, requests = MemoryServer(MemoryServer.window("finance-3")), []

    def there(request):
        requests.append(request.request)
        return worker(request)

    served = fleet.machine("finance-3", surface=surface, app=there)
    here = fleet.machine("desk", serves=False)
    wait_for(lambda: [target for target in here.targets() if target.machine])
    served.stop()
    handle = here.submit(lone(REMOTE_WINDOW, request="sum"))
    wait_for(lambda: fleet.hub.queues["finance-3"])
    handle.pause()
    wait_for(lambda: any(b'"paused":true' in (entry.value or b"") for entry in fleet.hub.entries.values()))
    back = fleet.machine("finance-3", surface=surface, app=there)
    wait_for(lambda: running(fleet, "finance-3"))
    assert back.drain(PATIENCE)
    back.stop()
    assert (requests, len(fleet.hub.queues["finance-3"])) == ([], 1)
    fleet.machine("finance-3", surface=surface, app=there)
    assert handle.resume()
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["sum"]


def test_order_that_can_not_be_read_ends_its_subtask(fleet):
    served = fleet.machine("finance-3", app=worker)
    here = fleet.machine("desk", serves=False)
    wait_for(lambda: [target for target in here.targets() if target.machine])
    served.stop()
    handle = here.submit(lone(REMOTE_WINDOW))
    (work,) = wait_for(lambda: tuple(fleet.hub.queues["finance-3"]))
    work.body = json.dumps({**json.loads(work.body), "of_a_later_version": 1}).encode()
    fleet.machine("finance-3", app=worker)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert result.causes[0].reason.startswith("the machine finance-3 can't read its order: ")
