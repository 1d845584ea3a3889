"""Checks: a FINISH counts once it was read back."""

from __future__ import annotations

import threading
import time

import pytest

from callboard import EventName, Outcome, PlanStep, Task, tool
from callboard.messages import Check, Effect, SupervisorStoppedError, TaskRefusedError
from callboard.testing import MemoryServer, assert_replays
from support import FINISH, PATIENCE, call

READ = {"tool": "read", "target": "memo:one", "args": {"control_id": "field-1"}}
SOON = {"settle_seconds": 0.01}
WRITES = {"control_id": "field-1", "text": "Bob"}


@pytest.fixture
def begin(begin):
    """Start supervisors that wait little for a surface to settle."""
    return lambda **given: begin(**{"limits": SOON, **given})


def write(text, status="CONTINUE", target="field-1"):
    return call("write", status, control_id=target, text=text)


def expected(text, **more):
    return {**READ, "equals": text, **more}


def run(supervisor, *checks, target="memo:one", **fields):
    return supervisor.submit(Task(request="x", target=target, checks=checks, **fields))


def notes_of(handle):
    return [event.data["check"] for event in handle.events() if event.name is EventName.CHECK_FAILED]


def recorded(answers):
    """Answer in order, and keep what was asked."""
    asked = []

    def model(request):
        asked.append(request)
        return answers[len(asked) - 1]

    return model, asked


def test_a_task_whose_checks_hold_is_verified(begin):
    supervisor = begin(app=[write("Bob"), FINISH])
    result = run(supervisor, expected("Bob")).result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    (check,) = result.checks
    assert (check.held, check.found, check.expected, check.problem) == (True, "Bob", {"equals": "Bob"}, "")
    assert result.subtasks[0].checks == result.checks


def test_task_without_checks_has_no_verification(begin):
    result = run(begin(app=[FINISH])).result(PATIENCE)
    assert (result.outcome, result.verified, result.checks) == (Outcome.FINISHED, None, ())


def test_agent_gets_failed_checks_as_notes_and_then_its_task_fails(begin):
    model, asked = recorded([FINISH, FINISH, FINISH])
    handle = run(begin(app=model), expected("Bob", name="the name"))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FAILED, False)
    assert [cause.reason for cause in result.causes] == [
        'a check does not hold: the name: expected {"equals": "Bob"}, found ""'
    ]
    told = " ".join(asked[1].observation.notes)
    assert 'a check does not hold: the name: found ""' in told
    assert "FINISH does not hold" in told
    assert len(notes_of(handle)) == 3


@pytest.mark.parametrize(
    ("show", "told", "hidden"), [("name", "", "found"), ("found", "found", "Bob"), ("all", "Bob", "nobody")]
)
def test_agent_sees_as_much_of_a_failed_check_as_the_check_allows(begin, show, told, hidden):
    model, asked = recorded([FINISH, write("Bob"), FINISH])
    assert run(begin(app=model), expected("Bob", show=show)).result(PATIENCE).verified
    (note,) = [note for note in asked[1].observation.notes if note.startswith("a check")]
    assert told in note
    assert hidden not in note
    assert all("Bob" not in str(request.observation.notes) for request in asked[:1])


def test_an_agent_that_mends_its_work_finishes(begin):
    supervisor = begin(app=[write("Eve"), FINISH, write("Bob"), FINISH])
    handle = run(supervisor, expected("Bob"))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    assert [each["found"] for each in notes_of(handle)] == ["Eve"]


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_agent_continues_after_failed_checks_up_to_the_limit(begin, retries):
    model, asked = recorded([FINISH] * 9)
    result = run(begin(app=model), expected("Bob"), limits={"check_retries": retries}).result(PATIENCE)
    assert (result.outcome, len(asked)) == (Outcome.FAILED, retries + 1)


def test_a_check_runs_after_the_actions_of_its_answer(begin):
    result = run(begin(app=[write("Bob", "FINISH")]), expected("Bob")).result(PATIENCE)
    assert (result.verified, result.usage.commands) == (True, 3)


def test_no_check_runs_beside_an_action_that_failed(begin):
    handle = run(begin(app=[write("Bob", "FINISH", "field-9"), write("Bob"), FINISH]), expected("Bob"))
    assert handle.result(PATIENCE).verified
    assert notes_of(handle) == []


