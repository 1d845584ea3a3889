"""Budgets: steps, rounds, model calls, tokens and money, reserved before a call, from task to subtask to step."""

from __future__ import annotations

import asyncio
import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import EventName, FunctionModel, Model, ModelAnswer, Outcome, Task
from callboard.actors.runtime import Budgets
from callboard.config import BudgetSettings
from callboard.messages import OutOfBudgetError
from callboard.models import Expected, ScriptedModel
from callboard.testing import MemoryServer, VirtualClock
from support import ASSIGN, FINISH, PATIENCE, append, lone


def work(number, status="CONTINUE"):
    return {"Status": status, "Function": "append", "Args": {"control_id": "field-1", "text": f"{number}"}}


def busy(request):
    """Never be done, and do something else each time."""
    return work(request.call)


class Priced(Model):
    """A model whose calls have a size and a price, and that states their maximum in advance."""

    def __init__(self, tokens=10, cost=0.25, expected=None, answer=busy):
        self.tokens, self.cost, self.expected = tokens, cost, expected or Expected(tokens=tokens, cost=cost)
        self.function = answer
        self.calls = 0

    def estimate(self, request):
        return self.expected

    async def answer(self, request):
        self.calls += 1
        content = self.function(request)
        return ModelAnswer(content=content, input_tokens=self.tokens, output_tokens=0, cost=self.cost)


LIMITS = [("steps", 3), ("model_calls", 3), ("tokens", 30), ("cost", 0.75)]
"""Each lets three calls of a `Priced` model pass."""


@pytest.mark.parametrize("node", ["task", "subtask"])
@pytest.mark.parametrize(("kind", "limit"), LIMITS)
def test_at_a_limit_work_ends_as_out_of_budget_with_no_further_call(start, node, kind, limit):
    model = Priced()
    supervisor = start(app=model, budget={node: {kind: limit}})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert model.calls == 3
    assert kind.replace("_", " ") in " ".join(cause.reason for cause in result.causes)
    assert node in " ".join(cause.reason for cause in result.causes)


@pytest.mark.parametrize(("kind", "limit"), LIMITS)
def test_usage_exactly_at_the_limit_is_not_stopped(start, kind, limit):
    model = Priced(answer=lambda request: work(request.call, "FINISH" if request.call == 3 else "CONTINUE"))
    assert start(app=model, budget={"task": {kind: limit}}).submit(lone()).result(PATIENCE).ok


@pytest.mark.parametrize(("kind", "limit"), [("model_calls", 2), ("tokens", 20), ("cost", 0.5)])
def test_a_step_has_a_budget_of_its_own_that_its_repairs_use_up(start, kind, limit):
    model = Priced(answer=lambda _request: {"Status": "NONSENSE"})
    supervisor = start(app=model, budget={"step": {kind: limit}}, limits={"repairs": 10})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert model.calls == 2
    assert result.usage.model_calls == 2


def test_the_next_step_has_its_own_budget_again(start):
    supervisor = start(app=[work(1), work(2), FINISH], budget={"step": {"model_calls": 1}})
    assert supervisor.submit(lone()).result(PATIENCE).usage.model_calls == 3


def test_a_subtask_out_of_budget_is_reported_and_the_next_has_its_own(start):
    seen = []

    def host(request):
        seen[:] = [done.outcome for done in request.subtasks]
        return [ASSIGN, {**ASSIGN, "Current Sub-Task": "less"}, FINISH][request.call - 1]

    def app(request):
        return busy(request) if request.request == "work" else FINISH

    supervisor = start(host=host, app=app, budget={"subtask": {"model_calls": 3}})
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert seen == [Outcome.OUT_OF_BUDGET, Outcome.FINISHED]


def test_a_task_and_its_subtasks_share_the_tasks_budget(start):
    calls = itertools.count(1)

    def host(request):
        next(calls)
        return [ASSIGN, FINISH][request.call - 1]

    def app(request):
        return work(next(calls), "FINISH" if request.call == 3 else "CONTINUE")

    supervisor = start(host=host, app=app, budget={"task": {"model_calls": 4}})
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert [done.outcome for done in result.subtasks] == [Outcome.FINISHED]
    assert result.usage.model_calls == 4


def test_tasks_do_not_share_their_budgets(start):
    supervisor = start(app=[work(1), FINISH], budget={"task": {"model_calls": 2}})
    assert all(supervisor.submit(lone()).result(PATIENCE).ok for _ in range(3))


