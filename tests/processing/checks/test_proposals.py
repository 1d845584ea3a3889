"""Checks that a HostAgent's model proposes: told, and never counted."""

from __future__ import annotations

import dataclasses

import pytest

from callboard import EventName, Outcome, PlanStep, Settings, Supervisor, Task, tool
from callboard.actors.processing import AGENTS
from callboard.kinds import HostResponse
from callboard.messages import Check, Effect, SettingsError
from callboard.testing import MemoryServer, assert_replays
from support import ASSIGN, FINISH, PATIENCE, call

READ = {"tool": "read", "target": "memo:one", "args": {"control_id": "field-1"}}
ON = {"propose_checks": True}
WRITES = call("write", "FINISH", control_id="field-1", text="Bob")


@pytest.fixture
def begin(begin):
    """Start supervisors whose HostAgents may propose checks."""
    return lambda **given: begin(**{"limits": {"settle_seconds": 0.01}, "app": lambda _: WRITES, "system": ON, **given})


def proposing(*checks, then=(FINISH,)):
    return [{**ASSIGN, "Checks": list(checks)}, *then]


def run(supervisor, *checks, **fields):
    return supervisor.submit(Task(**{"request": "x", "checks": checks, **fields}))


def told(handle, name=EventName.MODEL_REPAIRED):
    return [event.data for event in handle.events() if event.name is name]


def test_proposed_check_has_an_event_and_never_verifies(begin):
    handle = run(begin(host=proposing({**READ, "equals": "Bob"})))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, None)
    assert [(check.held, check.source, check.found) for check in result.checks] == [(True, "model", "Bob")]
    (passed,) = told(handle, EventName.CHECK_PASSED)
    assert passed["check"]["source"] == "model"


def test_a_proposed_check_that_does_not_hold_refuses_nothing(begin):
    result = run(begin(host=proposing({**READ, "equals": "Eve"})), {**READ, "equals": "Bob"}).result(PATIENCE)
    assert (result.outcome, result.verified, result.causes) == (Outcome.FINISHED, True, ())
    assert [(check.held, check.source) for check in result.checks] == [(True, "task"), (False, "model")]


def test_proposed_checks_that_hold_do_not_stand_for_the_tasks_own(begin):
    supervisor = begin(host=proposing({**READ, "equals": "Bob"}, then=[FINISH] * 9))
    result = run(supervisor, {**READ, "equals": "Eve"}).result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FAILED, False)
    assert len(result.causes) == 1


class Ticking(MemoryServer):
    """A window whose field shows another value at each look."""

    settles = True
    ticks = 0

    @tool(effect=Effect.READ)
    def tick(self, target: str) -> int:
        """Count."""
        self.ticks += 1
        return self.ticks


def test_a_restless_proposal_makes_no_check_of_the_task_fail(begin):
    host = proposing({"tool": "tick", "target": "memo:one", "equals": 0})
    supervisor = begin(servers=[Ticking(MemoryServer.window())], host=host)
    result = run(supervisor, {**READ, "equals": "Bob"}).result(PATIENCE)
    assert result.verified
    assert "it was changed while it was checked" in result.checks[1].problem


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"program": "rm"}, "Checks.0: 'program' can't be proposed"),
        ({"only": ["a.docx"]}, "Checks.0: 'only' can't be proposed"),
        ({"unchanged": ["a.docx"]}, "Checks.0: 'unchanged' can't be proposed"),
        ({"file": "a.docx", "changed": True}, "Checks.0: 'changed' can't be proposed"),
        ({**READ, "equals": 1, "within": 31}, "Checks.0.within: 31 s is too long; at most 30"),
        ({**READ, "equals": 1, "matches": "x"}, "give one matcher"),
        ({**READ, "matches": "(?=x)"}, "Checks.0.matches: "),
        ({**READ, "same_as": {"program": "x"}}, "Checks.0.same_as.program: unknown key"),
        ({"cells": "../a.xlsx!A1", "equals": 1}, "leads out of the workspace"),
        ({"verify": "all"}, "Checks.0.verify: unknown key"),
    ],
)
def test_a_proposal_that_is_not_allowed_is_sent_back(begin, check, reason):
    handle = run(begin(host=proposing(check, then=[ASSIGN, FINISH])))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.checks) == (Outcome.FINISHED, ())
    (repaired,) = told(handle)
    assert reason in repaired["reason"]


def test_at_most_ten_checks_are_proposed(begin):
    handle = run(begin(host=proposing(*[READ] * 11, then=[ASSIGN, FINISH])))
    assert handle.result(PATIENCE).checks == ()
    assert [each["reason"] for each in told(handle)] == ["Checks: 11 are too many; at most 10"]


