"""`callboard.answers` makes answers that agents act on."""

from __future__ import annotations

import pytest

from callboard import FunctionModel, Outcome, Supervisor, Task, answers
from callboard.messages import Action, ControlRef
from callboard.models import AppResponse, HostResponse, read_response
from callboard.testing import MemoryServer

WINDOW = MemoryServer.window("one", root="memo")


def read(answer, schema=AppResponse):
    return read_response(schema, answer)


def run(plan, work, **settings):
    memo = MemoryServer(WINDOW, controls={"title": "", "body": ""})
    models = {"host": FunctionModel(plan), "app": FunctionModel(work)}
    with Supervisor.start(models=models, servers=[memo], **settings) as supervisor:
        return memo, supervisor.submit(Task(request="write the memo")).result(timeout=30)


def plan(request):
    if not request.subtasks:
        return answers.assign("write the title", WINDOW.id, plan=["check it"])
    return answers.finish("the memo has a title", result={"title": request.subtasks[-1].output})


def test_a_task_runs_by_answers_made_with_functions():
    calls = [answers.act("write", control=name, text=f"the {name}") for name in ("title", "body")]
    memo, result = run(plan, lambda request: answers.several(*calls, status="FINISH"))
    assert result.outcome is Outcome.FINISHED, result.causes
    assert result.output == {"title": "the body"}
    assert memo.effects == [(WINDOW.id, "title", "the title"), (WINDOW.id, "body", "the body")]


def test_a_failure_carries_its_comment():
    _, result = run(lambda request: answers.fail("no memo is open"), plan)
    assert result.outcome is Outcome.FAILED
    assert "no memo is open" in str(result.causes)


def test_a_question_has_choices():
    (question,) = read(answers.ask("Which title?", "Sales", "Costs", comment="two fit")).asked()
    assert (question.text, question.choices) == ("Which title?", ("Sales", "Costs"))


def test_an_action_has_all_that_is_given():
    answer = answers.act("write", control="desk", comment="once", thought="it is dark", lit=True)
    response = read(answer)
    assert response.decided_actions() == (
        Action(tool="write", arguments={"lit": True}, control=ControlRef(id="desk", name="")),
    )
    assert (response.decided_status(), response.comment, response.thought) == ("CONTINUE", "once", "it is dark")


def test_an_argument_may_have_a_parameters_name():
    answer = answers.act("post", {"comment": "well done", "status": "open"}, to="kim")
    (action,) = read(answer).decided_actions()
    assert action.arguments == {"comment": "well done", "status": "open", "to": "kim"}


def test_an_assignment_names_its_target_and_plan():
    response = read(answers.assign("sum it up", "prices.xlsx", plan=["send it"]), HostResponse)
    assert (response.subtask, response.label, response.plan) == ("sum it up", "prices.xlsx", ["send it"])


@pytest.mark.parametrize("value", [0, False, "", [], {"rows": 2}])
def test_every_result_but_none_is_returned(value):
    assert read(answers.finish(result=value)).result == value


def test_without_a_result_the_last_actions_value_is_it():
    assert "Result" not in answers.finish("done")


@pytest.mark.parametrize(
    ("make", "error", "about"),
    [
        (lambda: answers.act(" "), ValueError, "name of a tool"),
        (lambda: answers.act("post", {"to": "kim"}, to="lee"), TypeError, "'post'.* got to twice"),
        (
            lambda: answers.act("post", "kim"),
            TypeError,
            "'post'.*: pass arguments by name, or as a mapping, not as str",
        ),
        (answers.several, ValueError, "calls that act"),
        (lambda: answers.several(answers.finish("x")), ValueError, "calls that act"),
        (lambda: answers.assign("", "prices.xlsx"), ValueError, "a subtask and a target"),
        (lambda: answers.assign("sum it up", " "), ValueError, "a subtask and a target"),
        (lambda: answers.ask(""), ValueError, "needs a question"),
    ],
)
def test_empty_answer_is_refused(make, error, about):
    with pytest.raises(error, match=about):
        make()
