"""Checks of changed files: by contents, and by the effects that tools recorded."""

from __future__ import annotations

import pytest

from callboard import EventName, Outcome, Task
from callboard.messages import TaskRefusedError
from callboard.surfaces.documents import DocumentSurface
from support import FINISH, PATIENCE, call

ONLY = {"only": "report.csv"}
ROW = {"rows": [["South", "1"]]}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    for name in ("report.csv", "budget.csv", "notes.txt"):
        (folder / name).write_text("name,value\nNorth,400\n", encoding="utf-8")
    return folder


@pytest.fixture
def submit(start, folder, tmp_path):
    """Submit a task on report.csv, whose agent does something and says FINISH."""

    def run(*checks, do=None, answers=(FINISH, {"Status": "FAIL"}), target="report.csv", **fields):
        def app(request):
            if do is not None and request.step == 1:
                do()
            return answers[request.step - 1]

        supervisor = start(servers=[DocumentSurface(folder)], app=app, journal={"path": tmp_path / "journal.db"})
        return supervisor.submit(Task(request="x", target=target, checks=checks, **fields))

    return run


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda folder: None, []),
        (lambda folder: (folder / "report.csv").write_text("new"), []),
        (lambda folder: (folder / "budget.csv").write_text("new"), ["budget.csv"]),
        (lambda folder: (folder / "notes.txt").unlink(), ["notes.txt"]),
        (lambda folder: (folder / "picture.bin").write_bytes(b"\0"), ["picture.bin"]),
        (lambda folder: (folder / "notes.txt").rename(folder / "b.txt"), ["b.txt", "notes.txt"]),
        (lambda folder: (folder / "budget.csv").write_bytes((folder / "budget.csv").read_bytes()), []),
    ],
)
def test_no_other_file_may_have_changed(submit, folder, change, changed):
    (check,) = submit(ONLY, do=lambda: change(folder)).result(PATIENCE).checks
    assert (check.held, check.found) == (not changed, {"changed": changed})


def test_an_effect_counts_although_the_contents_are_as_before(start, folder, tmp_path):
    """A tool wrote the file, and something wrote it back."""
    before = (folder / "budget.csv").read_bytes()

    def host(request):
        if request.subtasks:
            (folder / "budget.csv").write_bytes(before)
            return FINISH if request.call == 2 else {"Status": "FAIL"}
        return {"Status": "ASSIGN", "ControlText": "budget.csv", "Current Sub-Task": "x"}

    supervisor = start(servers=[DocumentSurface(folder)], host=host, app=lambda _: call("append_rows", "FINISH", **ROW))
    (check,) = supervisor.submit(Task(request="x", checks=[ONLY])).result(PATIENCE).checks
    assert (check.held, check.found) == (False, {"changed": ["budget.csv"]})


@pytest.mark.parametrize(
    ("changed", "change", "held"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_file_has_other_contents_than_at_the_submission(submit, folder, changed, change, held):
    do = (lambda: (folder / "report.csv").write_text("other")) if change else None
    (check,) = submit({"file": "report.csv", "changed": changed}, do=do).result(PATIENCE).checks
    assert check.held is held


def test_a_new_file_has_changed_and_a_missing_one_does_not_exist(submit, folder):
    checks = [{"file": "new.csv"}, {"file": "new.csv", "changed": True}, {"file": "none.csv"}]
    result = submit(*checks, do=lambda: (folder / "new.csv").write_text("a,b\n")).result(PATIENCE)
    assert [check.held for check in result.checks] == [True, True, False]
    assert result.checks[2].found == "there is no such file"


def test_a_file_that_can_not_be_opened_is_not_there(submit, folder):
    (check,) = (
        submit({"file": "new.xlsx"}, do=lambda: (folder / "new.xlsx").write_bytes(b"PK\x03\x04"))
        .result(PATIENCE)
        .checks
    )
    assert not check.held
    assert "'new.xlsx' is damaged" in check.problem


def test_a_file_that_should_stay_unchanged_has_to_exist(submit):
    with pytest.raises(TaskRefusedError, match=r"'budgets.csv' can't stay unchanged.*did you mean 'budget.csv'"):
        submit({"unchanged": "budgets.csv"})


def test_the_contents_at_the_submission_survive_a_restart(start, folder, tmp_path, until):
    def begin(answer):
        return start(servers=[DocumentSurface(folder)], app=answer, journal={"path": tmp_path / "journal.db"})

    first = begin(lambda _: {"Status": "PENDING", "Comment": "which one?"})
    handle = first.submit(Task(request="x", target="report.csv", checks=[{"unchanged": "budget.csv"}]))
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    (folder / "budget.csv").write_text("other", encoding="utf-8")
    again = begin(lambda request: FINISH if request.step == 2 else {"Status": "FAIL"}).handle(handle.task_id)
    again.answer(again.questions()[0].id, "this one")
    (check,) = again.result(PATIENCE).checks
    assert (check.held, check.found) == (False, {"changed": ["budget.csv"]})


def test_a_file_that_another_task_wrote_does_not_count(start, folder):
    begun = []

    def app(request):
        if request.request == "second":
            return call("append_rows", "FINISH", **ROW)
        if request.step == 1:
            begun.append(supervisor.submit(Task(request="second", target="budget.csv")))
            return {"Status": "CONTINUE"}
        begun[0].result(PATIENCE)
        return FINISH

    supervisor = start(servers=[DocumentSurface(folder)], app=app)
    result = supervisor.submit(Task(request="first", target="report.csv", checks=[ONLY])).result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    assert "South" in (folder / "budget.csv").read_text(encoding="utf-8")
