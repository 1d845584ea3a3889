"""A language model's FINISH that omits a part of its request goes back once."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from callboard import EventName, Model, ModelAnswer, Outcome, Task, tool
from callboard.messages import AgentKind, Effect, JournalError
from callboard.testing import Faults, MemoryServer, assert_replays, disk_full
from support import ASSIGN, FINISH, PATIENCE, append, call, lone, write

ASKS = "the request asks for something"
UNNAMED = "these parts of the request are in no successful call"


class Sheet(MemoryServer):
    """A surface with tools that name cells and files, one that reads, and one that fails."""

    EVERY = tuple(AgentKind)

    @tool(effect=Effect.ONCE, agents=EVERY)
    def put(self, values: list[list[str | float]], cell: str = "") -> str:
        """Write cells."""
        self.effects.append(("memo:one", cell, str(values)))
        return "written"

    @tool(effect=Effect.READ, agents=EVERY)
    def look_up(self, value: str | list[str] = "a table") -> str | list[str]:
        """Return a value."""
        return value

    @tool(effect=Effect.ONCE, agents=EVERY)
    def tear(self, text: str) -> str:
        """Break."""
        msg = f"torn: {text}"
        raise RuntimeError(msg)


class Live(Model):
    """A model that is no program; it repeats its last answer."""

    def __init__(self, *answers, **fields):
        self.answers, self.fields, self.asked = answers, fields, 0

    async def answer(self, _request):
        self.asked += 1
        content = self.answers[min(self.asked, len(self.answers)) - 1]
        return ModelAnswer(content=content, **self.fields)


def reasons(handle):
    return [event.data["reason"] for event in handle.events() if event.name is EventName.MODEL_REPAIRED]


def put(value, cell="", *more):
    return call("put", values=[[value, *more]], **({"cell": cell} if cell else {}))


def finish(result):
    return FINISH | {"Result": result}


@pytest.fixture
def asked(begin):
    """Run a request on one window; return the reasons for which answers went back."""

    def run(request, *answers, controls=None, **fields):
        surface = Sheet(Sheet.window(), controls=controls or {"field-1": ""})
        supervisor = begin(servers=[surface], app=Live(*answers, **fields))
        handle = supervisor.submit(lone(request=request))
        assert (handle.result(PATIENCE).outcome, handle.result(0).usage.repairs) == (Outcome.FINISHED, 0)
        went_back = reasons(handle)
        supervisor.stop()
        return went_back

    return run


# Literals


@pytest.mark.parametrize(
    ("request_text", "wrong", "right"),
    [
        ('Write "Paid" into the field', write("Payed"), write("Paid")),
        ("Set the amount to 260", put(250), put(260)),
        ("Change the tax to 5%", put(5.5), put(0.05)),
        ("Set the amount to 2,500", put(100), put(2500.0)),
        ("Save it as May.txt", call("look_up", value="april.txt"), call("look_up", value="/out/MAY.txt")),
        ("Write the sum into cell B9", put(7, "B8"), put(7, "B9")),
        ("Write the sum into cell B3", put(7, "C1"), put(7, "A3", 8)),
    ],
)
def test_finish_without_a_literal_goes_back_until_it_is_there(asked, request_text, wrong, right):
    (reason,) = asked(request_text, wrong, FINISH, right, FINISH)
    assert UNNAMED in reason


@pytest.mark.parametrize(
    ("request_text", "answers"),
    [
        ('Write "Paid" into the field', [write("paid")]),
        ('Write "Paid  on Monday" into the field', [write("paid on “Monday”")]),
        ("Add the sheet 'Total-revenue'", [write("total revenue")]),
        ("Write the following line: Tulip, red, 40", [put("Tulip", "", "red", 40)]),
        ("Set the amount to 1,000", [put("1 000,00 €")]),
        ("Set the amount to 1.5", [put("1,5")]),
        ("Change the discount to 20%", [put("=B2*0.8")]),
        ("Set the number of rooms to 4", [write("four rooms")]),
        ("Write the sum into cell B9", [put(7)]),
        ("Write the sum into cell B9", [put(7, "Sheet1!$B$2:$C$20")]),
        ('Type "42" into the pocket calculator', [write("4"), write("2")]),
        ('Look for "Anna"', [call("look_up", value=["Bob"]), finish("There is no Anna")]),
        ('Replace "Anna"', [call("look_up", value=["Anna", "Bob"]), write("Bob")]),
    ],
)
def test_literal_in_another_form_counts_as_there(asked, request_text, answers):
    assert asked(request_text, *answers, FINISH) == []


def test_literal_that_is_seen_counts_as_there(asked):
    assert asked('Press "Send"', call("look_up"), FINISH, controls={"Send": ""}) == []


def test_arguments_of_a_failed_call_do_not_count(asked):
    (reason,) = asked('Write "Paid"', call("tear", text="Paid"), write("x"), FINISH)
    assert '"Paid"' in reason


def test_model_may_insist_on_a_finish_that_omits_something(asked):
    assert len(asked('Write "Paid" into cell D3', write("x"), FINISH, FINISH)) == 1


def test_omission_goes_back_once_in_all_steps(asked):
    assert len(asked('Write "Paid"', write("x"), FINISH, write("y"), FINISH)) == 1


def test_finish_before_any_action_goes_back_for_that_alone(asked):
    (reason,) = asked('Write "Paid"', FINISH, FINISH)
    assert "nothing was done yet" in reason


@pytest.mark.parametrize("fields", [{"program": True}, {"must_succeed": False}, {"omission": ""}])
def test_model_class_may_say_that_its_finish_omits_nothing(asked, fields):
    assert asked('Write "Paid"', write("x"), FINISH, **fields) == []


def test_script_may_omit_literals(begin):
    handle = begin(servers=[Sheet(Sheet.window())], app=[write("x"), FINISH]).submit(lone(request='Write "Paid"'))
    assert (handle.result(PATIENCE).outcome, reasons(handle)) == (Outcome.FINISHED, [])


@pytest.mark.parametrize("kind", ["mobile", "linux"])
def test_agents_of_devices_and_shells_are_held_to_literals(begin, kind):
    target = {"mobile": Sheet.device, "linux": Sheet.shell}[kind]()
    model = Live(call("look_up"), FINISH)
    handle = begin(servers=[Sheet(target)], **{kind: model}).submit(lone(target.id, request='Write "Paid"'))
    assert (handle.result(PATIENCE).outcome, len(reasons(handle))) == (Outcome.FINISHED, 1)


def test_operator_is_not_held_to_what_only_its_picture_shows(begin):
    surface = Sheet(Sheet.window().model_copy(update={"kinds": ("operator",)}))
    surface.pictures = True
    handle = begin(servers=[surface], operator=Live(call("look_up"), FINISH)).submit(
        lone("operator:memo:one", request='Press "Send"')
    )
    assert (handle.result(PATIENCE).outcome, reasons(handle)) == (Outcome.FINISHED, [])


# Questions


@pytest.mark.parametrize("result", [None, "", "it is done", "The task is completed."])
def test_question_without_an_answer_goes_back(asked, result):
    (reason,) = asked("How many are there?", call("look_up", value=["x" * 300]), finish(result), finish("7"))
    assert ASKS in reason


@pytest.mark.parametrize("result", ["7", 7, 0, False, [], {"number": 7}])
def test_any_value_is_an_answer(asked, result):
    assert asked("How many are there?", call("look_up"), finish(result)) == []


def test_short_value_of_the_last_call_is_an_answer(asked):
    assert asked("How many are there?", call("look_up", value="7"), FINISH) == []


def test_data_that_was_read_is_the_result_of_a_request_to_read(asked):
    assert asked("Read the table", call("look_up", value=["x" * 300]), FINISH) == []
    (reason,) = asked("Read the table", call("look_up", value=["x" * 300]), finish("done"), finish("7"))
    assert ASKS in reason


# HostAgents


@pytest.fixture
def led(begin):
    """Run a task with a HostAgent; its AppAgent's model is a program."""

    def run(request, *answers, app):
        supervisor = begin(servers=[Sheet(Sheet.window())], host=Live(*answers), app=app)
        handle = supervisor.submit(Task(request=request))
        assert handle.result(PATIENCE).outcome is Outcome.FINISHED
        went_back = reasons(handle)
        supervisor.stop()
        return went_back

    return run


