"""Loops: the same again on an unchanged surface is noticed by code; first the model is told, then the work fails."""

from __future__ import annotations

import itertools

import pytest

from callboard import EventName, Outcome, Task, tool
from callboard.messages import Effect
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, lone

READ = {"Status": "CONTINUE", "Function": "read", "Args": {"control_id": "field-1"}}
TOLD = "you did the same"


class Model:
    """A model that says the same for ever, or in turn, and keeps the notes that it was shown."""

    def __init__(self, *answers):
        self.turns = itertools.cycle(answers)
        self.notes = []

    def __call__(self, request):
        self.notes.append(tuple(note for note in request.observation.notes if TOLD in note))
        return next(self.turns)

    @property
    def told(self):
        """In which calls it was told, from 1."""
        return [number for number, notes in enumerate(self.notes, 1) if notes]


class Ticking(MemoryServer):
    """A window that looks different each time."""

    settles = False

    def __init__(self):
        super().__init__(self.window())
        self.ticks = itertools.count()

    def observe(self, target):
        return super().observe(target).model_copy(update={"fingerprint": str(next(self.ticks))})


class Deaf(MemoryServer):
    """A window with a bell that does nothing, and a device and a shell with one."""

    def __init__(self):
        super().__init__(self.window(), self.device("phone"), self.shell("box"))

    @tool(effect=Effect.ONCE, agents=("app", "mobile", "linux"))
    def ring(self, target: str, how: str = "softly") -> str:
        """Ring."""
        self.effects.append((target, "bell", how))
        return "ring"


RING = {"Status": "CONTINUE", "Function": "ring"}


def reasons(result):
    return " ".join(cause.reason for cause in result.causes)


@pytest.mark.parametrize("repeats", [1, 2, 3, 5])
def test_an_action_repeated_on_one_observation_is_reported_and_then_fails(start, repeats):
    model = Model(READ)
    result = start(app=model, limits={"repeats": repeats}).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert model.told == [repeats + 1]
    assert result.usage.steps == repeats + 1
    assert "no progress" in reasons(result)


def test_the_default_is_three(start):
    model = Model(READ)
    assert start(app=model).submit(lone()).result(PATIENCE).usage.steps == 4
    assert model.told == [4]


def test_repeated_step_is_forgiven_when_the_model_then_changes_course(start):
    answers = [READ] * 3 + [FINISH]
    assert start(app=answers).submit(lone()).result(PATIENCE).ok


def test_a_step_without_an_action_is_a_repeat_too(start):
    model = Model({"Status": "CONTINUE", "Thought": "hm"})
    assert start(app=model).submit(lone()).result(PATIENCE).outcome is Outcome.FAILED


def test_other_words_for_the_same_action_change_nothing(start):
    model = Model(*({**READ, "Thought": f"{number}", "Comment": f"try {number}"} for number in range(10)))
    assert start(app=model).submit(lone()).result(PATIENCE).usage.steps == 4


def test_the_same_action_on_a_surface_that_changes_is_no_loop(start):
    append = {"Status": "CONTINUE", "Function": "append", "Args": {"control_id": "field-1", "text": "."}}
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=[*[append] * 10, FINISH], servers=[surface], limits={"repeats": 1})
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert len(surface.effects) == 10


def test_waiting_for_a_surface_that_changes_by_itself_is_no_loop(start):
    supervisor = start(app=[*[READ] * 10, FINISH], servers=[Ticking()], limits={"repeats": 1})
    assert supervisor.submit(lone()).result(PATIENCE).ok


def test_other_arguments_are_another_action(start):
    rings = [{**RING, "Args": {"how": how}} for how in ("softly", "loudly")]
    supervisor = start(app=[*rings, FINISH], servers=[Deaf()], limits={"repeats": 1})
    assert supervisor.submit(lone()).result(PATIENCE).ok


def test_actions_that_take_turns_without_a_change_are_a_loop(start):
    model = Model(*({**RING, "Args": {"how": how}} for how in ("softly", "loudly")))
    result = start(app=model, servers=[Deaf()]).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert result.usage.steps == 7


def test_states_that_take_turns_without_a_change_are_a_loop(start):
    answers = [{"Status": "SCREENSHOT", "ControlReannotate": ["field-1"]}, {"Status": "CONTINUE"}]
    model = Model(*answers)
    result = start(app=model).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "no progress" in reasons(result)
    assert model.told


def test_the_same_question_again_and_again_is_a_loop(start):
    handle = start(app=Model({"Status": "PENDING", "Comment": "which one?"})).submit(lone())
    for event in handle.events():
        if event.name is EventName.QUESTION_ASKED:
            handle.answer(handle.questions()[0].id, "the red one")
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert handle.result(0).usage.steps == 4


def answered(handle):
    """Answer all questions of a task until it is over; give how many there were."""
    asked = 0
    for event in handle.events():
        if event.name is EventName.QUESTION_ASKED:
            asked += 1
            handle.answer(event.data["request"]["id"], "the same")
    return asked


def test_questions_in_other_words_each_time_are_a_loop(start):
    model = Model(*({"Status": "PENDING", "Questions": [f"question {number}?"]} for number in range(50)))
    handle = start(app=model, limits={"repeats": 3}).submit(lone())
    assert answered(handle) == 11
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert model.told == [10, 11, 12]


