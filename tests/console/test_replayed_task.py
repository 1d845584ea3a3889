"""The replay of a task in the console, and the way to its first difference."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
from playwright.sync_api import expect

from callboard.actors.replay import Difference, Replay
from callboard.console import ConsoleServer, _replayed_task
from callboard.errors import SettingsError
from support import FINISH, PATIENCE, append, lone


def appends(request):
    """Append twice, and finish."""
    return append(f"line {request.step}") if request.step < 3 else FINISH


@pytest.fixture
def ended(office):
    """Give an office with an ended task."""
    started_office = office(app=appends, policy=[{"verdict": "allow"}])
    started_office.supervisor.submit(lone(id="t-1")).result(PATIENCE)
    return started_office


@pytest.fixture
def changed(ended):
    """Give the console of its journal, in which a verdict of step 2 is another one."""
    ended.server.stop()
    ended.supervisor.stop()
    with contextlib.closing(sqlite3.connect(ended.journal)) as database, database:
        edit = 'UPDATE rows SET body = replace(body, \'"verdict":"allow"\', \'"verdict":"deny"\')'
        assert database.execute(f"{edit} WHERE body LIKE '%line 2%'").rowcount
    ended.server = ConsoleServer(ended.journal, port=0)
    ended.server.start()
    return ended


def replayed(office):
    return office.ask("/tasks/t-1/replay", headers=office.sign_in())[:2]


def test_task_that_goes_as_recorded_has_no_difference(ended):
    status, body = replayed(ended)
    assert status == 200
    assert "It goes as recorded" in body
    assert "callboard replay t-1" in body


def test_first_difference_names_its_step_and_leads_there(changed):
    status, body = replayed(changed)
    assert status == 200
    assert "The first difference: the policy&#39;s verdict on append" in body
    assert ">app/memo/one, step 2</a>" in body
    assert "<dd>deny" in body


def test_replay_changes_no_journal(changed):
    before = changed.journal.read_bytes()
    replayed(changed)
    assert changed.journal.read_bytes() == before


def test_texts_of_a_difference_are_escaped(ended, monkeypatch):
    hostile = "<script>document.title='owned'</script>\u202e"
    difference = Difference(
        run_id="t-1~1", address=hostile, step=1, what=hostile, expected=hostile, got=hostile, because=(hostile,)
    )
    result = Replay(task=lone(id="t-1"), transitions=(), jobs=0, taken=0, outcome=None, difference=difference)
    monkeypatch.setattr(_replayed_task, "replay", lambda *_, **__: result)
    _, body = replayed(ended)
    assert "<script" not in body
    assert "\u202e" not in body
    assert body.count("&lt;script&gt;") >= 4


def test_task_with_too_long_a_history_is_not_replayed(ended, monkeypatch):
    monkeypatch.setattr(_replayed_task, "_MOST_FACTS", 2)
    monkeypatch.setattr(_replayed_task, "replay", None)
    assert "its history is too long" in replayed(ended)[1]


def test_agents_that_are_not_known_here_are_named(ended, monkeypatch):
    def fail(*_, **__):
        message = "the recording has agents of the kind 'dba'"
        raise SettingsError(message)

    monkeypatch.setattr(_replayed_task, "replay", fail)
    assert "replayed here: the recording has agents of the kind" in replayed(ended)[1]


def test_task_that_is_not_there_is_not_replayed(ended):
    assert ended.ask("/tasks/t-9/replay", headers=ended.sign_in())[0] == 404


def test_link_of_the_difference_opens_its_step(changed, page):
    page.goto(changed.server.link())
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    page.goto(f"{changed.origin}/tasks/t-1?until=1")  # the step is on another page of the history
    page.get_by_text("Would it go the same way again?").click()
    page.get_by_role("link", name="app/memo/one, step 2").click()
    entry = page.locator("[data-entry]").filter(has_text="step 2, CONTINUE")
    expect(entry.get_by_text("line 2").first).to_be_visible()
    expect(entry.locator("summary")).to_be_focused()