def assign(request):
    return ASSIGN | {"Current Sub-Task": request}


def test_host_agent_passes_on_the_literals_of_its_request(led):
    done = append("a", "FINISH")
    assert led('Write "Paid"', assign('Write "Paid" there'), FINISH, app=[done]) == []
    (reason,) = led('Write "Paid"', assign("Write there"), FINISH, assign('Write "Paid"'), FINISH, app=[done, done])
    assert '"Paid"' in reason


def test_output_of_a_subtask_answers_the_question_of_a_host_agent(led):
    reads = [call("look_up"), finish("There are 7")]
    assert led("How many are there?", assign("Count them"), FINISH, app=reads) == []
    (reason,) = led("How many?", assign("Count"), FINISH, finish("7"), app=[call("look_up"), finish("done")])
    assert ASKS in reason


def test_omission_does_not_use_up_the_second_chance_after_a_failed_subtask(led):
    done, fails = append("a", "FINISH"), {"Status": "FAIL"}
    answers = [assign("a"), FINISH, assign("b"), FINISH, assign('Write "Paid"'), FINISH]
    first, second = led('Write "Paid"', *answers, app=[done, fails, done])
    assert (UNNAMED in first, "ended as failed" in second) == (True, True)


# Crashes, journals and recordings


@pytest.mark.parametrize("place", [("answered", 2), ("answered", 3), ("subtask_finished", 1)])
def test_crash_does_not_send_an_omission_back_again(begin, tmp_path, place):
    kind, nth = place
    surface = Sheet(Sheet.window())
    with Faults() as faults:
        faults.before(kind, disk_full, nth=nth)
        supervisor = begin(servers=[surface], app=Live(write("x"), FINISH))
        with pytest.raises(JournalError):
            supervisor.submit(lone(request='Write "Paid"', id="t")).result(PATIENCE)
        supervisor.stop()
    again = begin(servers=[surface], app=Live(FINISH))
    assert again.handle("t").result(PATIENCE).outcome is Outcome.FINISHED
    again.stop()
    assert assert_replays(tmp_path / "journal.db")


