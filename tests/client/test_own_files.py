"""Files that a task created itself: it deletes them without an approval."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from callboard import EventName, Outcome, Task
from callboard.messages import JournalError
from callboard.testing import Faults, assert_replays, disk_full
from support import FINISH, PATIENCE, action, actions, call

TEXT = "what a person wrote\n"
MAKE = call("create_document", path="own.txt")
COPY = call("move_file", path="person.txt", new_path="own.txt", copy=True)
DELETE = call("delete_file", path="own.txt")
MOVE_OVER = call("move_file", path="person.txt", new_path="own.txt")
MOVES = [{"verdict": "allow", "tool": "move_file"}]
ASKED = "it may do harm (delete_file deletes)"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a person's files."""
    folder = tmp_path / "workspace"
    (folder / "theirs").mkdir(parents=True)
    for name in ("person.txt", "theirs/person.txt"):
        (folder / name).write_text(TEXT, encoding="utf-8")
    return folder


@pytest.fixture
def settings(tmp_path, workspace):
    """No person answers approvals."""
    return {
        "servers": [],
        "documents": {"workspace": workspace},
        "limits": {"approval_seconds": 0.2},
        "journal": {"path": tmp_path / "journal.db"},
    }


@pytest.fixture
def run(start, settings):
    """Run a task of a HostAgent: answers, and functions that are called between them."""

    def begin(*host, task=None, app=(), **given):
        steps = list(host)

        def model(_):
            while callable(step := steps.pop(0)):
                step()
            return step

        return start(host=model, app=app, **settings, **given).submit(task or Task(id="t", request="tidy up"))

    return begin


def deletions(handle):
    events = [event.data for event in handle.events() if event.name is EventName.POLICY_DECIDED]
    return [(data["verdict"], data["reason"]) for data in events if data["tool"] == "delete_file"]


def check_asks(handle):
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert deletions(handle)[-1] == ("approve", ASKED)


def test_own_file_is_deleted_without_an_approval(run, workspace, tmp_path):
    handle = run(MAKE, DELETE, FINISH)
    assert handle.result(PATIENCE).ok
    path = workspace / "own.txt"
    assert deletions(handle) == [("allow", f"the task created {path} itself (delete_file deletes)")]
    (data,) = [event.data for event in handle.events() if event.data.get("own_files")]
    assert (data["own_files"], data["hazards"]) == ([str(path)], ["deletes"])
    assert not path.exists()
    assert_replays(tmp_path / "journal.db")


def test_own_file_is_deleted_in_the_step_that_made_it(run, workspace):
    both = [action("create_document", path="own.txt"), action("delete_file", path="own.txt")]
    assert run(actions(*both), FINISH).result(PATIENCE).ok
    assert not (workspace / "own.txt").exists()


def test_file_that_a_subtask_made_is_the_task_s_own(run, workspace):
    assign = {"Status": "ASSIGN", "ControlText": "person.txt", "Current Sub-Task": "save a copy"}
    handle = run(assign, DELETE, FINISH, app=[call("save_as", path="own.txt"), FINISH])
    assert handle.result(PATIENCE).ok
    assert not (workspace / "own.txt").exists()


def test_own_file_that_the_task_wrote_again_is_its_own(run, workspace):
    assign = {"Status": "ASSIGN", "ControlText": "own.txt", "Current Sub-Task": "write"}
    handle = run(MAKE, assign, DELETE, FINISH, app=[call("insert_text", text="new"), FINISH])
    assert handle.result(PATIENCE).ok
    assert not (workspace / "own.txt").exists()


def test_file_that_was_there_before_asks(run, workspace):
    check_asks(run(MAKE, call("delete_file", path="person.txt"), FINISH))
    assert (workspace / "person.txt").exists()


def test_file_that_a_person_changed_meanwhile_asks(run, workspace):
    path = workspace / "own.txt"
    check_asks(run(MAKE, lambda: path.write_text(TEXT, encoding="utf-8"), DELETE, FINISH))
    assert path.read_text(encoding="utf-8") == TEXT


def test_file_of_an_earlier_task_of_the_conversation_asks(start, settings):
    supervisor = start(host=[MAKE, FINISH, DELETE, FINISH], **settings)
    assert supervisor.submit(Task(id="one", request="x")).result(PATIENCE).ok
    check_asks(supervisor.submit(Task(id="two", request="y", session="one")))