def test_rounds_have_a_budget(start):
    supervisor = start(host=[FINISH] * 3, budget={"task": {"rounds": 2}})
    result = supervisor.submit(Task(plan=["one", "two", "three"])).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert result.rounds == 2
    assert "2 rounds" in result.causes[0].reason


def test_a_budget_of_nothing_calls_nothing(start):
    model = Priced()
    for kind in ("steps", "model_calls", "tokens", "cost", "rounds"):
        supervisor = start(host=model, budget={"task": {kind: 0}})
        assert supervisor.submit(Task(request="x")).result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET
    assert model.calls == 0


def test_a_call_that_may_become_too_large_is_not_made(start):
    model = Priced(tokens=10, expected=Expected(tokens=100))
    result = start(app=model, budget={"task": {"tokens": 99}}).submit(lone()).result(PATIENCE)
    assert (result.outcome, model.calls) == (Outcome.OUT_OF_BUDGET, 0)


def test_unused_reservation_is_given_back(start):
    model = Priced(tokens=10, expected=Expected(tokens=60))
    result = start(app=model, budget={"task": {"tokens": 100}}).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert model.calls == 5
    assert result.usage.input_tokens == 50


def test_call_that_used_more_than_expected_is_booked_in_full(start):
    model = Priced(tokens=70, expected=Expected(tokens=10))
    result = start(app=model, budget={"task": {"tokens": 100}}).submit(lone()).result(PATIENCE)
    assert (result.outcome, model.calls) == (Outcome.OUT_OF_BUDGET, 2)


def test_a_model_without_an_estimate_is_stopped_when_tokens_are_used_up(start):
    model = FunctionModel(lambda request: ModelAnswer(content=busy(request), input_tokens=6, output_tokens=4, cost=0.0))
    result = start(app=model, budget={"task": {"tokens": 20}}).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert model.calls == 2


def test_a_model_without_an_estimate_is_stopped_when_money_is_used_up(start):
    model = FunctionModel(lambda request: ModelAnswer(content=busy(request), cost=0.25))
    result = start(app=model, budget={"task": {"cost": 0.5}}).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert model.calls == 2


def test_without_any_money_models_that_cost_nothing_can_be_asked(start):
    model = FunctionModel(lambda _request: ModelAnswer(content=FINISH, cost=0.0))
    assert start(app=model, budget={"task": {"cost": 0}}).submit(lone()).result(PATIENCE).ok


def test_a_script_without_an_answer_costs_nothing(start):
    result = start(app=ScriptedModel({}), budget={"task": {"cost": 1}}).submit(lone()).result(PATIENCE)
    assert (result.outcome, result.usage.cost, result.usage.unpriced_calls) == (Outcome.ERROR, 0, 0)


def test_money_is_counted_without_the_errors_of_binary_fractions(start):
    model = Priced(cost=0.1)
    assert (
        start(app=model, budget={"task": {"cost": 0.3}}).submit(lone()).result(PATIENCE).outcome
        is Outcome.OUT_OF_BUDGET
    )
    assert model.calls == 3


def test_a_call_that_failed_gives_back_what_was_reserved(start):
    fails = iter([True, False])

    def answer(_request):
        if next(fails):
            msg = "the line is down"
            raise ConnectionError(msg)
        return append("a", "FINISH")

    hosts = [ASSIGN, FINISH]

    def host(request):
        return FINISH if request.subtasks else hosts[0]

    model = Priced(tokens=60, answer=answer)
    supervisor = start(app=model, host=host, budget={"task": {"tokens": 100}})
    assert supervisor.submit(lone()).result(PATIENCE).outcome is Outcome.ERROR
    assert supervisor.submit(lone()).result(PATIENCE).ok


def test_result_has_the_work_before_the_limit(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=busy, servers=[surface], budget={"task": {"model_calls": 2}})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert [text for _, _, text in surface.effects] == ["1", "2"]
    assert result.usage.commands == 2


def test_an_approved_action_needs_no_second_step_of_the_budget(start, until):
    supervisor = start(
        app=[work(1, "FINISH")], policy=[{"verdict": "approve", "tool": "*"}], budget={"task": {"steps": 1}}
    )
    handle = supervisor.submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.commands, result.usage.steps) == (Outcome.FINISHED, 1, 1)