def test_a_later_answer_proposes_nothing(begin):
    handle = run(begin(host=[ASSIGN, {**FINISH, "Checks": [READ]}, FINISH]))
    assert handle.result(PATIENCE).checks == ()
    assert "only the first answer" in told(handle)[0]["reason"]


def test_without_the_setting_nothing_can_be_proposed(begin):
    asked = []

    def host(request):
        asked.append((request.proposes, request.response))
        return proposing(READ, then=[ASSIGN, FINISH])[len(asked) - 1]

    handle = run(begin(host=host, system={}))
    assert handle.result(PATIENCE).checks == ()
    assert [each["reason"] for each in told(handle)] == ["Checks: unknown key"]
    assert set(asked) == {(False, HostResponse)}


def test_a_proposal_reads_what_the_policy_allows_its_agent(begin):
    rules = [{"verdict": "deny", "agent": "app/*", "tool": "read", "reason": "private"}]
    result = run(begin(host=proposing({**READ, "equals": "Bob"}), policy=rules)).result(PATIENCE)
    (check,) = result.checks
    assert "the policy denies it: private" in check.problem


class Portal(MemoryServer):
    """A memo with a tool that a secret could leak through."""

    def __init__(self, *windows):
        super().__init__(*windows)
        self.heard = set()

    @tool(effect=Effect.READ)
    def look_up(self, target: str, key: str) -> str:
        """Look up a key."""
        self.heard.add(key)
        return "found"


LOOKS = {"tool": "look_up", "target": "memo:one", "args": {"key": "${secret:portal}"}, "equals": "found"}


@pytest.mark.parametrize(("more", "heard"), [({}, set()), ({"parameters": ["key"]}, {"swordfish-4711"})])
def test_a_proposal_gets_only_the_secrets_that_models_may_name(begin, more, heard):
    surface = Portal(MemoryServer.window())
    secrets = {"portal": {"value": "swordfish-4711", **more}}
    result = run(begin(servers=[surface], host=proposing(LOOKS), secrets=secrets)).result(PATIENCE)
    assert surface.heard == heard
    assert [check.held for check in result.checks] == [bool(heard)]


def test_a_proposal_that_quotes_a_secret_is_sent_back(begin, tmp_path):
    supervisor = begin(
        host=proposing({**READ, "matches": "^swordfish-4711$"}, then=[ASSIGN, FINISH]),
        secrets={"portal": {"value": "swordfish-4711"}},
    )
    handle = run(supervisor)
    assert handle.result(PATIENCE).checks == ()
    assert "Checks.0: it quotes a secret" in told(handle)[0]["reason"]
    supervisor.stop()
    assert b"swordfish" not in (tmp_path / "journal.db").read_bytes()
    assert assert_replays(tmp_path / "journal.db", handle.task_id)


def test_proposals_are_replayed_as_recorded(begin, tmp_path):
    supervisor = begin(host=proposing({**READ, "equals": "Bob"}, {**READ, "equals": "Eve"}))
    handle = run(supervisor)
    handle.result(PATIENCE)
    supervisor.stop()
    assert assert_replays(tmp_path / "journal.db", handle.task_id)


def test_proposals_survive_a_restart(begin, until):
    first = begin(host=proposing({**READ, "equals": "Bob"}, then=[{"Status": "PENDING", "Comment": "which?"}]))
    handle = run(first)
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    again = begin(host=lambda _: FINISH).handle(handle.task_id)
    again.answer(again.questions()[0].id, "that one")
    result = again.result(PATIENCE)
    assert [check.source for check in result.checks] == ["model"]


@pytest.mark.parametrize("target", [None, "memo:one"])
def test_the_proposals_of_a_plan_are_read_at_its_end(begin, target):
    answers = iter(proposing({**READ, "equals": "Bob"}, then=[FINISH] * 3))
    plan = [PlanStep(request="one"), PlanStep(request="two", target=target)]
    result = run(begin(host=lambda _: next(answers)), request="", plan=plan).result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, None)
    assert [(check.source, check.held) for check in result.checks] == [("model", True)]


def test_a_task_has_no_checks_of_a_model():
    with pytest.raises(ValueError, match="leave `source` out"):
        Task(request="x", checks=[Check(**READ, source="model")])


def test_host_answers_without_checks_are_refused_at_the_start():
    class Own(HostResponse):
        """Answers of the program's own."""

    own = dataclasses.replace(AGENTS["host"], response=Own)
    with pytest.raises(SettingsError, match="Own, the class of HostAgents' answers, has no checks"):
        Supervisor.start(Settings.load(system=ON), agents=[own])