@pytest.mark.parametrize("rules", ["policy", "task"])
def test_rules_about_deletions_still_ask(run, workspace, rules):
    rule = {"verdict": "approve", "hazards": ["deletes"], "reason": "ask me"}
    terms = {"policy": [rule]} if rules == "policy" else {"task": Task(request="x", policy=[rule])}
    handle = run(MAKE, DELETE, FINISH, **terms)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert deletions(handle) == [("approve", "ask me (delete_file deletes)")]


# Attacks: another file takes the place of the task's own


def test_file_moved_over_an_own_one_asks(run, workspace):
    check_asks(run(MAKE, DELETE, MOVE_OVER, DELETE, FINISH, policy=MOVES))
    assert (workspace / "own.txt").read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize(
    "away", [DELETE, call("move_file", path="own.txt", new_path="away.txt")], ids=["deleted", "moved"]
)
def test_file_moved_over_a_copy_of_it_asks(run, workspace, away):
    check_asks(run(COPY, away, MOVE_OVER, DELETE, FINISH, policy=MOVES))
    assert (workspace / "own.txt").read_text(encoding="utf-8") == TEXT


def test_folder_moved_over_a_copy_of_it_asks(run, workspace):
    check_asks(
        run(
            call("make_folder", path="mine"),
            call("move_file", path="theirs/person.txt", new_path="mine/person.txt", copy=True),
            call("move_file", path="mine", new_path="away"),
            call("move_file", path="theirs", new_path="mine"),
            call("delete_file", path="mine/person.txt"),
            FINISH,
            policy=MOVES,
        )
    )
    assert (workspace / "mine" / "person.txt").read_text(encoding="utf-8") == TEXT


def test_copy_is_own_and_its_original_is_not(run, workspace):
    check_asks(run(COPY, DELETE, call("delete_file", path="person.txt"), FINISH))
    assert sorted(path.name for path in workspace.iterdir()) == ["person.txt", "theirs"]


def test_extraction_does_not_claim_a_file_that_was_there(run, workspace):
    with zipfile.ZipFile(workspace / "a.zip", "w") as archive:
        archive.write(workspace / "person.txt", "person.txt")
        archive.writestr("new.txt", "new")
    extract = call("extract_archive", path="a.zip", folder="theirs")
    check_asks(
        run(extract, call("delete_file", path="theirs/new.txt"), call("delete_file", path="theirs/person.txt"), FINISH)
    )
    assert sorted(path.name for path in (workspace / "theirs").iterdir()) == ["person.txt"]


def test_file_with_a_further_name_asks(run, workspace):
    def link():
        (workspace / "own.txt").unlink()
        os.link(workspace / "person.txt", workspace / "own.txt")

    check_asks(run(COPY, link, DELETE, FINISH))
    assert (workspace / "own.txt").exists()


def test_link_in_the_place_of_an_own_file_is_refused(run, workspace):
    def link():
        (workspace / "own.txt").unlink()
        (workspace / "own.txt").symlink_to(workspace / "person.txt")

    handle = run(COPY, link, DELETE, FINISH)
    handle.result(PATIENCE)
    assert deletions(handle) == [("approve", ASKED)]
    assert (workspace / "own.txt").is_symlink()
    assert (workspace / "person.txt").exists()


# Crashes


@pytest.mark.parametrize("point", ["before its row", "after its row", "after the deletion"])
def test_own_file_is_own_after_a_crash(start, settings, workspace, tmp_path, point):
    def host(request):
        return [MAKE, DELETE, FINISH][len(request.memory)]

    def fail():
        msg = "it ends here"
        raise OSError(msg)

    with Faults() as faults:
        if point == "before its row":
            faults.before("foreseen", disk_full, nth=2)
        elif point == "after its row":
            faults.before("effect", fail, nth=2)
        faults.before("command_result", disk_full, nth=2)
        first = start(host=host, **settings)
        with pytest.raises(JournalError):
            first.submit(Task(id="t", request="tidy up")).result(PATIENCE)
        first.stop()
    assert (workspace / "own.txt").exists() is (point != "after the deletion")
    second = start(host=host, **settings)
    handle = second.handle("t")
    assert handle.result(PATIENCE).ok
    assert {verdict for verdict, _ in deletions(handle)} == {"allow"}
    assert not (workspace / "own.txt").exists()
    second.stop()
    assert_replays(tmp_path / "journal.db")