def test_a_call_of_unknown_price_uses_all_that_is_left_of_the_money(start):
    model = Priced(cost=None, expected=Expected())
    result = start(app=model, budget={"task": {"cost": 100}}).submit(lone()).result(PATIENCE)
    assert (result.outcome, model.calls) == (Outcome.OUT_OF_BUDGET, 1)
    assert "a call of unknown price counts as all that was left" in result.causes[-1].reason
    assert (result.usage.cost, result.usage.unpriced_calls) == (0, 1)


@pytest.mark.parametrize("budget", [{"task": {"model_calls": 3}}, {"task": {"cost": 1}, "unknown_price": "nothing"}])
def test_an_unknown_price_is_allowed_without_a_money_limit_or_by_a_setting(start, budget):
    model = Priced(
        cost=None, expected=Expected(), answer=lambda r: work(r.call, "FINISH" if r.call == 3 else "CONTINUE")
    )
    assert start(app=model, budget=budget).submit(lone()).result(PATIENCE).ok


# At the limit a person may be asked


def asking(**budget):
    return {"at_limit": "ask", **budget}


def nth_question(handle, number):
    """Wait until the task has asked so many questions, and give the open one."""
    asked = (event for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    next(itertools.islice(asked, number - 1, None))
    (question,) = handle.questions()
    return question


@pytest.mark.parametrize("node", ["task", "subtask"])
@pytest.mark.parametrize(("kind", "limit"), LIMITS)
def test_answer_to_continue_at_a_limit_grants_as_much_again(start, node, kind, limit):
    model = Priced(answer=lambda request: work(request.call, "FINISH" if request.call == 6 else "CONTINUE"))
    handle = start(app=model, budget=asking(**{node: {kind: limit}})).submit(lone())
    question = nth_question(handle, 1)
    assert question.questions[0].choices == ("go on", "stop")
    assert kind.replace("_", " ") in question.questions[0].text
    assert model.calls == 3
    handle.answer(question.id, "go on")
    assert handle.result(PATIENCE).ok
    assert model.calls == 6


def test_step_at_its_limit_continues_with_as_much_again(start):
    answers = [{"Status": "NONSENSE"}, {"Status": "NONSENSE"}, FINISH]
    calls = itertools.count()
    supervisor = start(app=lambda _request: answers[next(calls)], budget=asking(step={"model_calls": 1}))
    handle = supervisor.submit(lone())
    handle.answer(nth_question(handle, 1).id, "go on")
    result = handle.result(PATIENCE)
    assert result.ok
    assert result.usage.model_calls == 3


def test_the_limit_is_asked_about_again_when_it_is_reached_again(start):
    model = Priced()
    handle = start(app=model, budget=asking(task={"model_calls": 2})).submit(lone())
    for number in (1, 2, 3):
        question = nth_question(handle, number)
        assert model.calls == 2 * number
        handle.answer(question.id, "go on")
    handle.answer(nth_question(handle, 4).id, "stop")
    assert handle.result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET
    assert model.calls == 8


def test_answer_to_continue_at_one_limit_grants_no_other_kind(start):
    budget = asking(subtask={"steps": 2}, task={"model_calls": 3})
    model = Priced()
    handle = start(app=model, budget=budget).submit(lone())
    first = nth_question(handle, 1)
    assert "subtask" in first.questions[0].text
    handle.answer(first.id, "go on")
    second = nth_question(handle, 2)
    assert "3 model calls" in second.questions[0].text
    assert model.calls == 3
    handle.cancel()


def test_a_person_is_asked_about_rounds_too_and_the_next_one_begins(start):
    handle = start(host=[FINISH] * 3, budget=asking(task={"rounds": 2})).submit(Task(plan=["one", "two", "three"]))
    question = nth_question(handle, 1)
    assert "2 rounds" in question.questions[0].text
    handle.answer(question.id, "go on")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.rounds) == (Outcome.FINISHED, 3)


@pytest.mark.parametrize(("kind", "rounds"), [("rounds", 4), ("model_calls", 4), ("steps", 4)])
def test_answer_to_continue_in_one_round_holds_in_the_next(start, kind, rounds):
    plan = [f"step {number}" for number in range(rounds)]
    handle = start(host=[FINISH] * rounds, budget=asking(task={kind: 1})).submit(Task(plan=plan))
    texts = []
    for number in range(1, rounds):
        question = nth_question(handle, number)
        texts.append(question.questions[0].text)
        handle.answer(question.id, "go on")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.rounds) == (Outcome.FINISHED, rounds)
    assert [f"its {number} " in text for number, text in enumerate(texts, 1)] == [True] * (rounds - 1)
    assert [event.name for event in handle.events()].count(EventName.QUESTION_ASKED) == rounds - 1