def test_a_check_runs_after_the_approval_of_the_last_action(begin, until):
    supervisor = begin(app=[write("Bob", "FINISH")], policy=[{"verdict": "approve", "tool": "write"}])
    handle = run(supervisor, expected("Bob"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    passed = [event for event in handle.events() if event.name is EventName.CHECK_PASSED]
    assert len(passed) == 1


def test_an_approved_action_that_does_not_do_it_is_found(begin, until):
    rules = [{"verdict": "approve", "tool": "write"}]
    supervisor = begin(app=[write("Eve", "FINISH"), {"Status": "FAIL"}], policy=rules)
    handle = run(supervisor, expected("Bob"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FAILED, False)
    assert [check.found for check in result.checks] == ["Eve"]


@pytest.mark.parametrize(
    ("fields", "outcome", "verified"),
    [({"dry_run": True}, Outcome.FINISHED, None), ({"limits": {"steps": 1}}, Outcome.OUT_OF_BUDGET, False)],
)
def test_a_task_that_did_not_come_to_its_checks_is_not_verified(begin, fields, outcome, verified):
    result = run(begin(app=[write("Bob"), FINISH]), expected("Bob"), **fields).result(PATIENCE)
    assert (result.outcome, result.verified, result.checks) == (outcome, verified, ())


def test_host_agent_assigns_the_correction_of_a_failed_check(begin):
    def host(request):
        if request.call == 2:
            return FINISH
        if any("a check does not hold" in note for note in request.observation.notes):
            return {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "again"}
        return {"Status": "ASSIGN" if request.call == 1 else "FINISH", "ControlText": "memo:one"}

    supervisor = begin(host=host, app=lambda request: write("Bob", "FINISH") if request.request == "again" else FINISH)
    result = run(supervisor, expected("Bob"), target=None).result(PATIENCE)
    assert (result.outcome, result.verified, len(result.subtasks)) == (Outcome.FINISHED, True, 2)
    assert [subtask.checks for subtask in result.subtasks] == [(), ()]


STEPS = [
    {"request": "one", "target": "memo:one", "checks": [expected("one")]},
    {"request": "two", "target": "memo:one"},
]


@pytest.mark.parametrize(("written", "verified", "subtasks"), [(["one", "two"], True, 2), (["none"] * 3, False, 1)])
def test_the_steps_of_a_plan_have_checks_of_their_own(begin, written, verified, subtasks):
    """No HostAgent's model is asked: the subtasks of the plan end the rounds."""
    texts = iter(written)
    supervisor = begin(host=lambda _: FINISH, app=lambda _: write(next(texts), "FINISH"))
    plan = [PlanStep(**step) for step in STEPS]
    result = supervisor.submit(Task(plan=plan, checks=[expected("two")])).result(PATIENCE)
    assert (result.verified, len(result.subtasks)) == (verified, subtasks)
    assert [check.held for check in result.checks] == ([True, True] if verified else [False])
    assert result.outcome is (Outcome.FINISHED if verified else Outcome.FAILED)


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({"tool": "write", "target": "memo:one", "args": WRITES}, "write may change something, and a check only reads"),
        ({"tool": "read", "target": "memo:nine"}, "there is no 'memo:nine'"),
        ({"tool": "look", "target": "memo:one"}, "memo:one has no tool 'look'; there are: append, read, write"),
        ({"tool": "read", "target": "memo:one"}, "read: control_id: Field required"),
        ({**READ, "args": {"control_id": "field-9"}}, "memo:one has no field 'field-9'; it has: field-1"),
        ({"cells": "memo:one!A1"}, "'memo:one' has no `cells`: its surface has no tool 'read_part'"),
        ({"control": {"target": "memo:one", "name": "save"}}, "memo:one has no control called 'save'"),
        ({"file": "report.xlsx"}, ""),
    ],
)
def test_a_check_that_can_not_be_read_does_not_hold(begin, check, problem):
    model, asked = recorded([FINISH, {"Status": "FAIL"}])
    result = run(begin(app=model), {**check, "name": "c"}).result(PATIENCE)
    assert result.verified is False
    assert result.checks[0].problem.startswith(problem)
    assert any("c: " + problem in note for note in asked[1].observation.notes)


def test_check_of_a_task_with_one_target_names_no_others(begin):
    """The task may be of a caller that knows this target alone."""
    windows = [MemoryServer.window("one"), MemoryServer.window("two")]
    supervisor = begin(host=lambda _: FINISH, app=lambda _: FINISH, servers=[MemoryServer(*windows)])
    check = {"tool": "read", "target": "memo:nine", "equals": ""}
    problems = [
        run(supervisor, check, target=target).result(PATIENCE).checks[0].problem for target in ("memo:one", None)
    ]
    assert problems == ["there is no 'memo:nine'", "there is no 'memo:nine'; there are: memo:one, memo:two"]


@pytest.mark.parametrize("verdict", ["deny", "approve"])
def test_a_check_reads_what_the_policy_allows(begin, verdict):
    rules = [{"verdict": verdict, "tool": "read", "reason": "private"}]
    result = run(begin(app=[FINISH, {"Status": "FAIL"}], policy=rules), expected("")).result(PATIENCE)
    assert "because the policy" in result.checks[0].problem
    assert result.checks[0].problem.endswith("private")


def test_a_control_is_found_by_its_name(begin):
    query = {"control": {"target": "memo:one", "name": "field-1"}, "path": "/detail/text", "equals": "Bob"}
    assert run(begin(app=[write("Bob"), FINISH]), query).result(PATIENCE).verified


def test_a_control_that_has_a_double_is_not_guessed(begin):
    class Two(MemoryServer):
        def observe(self, target, look):
            seen = super().observe(target, look)
            (field,) = seen.controls
            twin = field.model_copy(update={"id": "field-2"})
            return seen.model_copy(update={"controls": (field, twin)})

    check = {"control": {"target": "memo:one", "name": "field-1"}, "path": "/detail/text", "equals": ""}
    result = run(begin(servers=[Two(Two.window())], app=[FINISH, {"Status": "FAIL"}]), check).result(PATIENCE)
    assert result.checks[0].problem.startswith("memo:one has 2 controls called 'field-1'")


def test_another_reading_is_the_expectation(begin):
    surfaces = [MemoryServer(MemoryServer.window("one"), MemoryServer.window("two"))]
    surfaces[0]._controls["memo:two"]["field-1"] = "412.50"
    other = {**READ, "target": "memo:two"}
    answers = [write("412,5"), FINISH, write("412.6"), FINISH]
    result = run(begin(servers=surfaces, app=answers), {**READ, "same_as": other}).result(PATIENCE)
    assert result.verified
    assert result.checks[0].expected == {"same_as": str(Check(**other)), "value": "412.50"}


PROGRAMS = {
    "holds": lambda: True,
    "false": lambda: False,
    "one": lambda: 1,
    "raises": lambda: 1 / 0,
    "given": lambda text: text == "Bob" or text,
}


def list_files(files):
    return sorted(files) if isinstance(files, dict) and all(path.is_file() for path in files.values()) else files


async def awaited():
    return True


@pytest.mark.parametrize(
    ("program", "args", "held", "found", "problem"),
    [
        ("holds", {}, True, True, ""),
        ("awaited", {}, True, True, ""),
        ("false", {}, False, False, ""),
        ("one", {}, False, 1, ""),
        ("raises", {}, False, None, "ZeroDivisionError: division by zero"),
        ("given", {"text": "Eve"}, False, "Eve", ""),
        ("given", {"text": "Bob"}, True, True, ""),
        ("given", {}, False, None, "TypeError: "),
    ],
)
def test_a_function_of_the_program_must_return_true(begin, program, args, held, found, problem):
    supervisor = begin(app=[FINISH, {"Status": "FAIL"}], checks={**PROGRAMS, "awaited": awaited})
    (check,) = run(supervisor, {"program": program, "args": args}).result(PATIENCE).checks
    assert (check.held, check.found) == (held, found)
    assert check.problem.startswith(problem)


@pytest.mark.parametrize(("args", "found"), [({}, ["memo.csv"]), ({"files": "its own"}, "its own")])
def test_a_function_with_a_parameter_for_files_gets_those_of_all_surfaces(begin, tmp_path, args, found):
    workspace = tmp_path / "documents"
    workspace.mkdir()
    (workspace / "memo.csv").write_text("a\n1\n")
    answers = [FINISH, {"Status": "FAIL"}]
    supervisor = begin(app=answers, checks={"list": list_files}, documents={"workspace": workspace})
    (check,) = run(supervisor, {"program": "list", "args": args}).result(PATIENCE).checks
    assert check.found == found


def test_unknown_check_program_is_refused(begin):
    with pytest.raises(TaskRefusedError, match="no check program is called 'balances'; there are: none"):
        run(begin(app=[FINISH]), {"program": "balances"})


def test_a_task_without_its_function_is_paused_after_a_restart(begin, until):
    first = begin(app=lambda _: {"Status": "PENDING", "Comment": "which one?"}, checks=PROGRAMS)
    handle = run(first, {"program": "holds"})
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    without = begin(app=[FINISH])
    (status,) = without.status().tasks
    assert "no check program is called 'holds'" in status.lacks
    without.stop()
    again = begin(app=lambda _: FINISH, checks=PROGRAMS).handle(handle.task_id)
    again.answer(again.questions()[0].id, "this one")
    assert again.result(PATIENCE).verified


def test_a_late_effect_is_waited_for(begin):
    done = threading.Event()
    threading.Timer(0.3, done.set).start()
    result = run(begin(app=[FINISH], checks={"done": done.is_set}), {"program": "done", "within": PATIENCE})
    assert result.result(PATIENCE).verified


def test_a_check_that_waits_is_cancelled_at_once(begin):
    asked = threading.Event()

    def never():
        asked.set()
        return False

    handle = run(begin(app=[FINISH], checks={"never": never}), {"program": "never", "within": 3600})
    assert asked.wait(PATIENCE)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.CANCELLED, False)


