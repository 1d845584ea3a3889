"""Approvals and questions of subtasks that work at the same time, in a real terminal."""

from __future__ import annotations

import json
import re
import time

import pytest

from screen import Terminal
from support import PATIENCE

pytest.importorskip("termios")

PROGRAM = """
import asyncio, json, threading, time
from pathlib import Path

from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.terminal import Attendance, TaskSession, play, terminal
from callboard.testing import MemoryServer

case = json.loads(Path("case.json").read_text())
scripts = {name: iter(answers) for name, answers in case["answers"].items()}


async def work(request):
    answer = next(scripts[request.request])
    while "wait" in answer and not Path(answer["wait"]).exists():
        await asyncio.sleep(0.01)
    return {key: value for key, value in answer.items() if key != "wait"}


def pause(supervisor):
    for name in ("pause", "resume"):
        while not Path(name).exists():
            time.sleep(0.01)
        getattr(supervisor.handle("t"), name)()


windows = MemoryServer(*(MemoryServer.window(f"w{number}") for number in range(1, 5)))
settings = Settings.load(log={"stream": "off"}, **case["settings"])
models = {"app": FunctionModel(work), "host": FunctionModel(work)}
console = terminal()
with Supervisor.start(settings, models=models, servers=[windows]) as supervisor:
    supervisor.subscribe(lambda event: Path(f"{event.name}-{event.number}").touch())
    threading.Thread(target=pause, args=(supervisor,), daemon=True).start()
    session = TaskSession(console, case["live"], Attendance(yes=case["yes"]))
    result = play(supervisor, Task(id="t", **case["task"]), session)
for subtask in result.subtasks:
    print(subtask.number, subtask.outcome.value, [cause.reason for cause in subtask.causes])
print("effects", windows.effects)
"""
WRITE = {"Status": "CONTINUE", "Function": "write", "ControlText": "field-1"}
ASK = {"Status": "PENDING", "Questions": ["Which year?"]}
FINISH, FAIL = {"Status": "FINISH"}, {"Status": "FAIL", "Comment": "it is locked"}
FIRST = {**WRITE, "Args": {"text": "one"}}
SECOND = {**WRITE, "Args": {"text": "two"}, "wait": "second"}
PROMPT = "Enter or a reason = no > "