def test_a_round_that_a_person_refused_is_not_counted(start):
    handle = start(host=[FINISH] * 3, budget=asking(task={"rounds": 2})).submit(Task(plan=["one", "two", "three"]))
    handle.answer(nth_question(handle, 1).id, "stop")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.rounds) == (Outcome.OUT_OF_BUDGET, 2)


def test_stop_ends_the_work_as_out_of_budget(start):
    model = Priced()
    handle = start(app=model, budget=asking(task={"steps": 2})).submit(lone())
    handle.answer(nth_question(handle, 1).id, "stop")
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert "stop" in result.causes[0].reason
    assert model.calls == 2


def test_nobodys_answer_ends_the_work_as_out_of_budget(start):
    clock = VirtualClock()
    handle = start(app=busy, clock=clock, budget=asking(task={"steps": 2})).submit(lone())
    nth_question(handle, 1)
    clock.advance(3600)
    assert handle.result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET


def test_budget_asks_no_question_when_questions_are_off(start):
    supervisor = start(app=busy, budget=asking(task={"steps": 2}), system={"ask_question": False})
    assert supervisor.submit(lone()).result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET


def test_a_host_agent_asks_at_its_limit_too(start):
    def host(request):
        return FINISH if request.call == 3 else {"Status": "CONTINUE", "Thought": f"{request.call}"}

    handle = start(host=host, budget=asking(task={"model_calls": 2})).submit(Task(request="x"))
    handle.answer(nth_question(handle, 1).id, "go on")
    assert handle.result(PATIENCE).ok


@pytest.mark.parametrize("kind", ["mobile", "linux"])
def test_agents_without_pending_ask_at_their_limit_too(start, kind):
    surface = MemoryServer(MemoryServer.device("it"), name="memory")
    if kind == "linux":
        surface = MemoryServer(MemoryServer.shell("it"))
    answers = [work(1), work(2), FINISH]
    supervisor = start(**{kind: answers}, servers=[surface], budget=asking(task={"model_calls": 2}))
    handle = supervisor.submit(Task(request="x", target="it"))
    handle.answer(nth_question(handle, 1).id, "go on")
    assert handle.result(PATIENCE).ok


def test_the_calls_of_a_step_that_was_broken_off_to_ask_are_counted(start):
    answers = [{"Status": "NONSENSE"}, FINISH]
    calls = itertools.count()
    supervisor = start(app=lambda _request: answers[next(calls)], budget=asking(task={"model_calls": 1}))
    handle = supervisor.submit(lone())
    handle.answer(nth_question(handle, 1).id, "go on")
    assert handle.result(PATIENCE).usage.model_calls == 2


def test_answer_to_a_models_own_question_grants_no_budget(start):
    seen = []

    def app(request):
        seen.extend(request.observation.notes)
        return {"Status": "PENDING", "Comment": "There is a draft. Go on?"} if request.call == 1 else busy(request)

    supervisor = start(app=app, budget={"task": {"model_calls": 4}})
    handle = supervisor.submit(lone())
    handle.answer(nth_question(handle, 1).id, "go on")
    result = handle.result(PATIENCE)
    assert any("go on" in note for note in seen)
    assert (result.outcome, result.usage.model_calls) == (Outcome.OUT_OF_BUDGET, 4)


def test_task_can_be_cancelled_while_it_asks_at_a_limit(start):
    handle = start(app=busy, budget=asking(task={"steps": 1})).submit(lone())
    nth_question(handle, 1)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


# The tree itself


