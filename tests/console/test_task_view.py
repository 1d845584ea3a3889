"""A task as its page shows it: runs with bars, entries with calls, pictures and verdicts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from callboard import Outcome, PlanStep, Settings, Supervisor, Task
from callboard.console._task_view import MOST_ENTRIES, SCALE, digest_of, task_view
from callboard.history import Tone, history_of
from callboard.journal import JournalReader
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, PNG, action, actions, append, lone

if TYPE_CHECKING:
    from callboard.console._task_view import TaskView


class NamedControls(MemoryServer):
    """Windows whose field has a name beside its id."""

    def observe(self, target, look=None):
        observation = super().observe(target)
        named = observation.controls[0].model_copy(update={"name": "the field"})
        return observation.model_copy(update={"controls": (named,)})


@pytest.fixture
def viewed(tmp_path):
    """Run a task, and give its view: ``viewed(task, app=model)``."""

    def view(task: Task, *, windows=("one",), until=None, server=MemoryServer, **given) -> TaskView:
        models = {kind: given.pop(kind) for kind in ("host", "app") if kind in given}
        journal = tmp_path / "journal.db"
        settings = Settings.load(journal={"path": journal}, **given)
        surface = server(*map(MemoryServer.window, windows))
        with Supervisor.start(settings, models=models, servers=[surface]) as supervisor:
            supervisor.submit(task).result(PATIENCE)
        with JournalReader.open(journal, pictures=False) as reader:
            history = history_of(reader.rows(task.id))
        return task_view(history, 0.0, until=until)

    return view


def appends(request):
    """Append the request, and finish."""
    return append(request.request) if request.step == 1 else FINISH


def test_subtasks_that_run_side_by_side_have_bars_that_overlap(viewed):
    def slow(request):
        return appends(request)

    steps = [PlanStep(target="memo:one", request="first"), PlanStep(target="memo:two", request="second", after=())]
    view = viewed(Task(request="both", plan=steps), windows=("one", "two"), app=slow)
    numbers = [(run.number, run.request, run.outcome) for run in view.runs if run.number]
    assert numbers == [(1, "first", Outcome.FINISHED), (2, "second", Outcome.FINISHED)]
    for run in view.runs:
        begin, work, end = run.bar
        assert 0 <= begin <= work <= end <= SCALE
        assert run.tone is Tone.GOOD


def test_calls_have_complete_arguments_and_the_verdict_of_the_policy(viewed):
    long_text = "x" * 5_000
    rules = [{"verdict": "allow", "tool": "append", "reason": "texts may grow"}]
    view = viewed(lone(request=long_text, id="t"), app=appends, policy=rules)
    (entry,) = [entry for entry in view.entries if entry.calls]
    (call,) = entry.calls
    assert (call.tool, call.lines[0]) == ("append", ("success", Tone.GOOD))
    assert long_text in call.arguments
    assert [verdict for verdict in call.verdicts if verdict.startswith("allow: texts may grow")]


def test_calls_of_one_tool_have_their_own_verdicts(viewed):
    rules = [{"verdict": "deny", "tool": "append", "arguments": {"text": "second*"}, "reason": "not twice"}]
    texts = [action("append", "field-1", text=text) for text in ("first", "second")]
    view = viewed(lone(id="t"), app=lambda request: actions(*texts) if request.step == 1 else FINISH, policy=rules)
    calls = [call for entry in view.entries for call in entry.calls]
    assert [
        ("first" in call.arguments, [verdict.partition(":")[0] for verdict in call.verdicts]) for call in calls
    ] == [
        (True, ["allow"]),
        (False, ["deny"]),
    ]


def test_held_call_has_the_verdict_that_holds_it(viewed):
    rules = [{"verdict": "approve", "tool": "append", "reason": "a nod"}]
    view = viewed(lone(id="t"), app=appends, policy=rules, limits={"settle_seconds": 0, "approval_seconds": 0.05})
    held = [call for entry in view.entries for call in entry.calls if call.lines[0][0] == "not run yet"]
    assert [call.verdicts for call in held] == [("approve: a nod",)]


def test_call_names_its_control_as_the_agent_saw_it(viewed):
    view = viewed(lone(id="t"), app=appends, server=NamedControls)
    assert [call.control for entry in view.entries for call in entry.calls] == ["the field"]


def test_usage_names_the_model_of_a_step(viewed):
    view = viewed(lone(id="t"), app=appends)
    assert all("tokens" in entry.usage for entry in view.entries if entry.step)


def test_long_history_is_shown_in_parts(viewed):
    count = MOST_ENTRIES + 20
    task = lone(id="t")
    view = viewed(
        task,
        app=lambda request: append(str(request.step)) if request.step < count else FINISH,
        limits={"steps": 2 * count, "settle_seconds": 0},
    )
    assert len(view.entries) == MOST_ENTRIES
    assert view.earlier == view.entries[0].number - 1 > 0
    earlier = task_view(view.history, 0.0, until=view.earlier)
    assert [entry.number for entry in earlier.entries] == list(range(1, view.earlier + 1))
    assert task_view(view.history, 0.0, until=10**9).entries[-1].number == len(view.history.entries)


def test_pictures_are_told_by_digest():
    digest = hashlib.sha256(PNG)
    assert digest_of(PNG) == digest_of(digest.digest()) == digest.hexdigest()
    assert digest_of(None) == ""