def test_task_with_an_omission_replays(asked, begin, tmp_path):
    assert asked('Write "Paid"', write("x"), FINISH, write("y"), FINISH)
    assert assert_replays(tmp_path / "journal.db")


def test_journal_without_omissions_replays_as_it_ran(asked, tmp_path):
    assert asked('Write "Paid"', write("x"), FINISH, omission="") == []
    path = tmp_path / "journal.db"
    with contextlib.closing(sqlite3.connect(path)) as older, older:
        newest = '"omission":"",'
        changed = older.execute("UPDATE rows SET body = replace(body, ?1, '') WHERE instr(body, ?1)", (newest,))
        assert changed.rowcount == 2
    assert assert_replays(path)


@pytest.mark.parametrize("is_old", [False, True])
def test_recording_plays_back_as_it_ran(start, tmp_path, is_old):
    file = tmp_path / "recording.jsonl"
    model = Live(write("x"), FINISH, **({"omission": ""} if is_old else {}))
    task = lone(request='Write "Paid"')
    assert start(servers=[Sheet(Sheet.window())], app=model, models={"record": file}).submit(task).result(PATIENCE).ok
    if is_old:
        older = file.read_text("utf-8").replace('"finds_omissions":true,', "").replace('"omission":"",', "")
        file.write_text(older, encoding="utf-8")
    played = start(servers=[Sheet(Sheet.window())], models={"app": f"recorded:{file}"}).submit(task)
    assert (played.result(PATIENCE).outcome, len(reasons(played))) == (Outcome.FINISHED, 0 if is_old else 1)