def test_agents_that_work_side_by_side_can_not_overspend_together():
    budgets = Budgets(BudgetSettings.model_validate({"task": {"tokens": 1000}}))
    begin = threading.Barrier(8)
    passed = []

    def agent(number):
        step = budgets.step("t", f"t~{number}")
        begin.wait(PATIENCE)
        for _ in range(100):
            try:
                step.reserve(tokens=7)
            except OutOfBudgetError:
                return
            passed.append(7)

    threads = [threading.Thread(target=agent, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sum(passed) == 994


def test_a_refused_reservation_reserves_nothing_anywhere():
    settings = {"task": {"model_calls": 5, "tokens": 100}, "subtask": {"tokens": 50}}
    budgets = Budgets(BudgetSettings.model_validate(settings))
    with pytest.raises(OutOfBudgetError, match="subtask t~1"):
        budgets.run("t", "t~1").reserve(model_calls=1, tokens=60)
    budgets.run("t", "t~2").reserve(model_calls=5, tokens=50)


@given(
    limits=st.tuples(*[st.integers(0, 40)] * 3),
    calls=st.lists(st.tuples(st.integers(1, 2), st.integers(0, 15), st.integers(0, 15)), max_size=30),
)
def test_whatever_is_called_no_node_of_the_tree_is_over_its_limit(limits, calls):
    """Each call uses at most the amount reserved for it."""
    nodes = dict(zip(("task", "subtask", "step"), ({"tokens": limit} for limit in limits), strict=True))
    budgets = Budgets(BudgetSettings.model_validate(nodes))
    steps = {1: budgets.step("t", "t~1"), 2: budgets.step("t", "t~2")}
    used = {1: 0, 2: 0}
    for who, expected, really in calls:
        try:
            steps[who].reserve(tokens=expected)
        except OutOfBudgetError:
            continue
        unused = max(0, expected - really)
        steps[who].settle(tokens=-unused)
        used[who] += expected - unused
    assert sum(used.values()) <= limits[0]
    assert all(amount <= min(limits) for amount in used.values())


def test_reservation_of_a_broken_off_call_stays_spent(start):
    clock = VirtualClock()

    async def mobile(_request):
        clock.advance(61)
        return await asyncio.Event().wait()

    def host(request):
        if len(request.subtasks) == 2:
            return {"Status": "FAIL", "Comment": "twice is enough"}
        return {"Status": "ASSIGN", "ControlText": "phone", "Current Sub-Task": f"try {len(request.subtasks)}"}

    supervisor = start(
        host=host,
        mobile=FunctionModel(mobile, expects=lambda _request: Expected(tokens=60)),
        servers=[MemoryServer(MemoryServer.device("phone"))],
        budget={"task": {"tokens": 100}},
        limits={"model_seconds": 60},
        clock=clock,
    )
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert [done.outcome for done in result.subtasks] == [Outcome.FAILED, Outcome.OUT_OF_BUDGET]


def test_an_interrupted_call_of_unknown_price_uses_all_remaining_money(start):
    broken_off, clock = [], VirtualClock()

    async def mobile(_request):
        broken_off.append(1)
        clock.advance(61)
        return await asyncio.Event().wait()

    def host(request):
        tries = len(request.subtasks)
        return ModelAnswer(
            content={"Status": "ASSIGN", "ControlText": "phone", "Current Sub-Task": f"try {tries}"}, cost=0.1
        )

    supervisor = start(
        host=FunctionModel(host, expects=lambda _request: Expected(cost=0.1)),
        mobile=FunctionModel(mobile),
        servers=[MemoryServer(MemoryServer.device("phone"))],
        budget={"task": {"cost": 1.0}},
        limits={"model_seconds": 60},
        clock=clock,
    )
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert (result.outcome, len(broken_off)) == (Outcome.OUT_OF_BUDGET, 1)
    assert (result.usage.cost, result.usage.unpriced_calls) == (0.1, 1)


def test_answer_to_continue_counts_once_for_later_subtasks_of_an_agent(start):
    def host(request):
        return ASSIGN if len(request.subtasks) < 3 else FINISH

    def app(request):
        return work(request.call, "FINISH" if request.step == 3 else "CONTINUE")

    supervisor = start(host=host, app=app, budget=asking(task={"model_calls": 4}))
    handle = supervisor.submit(Task(request="x"))
    for number, at in ((1, 4), (2, 8), (3, 12)):
        question = nth_question(handle, number)
        calls = [event for event in _so_far(handle, question.id) if event.name is EventName.MODEL_ANSWERED]
        assert len(calls) == at
        handle.answer(question.id, "go on")
    assert handle.result(PATIENCE).ok


def _so_far(handle, request_id):
    for event in handle.events():
        yield event
        if event.name is EventName.QUESTION_ASKED and event.data["request"]["id"] == request_id:
            return
