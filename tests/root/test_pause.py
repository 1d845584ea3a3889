"""Pause and resume: stop before the next action, go on from there."""

from __future__ import annotations

import asyncio
import threading

import pytest

from callboard import EventName, FunctionModel, Outcome, Task, tool
from callboard.messages import Effect
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, HELD, PATIENCE, action, append, lone


class Held:
    """A model whose calls wait until they are let go."""

    def __init__(self, *answers):
        self.answers = answers
        self.asked, self.let_go = threading.Event(), threading.Event()
        self.calls = 0

    async def __call__(self, request):
        self.calls += 1
        self.asked.set()
        await asyncio.to_thread(self.let_go.wait, HELD)
        return self.answers[request.call - 1]


class Press(MemoryServer):
    """A window with a button that blocks its caller."""

    def __init__(self):
        super().__init__(self.window(), self.window("two"), controls={"field-1": "", "field-2": ""})
        self.begun, self.let_go = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    def press(self, target: str) -> str:
        """Press the button."""
        self.begun.set()
        assert self.let_go.wait(HELD)
        self.effects.append((target, "button", "pressed"))
        return "pressed"


@pytest.fixture
def surface():
    return MemoryServer(MemoryServer.window(), MemoryServer.window("two"))


@pytest.fixture
def press():
    made = Press()
    yield made
    made.let_go.set()


def texts(surface):
    return [text for _, _, text in surface.effects]


def paused_in_its_model_call(supervisor, model, until):
    """Submit a task, pause it while its model thinks, and let it come to rest."""
    handle = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    assert handle.pause()
    model.let_go.set()
    until(handle, EventName.STEP_ENDED)
    return handle


def test_a_model_call_that_runs_is_finished_but_its_action_does_not_run(start, until, surface):
    model = Held(append("a", "FINISH"))
    supervisor = start(app=FunctionModel(model), servers=[surface])
    handle = paused_in_its_model_call(supervisor, model, until)
    assert surface.effects == []
    assert not handle.done()


def test_resume_runs_what_was_held_once_and_does_not_ask_the_model_again(start, until, surface):
    model = Held(append("a", "FINISH"))
    supervisor = start(app=FunctionModel(model), servers=[surface])
    handle = paused_in_its_model_call(supervisor, model, until)
    assert handle.resume()
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert texts(surface) == ["a"]
    assert model.calls == 1


def test_a_pause_within_an_action_list_stops_before_the_next_action(start, until, press):
    answer = {
        "Status": "FINISH",
        "Actions": [
            {"Function": "press"},
            action("append", "field-1", text="a"),
            action("append", "field-1", text="b"),
        ],
    }
    supervisor = start(app=[answer], servers=[press])
    handle = supervisor.submit(lone())
    assert press.begun.wait(PATIENCE)
    assert handle.pause()
    press.let_go.set()
    until(handle, EventName.STEP_ENDED)
    assert texts(press) == ["pressed"]
    handle.resume()
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert texts(press) == ["pressed", "a", "b"]
    assert result.usage.model_calls == 1


def test_resume_looks_again_and_what_is_gone_by_then_is_not_done(start, until, press):
    write = {"Function": "write", "Args": {"control_id": "field-2", "text": "a"}}
    answers = [{"Status": "FINISH", "Actions": [{"Function": "press"}, write]}, {"Status": "FAIL"}]
    notes = []

    def app(request):
        notes.extend(request.observation.notes)
        return answers[request.call - 1]

    supervisor = start(app=app, servers=[press])
    handle = supervisor.submit(lone())
    assert press.begun.wait(PATIENCE)
    handle.pause()
    press.let_go.set()
    until(handle, EventName.STEP_ENDED)
    press.remove("memo:one", "field-2")
    handle.resume()
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert texts(press) == ["pressed"]
    assert any("field-2" in note for note in notes)


def test_pause_and_resume_are_idempotent(start):
    model = Held(FINISH)
    handle = start(host=FunctionModel(model)).submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    assert [handle.pause(), handle.pause()] == [True, False]
    assert [handle.resume(), handle.resume()] == [True, False]
    model.let_go.set()
    assert handle.result(PATIENCE).ok


