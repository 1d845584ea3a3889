"""Approvals and questions in a real terminal: the output, the input, and how the task ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from callboard.messages import Outcome, TaskResult
from screen import Terminal

ASK_FIRST = [{"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}]
CREATE = {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": "new.xlsx"}}
AGAIN = {"Status": "CONTINUE", "Thought": "once more", "Function": "open_document", "Args": {"path": "new.xlsx"}}
FINISH = {"Status": "FINISH", "Comment": "All done."}
WHICH = {"Status": "PENDING", "Questions": [{"text": "Which year?", "choices": ["last", "this"]}, "And why?"]}


@pytest.fixture
def terminal(tmp_path):
    def start(*answers: dict[str, Any], policy=ASK_FIRST, arguments=(), agents=(), **settings: Any) -> Terminal:
        job = tmp_path / "job"
        (job / "workspace").mkdir(parents=True)
        sections = {
            "models": dict.fromkeys(("host", "app"), "scripted:script.yaml"),
            "documents": {"workspace": "workspace"},
        }
        files = {
            "callboard.yaml": {**sections, "policy": policy, **settings},
            "task.yaml": {"request": "do it"},
            "script.yaml": {"host": list(answers), **dict(agents)},
        }
        for name, content in files.items():
            (job / name).write_text(yaml.safe_dump(content), encoding="utf-8")
        started.append(Terminal(tmp_path, "-m", "callboard", "run", "job", *arguments))
        return started[-1]

    started: list[Terminal] = []
    yield start
    for screen in started:
        screen.close()


def made(tmp_path: Path) -> bool:
    return (tmp_path / "runs/job-1/workspace/new.xlsx").exists()


def test_yes_runs_exactly_what_was_shown(terminal, tmp_path):
    screen = terminal(CREATE, FINISH)
    screen.until("Enter or a reason = no > ")
    assert "host/job-1 asks for approval: new files need a nod" in screen.shown
    assert 'create_document {"path": "new.xlsx"}' in screen.shown
    assert not made(tmp_path)
    screen.type("y\n")
    assert screen.end() == 0
    assert made(tmp_path)


@pytest.mark.parametrize("typed", ["\n", "n\n", "not today\n", "\x04"])
def test_enter_and_everything_but_yes_is_a_rejection(terminal, tmp_path, typed):
    screen = terminal(CREATE, FINISH)
    screen.until("Enter or a reason = no > ")
    screen.type(typed)
    assert screen.end() == 7
    assert not made(tmp_path)
    assert ("not today" in screen.shown.rpartition("because")[2]) is (typed == "not today\n")


def test_a_question_mark_explains_the_prompt_and_asks_again(terminal, tmp_path):
    screen = terminal(CREATE, FINISH)
    screen.until("Enter or a reason = no > ")
    screen.type("?\n")
    screen.until("any other text rejects it")
    screen.until("Enter or a reason = no > ")
    screen.type("y\n")
    assert screen.end() == 0
    assert made(tmp_path)


def test_ctrl_d_answers_what_is_asked_later_too(terminal):
    change = {"Status": "FINISH", "Function": "add_sheet", "Args": {"title": "x"}}
    assign = {"Status": "ASSIGN", "ControlText": "new.xlsx", "Current Sub-Task": "add a sheet"}
    rules = [{"verdict": "approve", "tool": "add_sheet", "reason": "sheets need a nod"}]
    failed = {"Status": "FAIL", "Comment": "rejected twice"}
    screen = terminal(CREATE, assign, assign, failed, policy=rules, agents={"app/excel/new.xlsx": [change, change]})
    screen.until("Enter or a reason = no > ")
    screen.type("\x04")
    screen.until("Enter or a reason = no > ")
    assert screen.end() == 1
    assert "rejected twice" in screen.shown


def test_a_ctrl_d_that_came_before_the_question_answers_it(terminal, tmp_path):
    rules = [{"verdict": "approve", "tool": tool, "reason": "asked"} for tool in ("create_document", "open_document")]
    screen = terminal(CREATE, AGAIN, FINISH, policy=rules)
    screen.until("Enter or a reason = no > ")
    screen.type("y\n\x04")
    screen.until("Enter or a reason = no > ")
    assert screen.end() == 7
    assert made(tmp_path)


def test_an_approval_shows_its_deadline_and_what_happens_then(terminal):
    screen = terminal(CREATE, FINISH, limits={"approval_seconds": 3600, "at_approval_deadline": "fail"})
    screen.until("Enter or a reason = no > ")
    assert re.search(r"without an answer by \d\d:\d\d:\d\d the work fails", screen.shown)
    screen.type("\n")
    assert screen.end() == 7


def test_yes_approves_but_puts_questions_to_the_person_at_the_terminal(terminal, tmp_path):
    final = {"Status": "FINISH", "Comment": "noted: ${observation.notes.0}"}
    screen = terminal(CREATE, {"Status": "PENDING", "Questions": ["Why?"]}, final, arguments=["--yes"])
    screen.until("all requests for approval are approved (--yes)")
    screen.until("approved (--yes)\x1b")
    screen.until("Your answer; Enter: cancel the task > ")
    screen.type("because\n")
    assert screen.end() == 0
    assert made(tmp_path)
    assert "Run it?" not in screen.shown


def test_enter_at_the_limit_of_a_budget_stops_there(terminal):
    screen = terminal(CREATE, policy=[], budget={"at_limit": "ask", "task": {"steps": 1}})
    screen.until("Enter: stop > ")
    screen.type("\n")
    assert screen.end() == 6


def test_a_remembered_approval_is_not_asked_again(terminal, tmp_path):
    rules = [{"verdict": "approve", "tool": "open_document", "reason": "even a look"}]
    screen = terminal(CREATE, AGAIN, AGAIN, FINISH, policy=rules)
    screen.until("Enter or a reason = no > ")
    screen.type("a\n")
    assert screen.end() == 0
    assert screen.shown.count("asks for approval") == 1


def test_a_question_is_answered_in_parts_and_a_wrong_choice_asked_again(terminal):
    final = {"Status": "FINISH", "Comment": "noted: ${observation.notes.0} / ${observation.notes.1}"}
    screen = terminal(WHICH, final)
    screen.until("Answer 1 of 2")
    assert "Which year? (last / this); And why?" in screen.shown
    screen.type("next\n")
    screen.until("Answer 2 of 2")
    screen.type("because\n")
    screen.until("choose one of: last, this")
    screen.until("Answer 1 of 2")
    screen.type("last\n")
    screen.until("Answer 2 of 2")
    screen.type("because\n")
    assert screen.end() == 0
    said = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.shown).split())
    assert "'Which year?', a person answered 'last'" in said
    assert "'And why?', a person answered 'because'" in said


def test_enter_at_a_question_cancels_the_task(terminal):
    screen = terminal(WHICH)
    screen.until("Answer 1 of 2")
    screen.type("\n")
    assert screen.end() == 4


def test_ctrl_c_at_a_prompt_cancels_the_task(terminal, tmp_path):
    screen = terminal(CREATE, FINISH)
    screen.until("Enter or a reason = no > ")
    screen.type("\x03")
    assert screen.end() == 4
    assert not made(tmp_path)
    assert "cancelled from the keyboard" in screen.shown


def test_a_deadline_ends_the_prompt(terminal, tmp_path):
    screen = terminal(CREATE, FINISH, limits={"approval_seconds": 3})
    screen.until("Enter or a reason = no > ")
    assert screen.end() == 7
    assert "nobody decided on the approval in time" in " ".join(screen.shown.split())
    assert not made(tmp_path)


def test_text_of_an_agent_never_controls_the_terminal(terminal):
    screen = terminal({"Status": "PENDING", "Questions": ["\x1b[2Jgone?\x07"]})
    screen.until("Your answer")
    assert "\x1b[2J" not in screen.shown
    assert "\x07" not in screen.shown
    screen.type("\n")
    assert screen.end() == 4


def test_no_input_rejects_in_a_terminal_too(terminal, tmp_path):
    screen = terminal(CREATE, FINISH, arguments=["--no-input"])
    assert screen.end() == 7
    assert "rejected: no person could be asked, because --no-input was given" in screen.shown


def test_json_asks_no_question(terminal):
    screen = terminal(CREATE, FINISH, arguments=["--json"])
    assert screen.end() == 7
    assert TaskResult.model_validate_json(screen.shown).outcome is Outcome.REJECTED