class Slow(MemoryServer):
    """Its writes take until they are let go."""

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.release = threading.Event(), threading.Event()

    @tool(effect=Effect.IDEMPOTENT)
    def write(self, target: str, control_id: str, text: str) -> str:
        """Set a field's text."""
        self.begun.set()
        self.release.wait(PATIENCE)
        return super().write(target, control_id, text)


def test_a_stop_in_the_last_action_leaves_the_checks_to_the_next_process(begin):
    surface, done = Slow(), threading.Event()
    checks = {"done": done.is_set}
    first = begin(servers=[surface], app=[write("Bob", "FINISH")], checks=checks)
    handle = run(first, {"program": "done", "within": 3600})
    assert surface.begun.wait(PATIENCE)
    left = []
    stopping = threading.Thread(target=lambda: left.append(first.stop()))
    stopping.start()
    with pytest.raises(SupervisorStoppedError):
        handle.result(PATIENCE)
    surface.release.set()
    stopping.join(PATIENCE)
    assert left == [()]
    done.set()
    again = begin(servers=[surface], app=[], checks=checks).handle(handle.task_id)
    result = again.result(PATIENCE)
    assert (result.verified, surface.effects) == (True, [("memo:one", "field-1", "Bob")])
    assert notes_of(again) == []


class Restless(MemoryServer):
    """Another task writes while the checks run."""

    def __init__(self, settles, changes):
        super().__init__(self.window())
        self.settles = settles
        self.changes = changes
        self.reads = 0

    @tool(effect=Effect.READ)
    def read(self, target: str, control_id: str) -> str:
        """Read a field."""
        self.reads += 1
        value = self._controls[target][control_id]
        if self.reads % 2 and self.changes:
            self.changes -= 1
            self._controls[target][control_id] += "!"
        return value