def test_pause_from_many_threads_is_one_pause(start):
    model = Held(FINISH)
    handle = start(host=FunctionModel(model)).submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    said = []
    threads = [threading.Thread(target=lambda: said.append(handle.pause())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert said.count(True) == 1
    handle.resume()
    model.let_go.set()
    assert handle.result(PATIENCE).ok


def test_a_task_that_is_over_is_neither_paused_nor_resumed(start):
    handle = start(host=[FINISH]).submit(Task(request="x"))
    handle.result(PATIENCE)
    assert handle.pause() is False
    assert handle.resume() is False


def test_a_task_that_is_being_cancelled_is_not_paused(start, press):
    supervisor = start(app=[{"Status": "FINISH", "Function": "press"}], servers=[press])
    handle = supervisor.submit(lone())
    assert press.begun.wait(PATIENCE)
    handle.cancel()
    assert handle.pause() is False
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_status_and_events_tell_of_a_pause(start):
    model = Held(FINISH)
    supervisor = start(host=FunctionModel(model))
    handle = supervisor.submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    handle.pause()
    assert [task.paused for task in supervisor.status().tasks] == [True]
    handle.resume()
    assert [task.paused for task in supervisor.status().tasks] == [False]
    model.let_go.set()
    handle.result(PATIENCE)
    names = [event.name for event in handle.events()]
    assert names.index(EventName.TASK_PAUSED) < names.index(EventName.TASK_RESUMED)


def test_a_pause_of_one_task_leaves_others_alone(start, until, surface):
    model = Held(append("held", "FINISH"))

    async def app(request):
        return append("other", "FINISH") if request.request == "other" else await model(request)

    supervisor = start(app=FunctionModel(app), servers=[surface])
    handle = paused_in_its_model_call(supervisor, model, until)
    assert supervisor.submit(Task(request="other", target="memo:two")).result(PATIENCE).ok
    assert texts(surface) == ["other"]
    assert not handle.done()


def test_a_paused_task_keeps_its_target(start, until, surface):
    model = Held(append("first", "FINISH"))

    async def app(request):
        return append("second", "FINISH") if request.request == "second" else await model(request)

    supervisor = start(app=FunctionModel(app), servers=[surface])
    first = paused_in_its_model_call(supervisor, model, until)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    until(second, EventName.SUBTASK_QUEUED)
    first.resume()
    assert second.result(PATIENCE).ok
    assert texts(surface) == ["first", "second"]


def test_a_task_paused_in_a_queue_gets_its_target_and_waits_for_a_resume(start, until, surface):
    model = Held(append("first", "FINISH"))
    asked = []

    async def app(request):
        if request.request == "first":
            return await model(request)
        asked.append(request.request)
        return append("second", "FINISH")

    supervisor = start(app=FunctionModel(app), servers=[surface])
    first = supervisor.submit(Task(request="first", target="memo:one"))
    assert model.asked.wait(PATIENCE)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    second.pause()
    model.let_go.set()
    assert first.result(PATIENCE).ok
    until(second, EventName.STATE_CHANGED)
    assert asked == []
    second.resume()
    assert second.result(PATIENCE).ok
    assert texts(surface) == ["first", "second"]


def test_a_pause_holds_the_subtask_and_its_host_agent(start, until, surface):
    model = Held(append("a", "FINISH"))
    hosts = [ASSIGN, FINISH]
    supervisor = start(host=hosts, app=FunctionModel(model), servers=[surface])
    handle = supervisor.submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    handle.pause()
    model.let_go.set()
    until(handle, EventName.STEP_ENDED, actions=["append"])
    assert surface.effects == []
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert texts(surface) == ["a"]


def test_an_answer_in_a_pause_is_kept_and_used_after_resume(start, until):
    seen = []

    def app(request):
        seen.extend(request.observation.notes)
        return {"Status": "PENDING", "Comment": "which one?"} if request.call == 1 else FINISH

    supervisor = start(app=app)
    handle = supervisor.submit(lone())
    until(handle, EventName.QUESTION_ASKED)
    handle.pause()
    handle.answer(handle.questions()[0].id, "the red one")
    until(handle, EventName.STATE_CHANGED, source="PENDING", target="CONTINUE")
    assert seen == []
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert any("the red one" in note for note in seen)


def test_an_action_approved_in_a_pause_runs_after_resume_once(start, until, surface):
    supervisor = start(app=[append("a", "CONFIRM"), FINISH], servers=[surface])
    handle = supervisor.submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.pause()
    handle.approve(handle.approvals()[0].id)
    until(handle, EventName.APPROVAL_ANSWERED)
    supervisor.status()
    assert surface.effects == []
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert texts(surface) == ["a"]


def test_a_pause_within_an_approved_list_needs_no_second_approval(start, until, press):
    actions = [{"Function": "press"}, action("append", "field-1", text="a")]
    supervisor = start(
        app=[{"Status": "CONTINUE", "Actions": actions}, FINISH],
        servers=[press],
        policy=[{"verdict": "approve", "tool": "*"}],
    )
    handle = supervisor.submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    assert press.begun.wait(PATIENCE)
    handle.pause()
    press.let_go.set()
    until(handle, EventName.COMMAND_ENDED, tool="press")
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert texts(press) == ["pressed", "a"]
    asked = [event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED]
    assert len(asked) == 1


def test_a_paused_task_can_be_cancelled_and_its_held_action_never_runs(start, until, surface):
    model = Held(append("a", "FINISH"))
    supervisor = start(app=FunctionModel(model), servers=[surface])
    handle = paused_in_its_model_call(supervisor, model, until)
    assert handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert surface.effects == []


def test_a_task_paused_in_its_last_model_call_can_be_cancelled(start, until):
    model = Held(FINISH)
    supervisor = start(app=FunctionModel(model))
    handle = paused_in_its_model_call(supervisor, model, until)
    until(handle, EventName.STATE_CHANGED, target="FINISH")
    assert handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_a_host_agent_paused_in_its_last_model_call_ends_after_a_resume(start, until):
    model = Held(FINISH)
    handle = start(host=FunctionModel(model)).submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    handle.pause()
    model.let_go.set()
    until(handle, EventName.STATE_CHANGED, target="FINISH")
    handle.resume()
    assert handle.result(PATIENCE).ok


def test_a_supervisor_with_a_paused_task_stops(start, until):
    model = Held(append("a", "FINISH"))
    supervisor = start(app=FunctionModel(model))
    handle = paused_in_its_model_call(supervisor, model, until)
    assert supervisor.stop() == ()
    assert handle.result(0).outcome is Outcome.CANCELLED


class Curtain(MemoryServer):
    """A window that can't be seen while its curtain is closed; it tells of each look. Its bell hangs before it."""

    def __init__(self):
        super().__init__(self.window())
        self.looks = threading.Semaphore(0)
        self.open = threading.Semaphore(0)

    @tool(effect=Effect.ONCE)
    def ring(self, target: str) -> str:
        """Ring the bell."""
        self.effects.append((target, "bell", "ring"))
        return "ring"

    def observe(self, target):
        self.looks.release()
        assert self.open.acquire(timeout=PATIENCE)
        return super().observe(target)


def test_pauses_are_no_repeated_steps_and_no_steps_of_the_budget(start):
    """Each time the task is paused while it looks, so that its one action is held again and again."""
    surface = Curtain()
    supervisor = start(
        app=[{"Status": "FINISH", "Function": "ring"}],
        servers=[surface],
        limits={"repeats": 1},
        budget={"task": {"steps": 1}},
    )
    handle = supervisor.submit(lone())
    ended = (event for event in handle.events() if event.name is EventName.STEP_ENDED)
    assert surface.looks.acquire(timeout=PATIENCE)
    for _ in range(5):
        handle.pause()
        surface.open.release()
        assert next(ended).data["results"] == []
        handle.resume()
        assert surface.looks.acquire(timeout=PATIENCE)
    surface.open.release(10)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.model_calls) == (Outcome.FINISHED, 1)
    assert texts(surface) == ["ring"]


def test_a_pause_takes_no_further_step_until_resume(start, until):
    model = Held(append("a", "FINISH"))
    supervisor = start(app=FunctionModel(model))
    for _ in range(20):
        model.asked.clear()
        model.let_go.clear()
        handle = paused_in_its_model_call(supervisor, model, until)
        handle.resume()
        assert handle.result(PATIENCE).usage.steps == 1


def test_pauses_and_resumes_at_any_moment_lose_and_double_nothing(start, surface):
    def app(request):
        number = request.call * 2
        return {
            "Status": "CONTINUE" if request.call < 25 else "FINISH",
            "Actions": [
                action("append", "field-1", text=f"{number - 1}"),
                action("append", "field-1", text=f"{number}"),
            ],
        }

    supervisor = start(app=app, servers=[surface], limits={"steps": 1000})
    handle = supervisor.submit(lone())
    while not handle.done():
        handle.pause()
        handle.resume()
    assert handle.result(0).outcome is Outcome.FINISHED
    assert texts(surface) == [str(number) for number in range(1, 51)]