@pytest.fixture
def side_by_side(tmp_path):
    """Run subtasks at the same time, each with its answers; the first is called `a`."""

    def start(*answers, live=True, yes=False, stops=False, settings=None):
        names = "abcd"[: len(answers)]
        scripts = dict(zip(names, answers, strict=True))
        steps = [{"request": name, "target": f"memo:w{number}"} for number, name in enumerate(names, 1)]
        task = {"plan": [{**step, "after": []} for step in steps]}
        if stops:
            subtasks = [{"Current Sub-Task": step["request"], "ControlText": step["target"]} for step in steps]
            scripts["all"] = [{"Status": "ASSIGN", "Sub-Tasks": subtasks, "StopAtFailure": True}, FAIL]
            task = {"request": "all"}
        policy = [{"verdict": "approve", "tool": "write", "reason": "look first"}]
        case = {
            "answers": scripts,
            "live": live,
            "yes": yes,
            "task": task,
            "settings": {"policy": policy, **(settings or {})},
        }
        (tmp_path / "case.json").write_text(json.dumps(case), encoding="utf-8")
        (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
        started.append(Terminal(tmp_path, "program.py"))
        return started[-1]

    started: list[Terminal] = []
    yield start
    for screen in started:
        screen.close()


@pytest.fixture
def wait_for(tmp_path):
    """Wait for an event of a subtask, as `name-number`."""

    def wait(name):
        limit = time.monotonic() + PATIENCE
        while not (tmp_path / name).exists():
            assert time.monotonic() < limit, f"there was no {name}"
            time.sleep(0.01)

    return wait


def words(text):
    """Leave out colours, and join the lines."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).split())


def test_requests_are_asked_one_after_the_other_with_their_subtasks(side_by_side, tmp_path, wait_for):
    screen = side_by_side([FIRST, FINISH], [SECOND, FINISH], [{**FINISH, "wait": "second"}])
    screen.until(PROMPT)
    assert "app/memo/w1 asks for approval: look first subtask 1: a" in words(screen.shown)
    (tmp_path / "second").touch()
    wait_for("approval.requested-2")
    wait_for("subtask.ended-3")  # it works on while the terminal asks
    assert screen.shown.count("asks for approval") == 1
    screen.type("y\n")
    screen.until(PROMPT)
    assert "app/memo/w2 asks for approval: look first subtask 2: b" in words(screen.shown)
    screen.type("not today\n")
    screen.end()
    assert "1 finished []" in screen.shown
    assert "2 rejected ['rejected by the terminal: not today']" in words(screen.shown)
    assert "effects [('memo:w1', 'field-1', 'one')]" in words(screen.shown)


def test_prompt_counts_the_requests_that_are_asked_after_it(side_by_side, tmp_path, wait_for):
    screen = side_by_side([FIRST, FIRST, FINISH], [SECOND, FINISH])
    screen.until(PROMPT)
    (tmp_path / "second").touch()
    wait_for("approval.requested-2")
    screen.type("y\n")
    screen.until("app/memo/w2 asks for approval")
    wait_for("approval.answered-1")
    screen.until(PROMPT)
    screen.type("y\n")
    screen.until(PROMPT)
    screen.type("y\n")
    screen.end()
    assert "2 finished []" in screen.shown


def test_request_of_a_stopped_subtask_is_withdrawn_and_the_next_asked(side_by_side, tmp_path, wait_for):
    failing = [{**FAIL, "wait": "fail"}]
    screen = side_by_side([FIRST, FINISH], failing, stops=True)
    screen.until(PROMPT)
    screen.type("y")  # without an Enter: it answers nothing
    (tmp_path / "fail").touch()
    screen.until("no longer asked")
    screen.end()
    said = words(screen.shown)
    assert "subtask 1, app/memo/w1: no longer asked: subtask 2 ended as failed, which stops its group" in said, said
    assert "effects []" in said


def test_input_without_enter_answers_no_later_request(side_by_side, tmp_path, wait_for):
    expiring = {"approval_seconds": 3}
    screen = side_by_side([FIRST, FINISH], [{**ASK, "wait": "second"}, FINISH], settings={"limits": expiring})
    screen.until(PROMPT)
    (tmp_path / "second").touch()
    wait_for("question.asked-2")
    screen.type("yes")
    screen.until("no answer in time, so it is rejected")
    screen.until("Your answer; Enter: cancel the task > ")
    screen.type("2026\n")
    screen.end()
    assert "2 finished []" in screen.shown
    assert "yes2026" not in screen.shown


def test_deadline_of_a_request_that_was_not_shown_is_told(side_by_side, tmp_path, wait_for):
    screen = side_by_side([ASK, FINISH], [SECOND, FINISH], settings={"limits": {"approval_seconds": 0.2}})
    screen.until("Your answer; Enter: cancel the task > ")
    (tmp_path / "second").touch()
    wait_for("approval.answered-2")
    screen.type("2026\n")
    screen.end()
    assert "subtask 2, app/memo/w2: no answer in time, so it is rejected" in words(screen.shown)
    assert "1 finished []" in screen.shown


def test_ctrl_c_withdraws_all_requests(side_by_side, tmp_path, wait_for):
    screen = side_by_side([FIRST, FINISH], [SECOND, FINISH], [{**FINISH, "wait": "never"}])
    screen.until(PROMPT)
    (tmp_path / "second").touch()
    wait_for("approval.requested-2")
    screen.type("\x03")
    screen.end()
    said = words(screen.shown)
    assert "subtask 1, app/memo/w1: no longer asked: cancelled from the keyboard" in said
    assert [f"{number} cancelled" in said for number in (1, 2, 3)] == [True] * 3
    assert said.count("asks for approval") == 1


def test_answers_during_a_pause_take_effect_after_it(side_by_side, tmp_path, wait_for):
    screen = side_by_side([FIRST, FINISH], [SECOND, FINISH])
    screen.until(PROMPT)
    (tmp_path / "second").touch()
    wait_for("approval.requested-2")
    (tmp_path / "pause").touch()
    wait_for("task.paused-0")
    screen.type("y\n")
    screen.until(PROMPT)
    screen.type("y\n")
    wait_for("approval.answered-2")
    assert not list(tmp_path.glob("command.ended-*"))
    (tmp_path / "resume").touch()
    screen.end()
    assert "1 finished [] 2 finished []" in words(screen.shown)


def test_yes_approves_while_a_question_waits_for_its_answer(side_by_side, tmp_path, wait_for):
    screen = side_by_side([ASK, FINISH], [SECOND, FINISH], yes=True)
    screen.until("Your answer; Enter: cancel the task > ")
    (tmp_path / "second").touch()
    wait_for("subtask.ended-2")
    screen.until("Your answer; Enter: cancel the task > ")
    screen.type("2026\n")
    screen.end()
    assert "1 finished [] 2 finished []" in words(screen.shown)


def test_lines_of_others_wait_while_a_prompt_is_open(side_by_side, tmp_path, wait_for):
    screen = side_by_side([FIRST, FINISH], [{**FINISH, "wait": "second"}], live=False)
    screen.until(PROMPT)
    (tmp_path / "second").touch()
    wait_for("subtask.ended-2")
    screen.type("n\n")
    screen.end()
    said = words(screen.shown)
    assert said.index(PROMPT) < said.index("2 app/memo/w2 working → ending") < said.index("2 app/memo/w2 finished")