@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize(("changes", "verified"), [(1, True), (9, False)])
def test_all_checks_run_on_the_same_state(begin, settles, changes, verified):
    surface = Restless(settles, changes)
    checks = [{**READ, "matches": "^!*$"}, {**READ, "matches": "^!*$"}]
    result = run(begin(servers=[surface], app=[FINISH, {"Status": "FAIL"}]), *checks).result(PATIENCE)
    assert result.verified is verified
    assert verified or "it was changed while it was checked" in result.checks[0].problem


def test_the_results_of_checks_are_replayed_as_recorded(begin, tmp_path):
    supervisor = begin(app=[write("Eve"), FINISH, write("Bob"), FINISH])
    handle = run(supervisor, expected("Bob"))
    handle.result(PATIENCE)
    supervisor.stop()
    assert assert_replays(tmp_path / "journal.db", handle.task_id)


def test_a_secret_is_compared_and_never_shown(begin):
    supervisor = begin(app=[write("${secret:portal}"), FINISH], secrets={"portal": {"value": "swordfish-4711"}})
    handle = run(supervisor, expected("${secret:portal}"))
    result = handle.result(PATIENCE)
    assert result.verified
    assert "swordfish" not in str([result, *handle.events()])
    with pytest.raises(ValueError, match=r"a check quotes a secret.*\$\{secret:NAME\}"):
        run(supervisor, expected("swordfish-4711"))


def test_a_check_leaves_the_time_limit_of_the_step_alone(begin):
    def slow():
        time.sleep(0.4)
        return True

    checks = [{"program": "slow"}] * 3
    result = run(begin(app=[FINISH], checks={"slow": slow}), *checks, limits={"step_seconds": 0.5})
    assert result.result(PATIENCE).verified
