"""A replay knows the settings under which its task ran: each process writes those that decide how work goes on."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from pydantic import SecretStr

from callboard import EventName, Outcome, Settings, Task
from callboard.actors.replay import RecordedTask, replay, replay_journal
from callboard.config import in_force, settings_in_force
from callboard.journal import JournalReader
from callboard.messages import InForce, Secret, SettingsError
from callboard.testing import assert_replays
from support import FINISH, PATIENCE, append, command_line, lone, write

ASK = {"Status": "PENDING", "Questions": [{"text": "which one?"}]}
DENY = [{"verdict": "deny", "tool": "append", "reason": "not now"}]
SECRET = "swordfish-4711"


def again(record, **given):
    return replay_journal(record.path, "t", Settings.load(**given) if given else None)


def forget_settings(record):
    """Make the journal one of a version that wrote no settings down."""
    with closing(sqlite3.connect(record.path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM rows WHERE kind = 'in_force'")


def in_two_lives(record, first, second, model):
    """Run a task that asks in the middle, and is answered by a second process with other settings."""
    with record.begin(app=model, **first) as supervisor:
        handle = supervisor.submit(lone(id="t"))
        next(event for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    with record.begin(app=model, **second) as supervisor:
        handle = supervisor.handle("t")
        (question,) = handle.questions()
        handle.answer(question.id, "the first")
        return handle.result(PATIENCE)


def test_the_policy_is_the_one_that_held(record):
    record.run(lone(id="t"), app=[append("1"), FINISH], policy=DENY)
    assert again(record).same
    assert again(record, policy=[]).difference.what == "the policy's verdict on append"


def test_the_limits_are_those_that_held(record):
    record.run(lone(id="t"), app=[append("1"), append("2"), append("3")], limits={"steps": 2})
    assert (again(record).same, again(record).outcome) == (True, Outcome.OUT_OF_BUDGET)
    assert again(record, limits={"steps": 1}).difference.what == "a transition"


def test_the_budgets_are_those_that_held(record):
    record.run(lone(id="t"), app=[append("1"), append("2")], budget={"task": {"model_calls": 1}})
    assert (again(record).same, again(record).outcome) == (True, Outcome.OUT_OF_BUDGET)


def test_replay_keeps_the_recorded_setting_for_questions(record):
    record.run(lone(id="t"), app=[ASK, FINISH], system={"ask_question": False})
    assert again(record).same


def test_the_environment_changes_nothing_of_what_was_written_down(record, monkeypatch):
    record.run(lone(id="t"), app=[append("1"), FINISH])
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "1")
    assert again(record).same


def test_a_second_process_decides_by_its_own_policy(record):
    def model(request):
        return {1: append("1"), 2: ASK, 3: append("2")}.get(request.call, FINISH)

    result = in_two_lives(record, {"policy": []}, {"policy": DENY}, model)
    assert (result.outcome, [text for _, _, text in record.surface.effects]) == (Outcome.FINISHED, ["1"])
    done = again(record)
    assert done.same, str(done.difference)
    assert done.jobs == 6
    assert not again(record, policy=DENY).same
    assert not again(record, policy=[]).same


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ({"limits": {"steps": 3}}, {"limits": {"steps": 9}}, Outcome.FINISHED),
        ({"limits": {"steps": 9}}, {"limits": {"steps": 4}}, Outcome.OUT_OF_BUDGET),
        ({"budget": {"task": {"model_calls": 3}}}, {"budget": {"task": {"model_calls": 9}}}, Outcome.FINISHED),
        ({"budget": {"task": {"model_calls": 9}}}, {"budget": {"task": {"model_calls": 3}}}, Outcome.OUT_OF_BUDGET),
    ],
    ids=["more steps", "fewer steps", "more calls", "fewer calls"],
)
def test_a_second_process_works_within_its_own_limits(record, first, second, outcome):
    def model(request):
        return {1: append("1"), 2: append("2"), 3: ASK, 6: FINISH}.get(request.call, append(str(request.call)))

    assert in_two_lives(record, first, second, model).outcome is outcome
    done = again(record)
    assert (done.same, done.outcome) == (True, outcome), str(done.difference)


def test_a_follow_up_is_folded_on_what_held_for_the_task_before_it(record):
    assign = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}
    host = [assign, FINISH, FINISH]
    with record.begin(host=host, app=[append("1"), FINISH], limits={"steps": 2}) as supervisor:
        first = supervisor.submit(Task(id="first", request="x"))
        first.result(PATIENCE)
        second = Task(id="t", request="and now this", session="first")
        record.play(supervisor.submit(second))
    assert [life is not None for life in RecordedTask.load(record.path, "t").lives] == [True, True]
    assert again(record).same


def test_an_old_journal_is_replayed_on_the_defaults_as_before(record):
    record.run(lone(id="t"), app=[append("1"), FINISH])
    forget_settings(record)
    assert again(record).same


def test_an_old_journal_may_be_given_what_holds_otherwise(record):
    record.run(lone(id="t"), app=[append("1"), FINISH], policy=DENY)
    forget_settings(record)
    recording = RecordedTask.load(record.path, "t")
    assert recording.lives == (None,)
    assert not replay(recording).same
    assert replay(recording, otherwise=Settings.load(policy=DENY)).same


def test_recorded_settings_beat_those_for_old_journals(record):
    record.run(lone(id="t"), app=[append("1"), FINISH])
    assert replay(RecordedTask.load(record.path, "t"), otherwise=Settings.load(policy=DENY)).same


def test_the_fixture_needs_no_settings(record):
    record.run(lone(id="t"), app=[append("1"), FINISH], policy=DENY)
    (done,) = assert_replays(record.path)
    assert done.same


@pytest.mark.parametrize("old", [False, True], ids=["settings in the journal", "none"])
def test_the_command_takes_the_folders_settings_only_for_an_old_journal(record, tmp_path, monkeypatch, old):
    record.run(lone(id="t"), app=[append("1"), FINISH])
    if old:
        forget_settings(record)
    here = tmp_path / "here"
    here.mkdir()
    (here / "callboard.yaml").write_text("policy: [{verdict: deny, tool: append}]", encoding="utf-8")
    monkeypatch.chdir(here)
    assert command_line("replay", "t", record.path).exit_code == int(old)


def test_no_secret_is_written_down(record):
    record.run(
        lone(id="t"),
        app=[append("1"), FINISH],
        secrets={"door": SECRET},
        providers={"local": {"url": f"http://user:{SECRET}@127.0.0.1:9/v1", "api_key": SECRET}},
        policy=[{"verdict": "deny", "tool": "type", "arguments": {"text": SECRET}, "reason": f"{SECRET} is secret"}],
    )
    (life,) = RecordedTask.load(record.path, "t").lives
    assert set(life.sections) == {"limits", "system", "policy", "budget", "journal"}
    assert life.sections["policy"]["rules"][0]["reason"] == "********** is secret"
    assert SECRET.encode() not in record.path.read_bytes()


def test_settings_come_back_as_they_were():
    given = Settings.load(
        limits={"steps": 7, "at_approval_deadline": "allow"},
        system={"safe_guard": False},
        policy={"rules": [{"verdict": "approve", "hazards": ["deletes"], "effects": ["once"]}], "defaults": False},
        budget={"task": {"cost": 0.5}, "at_limit": "ask"},
        journal={"path": "somewhere.db", "in_doubt": "fail"},
    )
    back = settings_in_force(in_force(given))
    for section in ("limits", "system", "policy", "budget"):
        assert getattr(back, section) == getattr(given, section)
    assert (back.journal.in_doubt, back.journal.path) == ("fail", None)


def test_settings_of_another_version_are_named_and_may_be_replaced(record):
    record.run(lone(id="t"), app=[append("1"), FINISH])
    recording = RecordedTask.load(record.path, "t")
    newer = RecordedTask.of(recording.rows, lives=[InForce(sections={"limits": {"dances": 3}})])
    with pytest.raises(SettingsError, match=r"another version \(dances: .*\): name a settings file to use instead"):
        replay(newer)
    assert replay(newer, Settings.load()).same


def test_each_start_writes_its_settings_before_anything_else(record):
    for task_id, steps in (("a", 3), ("b", 4)):
        record.run(lone(id=task_id), app=[FINISH], limits={"steps": steps})
    with JournalReader.open(record.path) as reader:
        (first,), (second,) = reader.in_force("a"), reader.in_force("b")
        assert reader.in_force("nobody") == ()
    assert [life.sections["limits"]["steps"] for life in (first, second)] == [3, 4]


QUOTING = [
    {"verdict": "deny", "tool": "append"},
    {"verdict": "deny", "tool": "write", "arguments": {"text": SECRET}},
    {"verdict": "deny", "tool": "write", "arguments": {"text": f"re:.*{SECRET}!+"}},
]


@pytest.mark.parametrize(
    ("settings", "task"),
    [({"secrets": {"pw": SECRET}}, {}), ({}, {"secrets": {"pw": Secret(value=SecretStr(SECRET))}}), ({}, {})],
    ids=["of the settings", "of the task", "none"],
)
@pytest.mark.parametrize("texts", [[SECRET, "b"], ["b", f"so {SECRET}!!"], ["b", f"so {SECRET}"], [SECRET, SECRET]])
def test_where_a_rule_quotes_a_secret_the_recorded_verdict_counts(record, settings, task, texts):
    given = lone(id="t").model_copy(update=task)
    record.run(given, app=[*map(write, texts), FINISH], policy=QUOTING, **settings)
    played = again(record)
    assert played.same, played.difference


def test_a_rule_that_is_tried_and_quotes_nothing_is_asked_all_the_same(record):
    task = lone(id="t").model_copy(update={"secrets": {"pw": Secret(value=SecretStr(SECRET))}})
    record.run(task, app=[write(SECRET), FINISH], policy=QUOTING[1:])
    denied = [{"verdict": "deny", "tool": "write", "arguments": {"control_id": "field-1"}}]
    assert again(record, policy=denied).same  # it was denied for a reason that is no longer known
    allowed = [{"verdict": "allow", "tool": "write"}]
    assert again(record, policy=allowed).difference.what == "the policy's verdict on write"