def test_thinking_in_other_words_each_time_is_a_loop(start):
    model = Model(*({"Status": "CONTINUE", "Comment": f"thought {number}"} for number in range(50)))
    result = start(app=model, limits={"repeats": 3}).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "no progress" in result.causes[0].reason


def test_two_questions_between_two_actions_are_no_loop(start):
    ask = [{"Status": "PENDING", "Questions": [f"question {number}?"]} for number in range(12)]
    do = [
        {"Status": "CONTINUE", "Function": "append", "Args": {"control_id": "field-1", "text": "x"}} for _ in range(6)
    ]
    answers = [answer for pair in zip(ask[::2], ask[1::2], do, strict=True) for answer in pair]
    model = Model(*answers, FINISH)
    handle = start(app=model, limits={"repeats": 2}).submit(lone())
    assert answered(handle) == 12
    assert handle.result(PATIENCE).ok
    assert model.told == []


def test_the_same_approved_action_again_and_again_is_a_loop(start):
    supervisor = start(app=Model(RING), servers=[Deaf()], policy=[{"verdict": "approve", "tool": "ring"}])
    handle = supervisor.submit(lone())
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            handle.approve(handle.approvals()[0].id)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert result.usage.model_calls == 4


@pytest.mark.parametrize(("kind", "target"), [("app", "memo:one"), ("mobile", "phone"), ("linux", "box")])
def test_an_approved_action_is_one_step_not_two(start, until, kind, target):
    surface = Deaf()
    supervisor = start(
        **{kind: [RING, FINISH]},
        servers=[surface],
        policy=[{"verdict": "approve", "tool": "ring"}],
        limits={"repeats": 1},
    )
    handle = supervisor.submit(Task(request="x", target=target))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert len(surface.effects) == 1


@pytest.mark.parametrize(("kind", "target"), [("mobile", "phone"), ("linux", "box")])
def test_loops_of_mobile_and_linux_agents_are_noticed_too(start, kind, target):
    supervisor = start(**{kind: Model(RING)}, servers=[Deaf()])
    result = supervisor.submit(Task(request="x", target=target)).result(PATIENCE)
    assert (result.outcome, result.usage.steps) == (Outcome.FAILED, 4)


def test_a_host_agent_that_goes_round_in_circles_fails(start):
    result = start(host=Model({"Status": "CONTINUE"})).submit(Task(request="x")).result(PATIENCE)
    assert (result.outcome, result.usage.steps) == (Outcome.FAILED, 4)


def assign(request):
    return {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": request}


def test_assigning_one_subtask_after_the_other_is_no_loop(start):
    host = [*map(assign, "abcde"), FINISH]
    supervisor = start(host=host, app=lambda _request: FINISH, limits={"repeats": 1})
    assert supervisor.submit(Task(request="x")).result(PATIENCE).ok


def test_repeated_assignment_of_a_subtask_is_a_loop_even_if_it_succeeds(start):
    told = []

    def host(request):
        told.extend(request.observation.notes)
        return assign("the same")

    supervisor = start(host=host, app=lambda _request: FINISH)
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert any("do something else" in note for note in told)
    assert len(result.subtasks) == 4


def test_a_surface_that_goes_back_and_forth_is_a_loop(start):
    texts = itertools.cycle("ab")
    surface = MemoryServer(MemoryServer.window())

    def app(_request):
        return {"Status": "CONTINUE", "ControlLabel": "field-1", "Function": "write", "Args": {"text": next(texts)}}

    result = start(app=app, servers=[surface]).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "no progress" in result.causes[0].reason


def test_a_surface_without_fingerprints_is_compared_by_what_it_shows(start):
    class Plain(MemoryServer):
        def observe(self, target):
            return super().observe(target).model_copy(update={"fingerprint": ""})

    append = {"Status": "CONTINUE", "ControlLabel": "field-1", "Function": "append", "Args": {"text": "."}}
    supervisor = start(app=[*[append] * 6, FINISH], servers=[Plain(MemoryServer.window())])
    assert supervisor.submit(lone()).result(PATIENCE).ok


def test_the_subtask_fails_alone_and_its_host_agent_hears_why(start):
    seen = []

    def host(request):
        seen.extend(cause.reason for done in request.subtasks for cause in done.causes)
        assign = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}
        return FINISH if request.subtasks else assign

    result = start(host=host, app=Model(READ)).submit(Task(request="x")).result(PATIENCE)
    assert result.ok
    assert result.subtasks[0].outcome is Outcome.FAILED
    assert any("no progress" in reason for reason in seen)


def test_a_loop_is_in_the_events_with_its_count(start):
    handle = start(app=Model(READ)).submit(lone())
    handle.result(PATIENCE)
    noticed = [event.data["count"] for event in handle.events() if event.name is EventName.LOOP_NOTICED]
    assert noticed == [3, 4]


def test_repetition_count_restarts_with_a_new_subtask(start):
    assign = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}

    def app(request):
        return READ if request.step < 3 else FINISH

    supervisor = start(host=[assign, assign, FINISH], app=app)
    assert supervisor.submit(Task(request="x")).result(PATIENCE).ok
