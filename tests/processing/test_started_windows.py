"""Applications that the subtasks of one answer work in: each is started first, and its window gets the subtask."""

from __future__ import annotations

import threading

import pytest

from callboard import EventName, Outcome, PlanStep, Server, Task
from callboard.messages import Control, Observation, Target, TargetKind
from callboard.surface import ToolError
from callboard.testing import assert_replays
from support import FINISH, PATIENCE


class Desk(Server):
    """A desktop with two applications and one open window; `refuses` is an application that does not start."""

    name = "desk"
    settles = False
    refuses = ""

    def __init__(self):
        self.windows = ["notes"]
        self.started = []
        self.start_of_second = lambda: None

    def targets(self):
        applications = [
            Target(id=name, name=name, kind=TargetKind.APPLICATION, address=f"app/{name}/*", server=self.name)
            for name in ("writer", "editor")
        ]
        return (*applications, *map(self.window, self.windows))

    def window(self, name):
        address = f"app/{name.split('-')[0]}/{name}"
        return Target(id=name, name=name, kind=TargetKind.WINDOW, address=address, server=self.name)

    def start(self, target, arguments):
        if target.id == self.refuses:
            msg = "no room on the screen"
            raise ToolError(msg)
        self.started.append(target.id)
        if len(self.started) == 1:
            self.start_of_second()
        self.windows.append(f"{target.id}-{len(self.started)}")
        return self.window(self.windows[-1])

    def observe(self, target, look):
        return Observation(controls=(Control(id="page", name="Page", kind="text"),))


def member(target, *after, **more):
    return {"Current Sub-Task": f"work in {target}", "ControlText": target, "After": [*after], **more}


GROUP = {"Status": "ASSIGN", "Sub-Tasks": [member("writer"), member("notes"), member("editor", 1), member("editor")]}
WORKED_IN = ["app/writer/writer-1", "app/notes/notes", "app/editor/editor-2", "app/editor/editor-3"]


@pytest.fixture
def group(start, tmp_path):
    """Run one task whose HostAgent assigns a group; the windows of its subtasks, its result, and its handle's end."""

    def submit(desk, *, policy=({"verdict": "allow"},), answers=(GROUP,), **task):
        asked = iter(answers)
        supervisor = start(
            host=lambda request: FINISH if request.subtasks else next(asked, FINISH),
            app=lambda _: FINISH,
            servers=[desk],
            policy=[*policy],
            journal={"path": tmp_path / "journal.db"},
            limits={"repeats": 2},
        )
        return supervisor.submit(Task(**({"request": "all"} | task)))

    return submit


def worked_in(result):
    return [subtask.address for subtask in result.subtasks]


def test_applications_are_started_in_order_before_any_subtask_begins(group, tmp_path):
    desk = Desk()
    result = group(desk).result(PATIENCE)
    assert result.ok
    assert desk.started == ["writer", "editor", "editor"]
    assert worked_in(result) == WORKED_IN
    assert_replays(tmp_path / "journal.db")


def test_approval_in_the_middle_of_the_starts_assigns_all_windows(group, until, tmp_path):
    desk = Desk()
    handle = group(desk, policy=[{"verdict": "approve", "arguments": {"application": "editor"}}, {"verdict": "allow"}])
    request = until(handle, EventName.APPROVAL_REQUESTED)
    assert desk.started == ["writer"]
    handle.approve(request.data["request"]["id"])
    result = handle.result(PATIENCE)
    assert (desk.started, worked_in(result)) == (["writer", "editor", "editor"], WORKED_IN)
    assert_replays(tmp_path / "journal.db")


def test_pause_between_two_starts_assigns_all_windows(group):
    desk, reached, go = Desk(), threading.Event(), threading.Event()

    def wait():
        reached.set()
        assert go.wait(PATIENCE)

    desk.start_of_second = wait
    handle = group(desk)
    assert reached.wait(PATIENCE)
    handle.pause()
    go.set()
    handle.resume()
    result = handle.result(PATIENCE)
    assert (desk.started, worked_in(result)) == (["writer", "editor", "editor"], WORKED_IN)


def test_nothing_is_assigned_if_an_application_does_not_start(group):
    desk = Desk()
    desk.refuses = "editor"
    second = {"Status": "ASSIGN", "Sub-Tasks": [member("writer-1"), member("notes")]}
    result = group(desk, answers=[GROUP, second]).result(PATIENCE)
    assert result.ok
    assert (desk.started, worked_in(result)) == (["writer"], ["app/writer/writer-1", "app/notes/notes"])


def test_dry_run_starts_nothing_and_assigns_nothing(group):
    desk = Desk()
    result = group(desk, answers=[GROUP], dry_run=True).result(PATIENCE)
    assert (desk.started, worked_in(result)) == ([], [])
    assert [action.tool for action in result.would_do] == ["open_in_desk"] * 3


def test_plan_with_an_order_starts_its_applications(group):
    desk = Desk()
    plan = [PlanStep(request="write", target="writer", after=[]), PlanStep(request="read", target="notes", after=[1])]
    result = group(desk, answers=(), request="", plan=plan).result(PATIENCE)
    assert (result.outcome, worked_in(result)) == (Outcome.FINISHED, ["app/writer/writer-1", "app/notes/notes"])


def test_dry_run_of_a_plan_with_an_order_ends_at_its_applications(group):
    desk = Desk()
    plan = [PlanStep(request="write", target="writer", after=[]), PlanStep(request="read", target="notes", after=[1])]
    result = group(desk, answers=(), request="", plan=plan, dry_run=True).result(PATIENCE)
    assert (result.outcome, desk.started, worked_in(result)) == (Outcome.FINISHED, [], [])
    assert [action.tool for action in result.would_do] == ["open_in_desk"]


def test_plan_whose_application_does_not_start_is_no_success(group):
    desk = Desk()
    desk.refuses = "writer"
    plan = [PlanStep(request="write", target="writer", after=[]), PlanStep(request="read", target="notes", after=[1])]
    result = group(desk, answers=(), request="", plan=plan).result(PATIENCE)
    assert not result.ok
    assert worked_in(result) == []


@pytest.mark.parametrize(
    ("members", "is_refused"),
    [
        ([member("notes"), member("notes")], True),
        ([member("notes"), member("writer"), member("notes", 2)], True),
        ([member("notes"), member("notes", 1)], False),
        ([member("notes"), member("notes", AfterAny=[1])], False),
        ([member("notes"), member("writer", 1), member("notes", 2)], False),
    ],
)
def test_two_subtasks_of_one_open_target_need_an_order(group, members, is_refused):
    refused = {"Status": "ASSIGN", "Sub-Tasks": members}
    handle = group(Desk(), answers=[refused, {"Status": "FAIL", "Comment": "sent back"}])
    result = handle.result(PATIENCE)
    assert result.ok is not is_refused
    assert len(result.subtasks) == (0 if is_refused else len(members))
