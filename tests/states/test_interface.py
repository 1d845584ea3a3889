"""The interface of the specification, state by state."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from callboard.actors.app import AppAgent
from callboard.actors.host import HostAgent
from callboard.actors.linux import LinuxAgent
from callboard.actors.mobile import MobileAgent
from callboard.actors.operator import OperatorAgent
from callboard.actors.processing import MACHINES
from callboard.actors.remote import RemoteAgent
from callboard.actors.states import AppAgentStateManager, HostAgentStateManager, MobileAgentStateManager
from callboard.messages import (
    REMOTE,
    Action,
    AgentKind,
    ApprovalAnswer,
    Assign,
    Captured,
    Cause,
    Held,
    Outcome,
    RoundEnding,
    StepFailure,
    SubtaskErrored,
    SubtaskFailed,
    SubtaskFinished,
    Usage,
)

AGENTS = {
    AgentKind.HOST: HostAgent,
    AgentKind.APP: AppAgent,
    AgentKind.MOBILE: MobileAgent,
    AgentKind.LINUX: LinuxAgent,
    AgentKind.OPERATOR: OperatorAgent,
    REMOTE: RemoteAgent,
}
ADDRESSES = {
    AgentKind.HOST: "host/t",
    AgentKind.APP: "app/memo/one",
    AgentKind.MOBILE: "mobile/emulator",
    AgentKind.LINUX: "linux/local",
    AgentKind.OPERATOR: "operator/memo/one",
    REMOTE: "remote/finance-3/app/memo/one",
}

# The state's question to level 2, whether the round and the subtask end there, and who has the next word.
SELF, HOST = "itself", "the HostAgent"
EXPECTED = {
    (AgentKind.HOST, "CONTINUE"): ("process", False, False, SELF),
    (AgentKind.HOST, "ASSIGN"): (None, False, False, SELF),
    (AgentKind.HOST, "PENDING"): ("process_asker", False, False, SELF),
    (AgentKind.HOST, "CONFIRM"): ("process_confirmation", False, False, SELF),
    (AgentKind.HOST, "FAIL"): ("capture", True, False, SELF),
    (AgentKind.HOST, "ERROR"): ("capture", True, False, SELF),
    (AgentKind.HOST, "FINISH"): (None, True, False, SELF),
    (AgentKind.APP, "CONTINUE"): ("process", False, False, SELF),
    (AgentKind.APP, "SCREENSHOT"): ("process", False, False, SELF),
    (AgentKind.APP, "PENDING"): ("process_asker", False, False, SELF),
    (AgentKind.APP, "CONFIRM"): ("process_confirmation", False, False, SELF),
    (AgentKind.APP, "FAIL"): ("capture", False, True, SELF),
    (AgentKind.APP, "ERROR"): ("capture", True, True, SELF),
    (AgentKind.APP, "FINISH"): (None, False, True, HOST),
    (AgentKind.MOBILE, "CONTINUE"): ("process", False, False, SELF),
    (AgentKind.MOBILE, "FAIL"): ("capture", True, True, SELF),
    (AgentKind.MOBILE, "FINISH"): (None, True, True, HOST),
    (AgentKind.LINUX, "CONTINUE"): ("process", False, False, SELF),
    (AgentKind.LINUX, "FAIL"): ("capture", True, True, SELF),
    (AgentKind.LINUX, "FINISH"): (None, True, True, HOST),
    (REMOTE, "CONTINUE"): ("process", False, False, SELF),
    (REMOTE, "FAIL"): ("capture", False, True, SELF),
    (REMOTE, "FINISH"): (None, False, True, HOST),
}
EXPECTED |= {(AgentKind.OPERATOR, status): found for (kind, status), found in EXPECTED.items() if kind == AgentKind.APP}
EVERY_STATE = pytest.mark.parametrize(("kind", "status"), EXPECTED)


@dataclass
class Level2:
    """A level 2 that only notes its questions."""

    asked: list[str] = field(default_factory=list)
    said: Captured = field(default_factory=lambda: Captured(observation=None, seconds=1.5))

    async def _note(self, what):
        self.asked.append(what)
        return self.said

    async def process(self, run):
        return await self._note("process")

    async def process_resume(self, run):
        return await self._note("process_resume")

    async def process_confirmation(self, run):
        return await self._note("process_confirmation")

    async def process_asker(self, run):
        return await self._note("process_asker")

    async def capture(self, run):
        return await self._note("capture")


def test_the_table_below_names_every_state():
    assert set(EXPECTED) == {(kind, status) for kind, machine in MACHINES.items() for status in machine.transitions}


@EVERY_STATE
def test_each_status_has_a_state_of_that_name(kind, status):
    state = MACHINES[kind].get_state(status)
    assert state is not MACHINES[kind].none_state
    assert state.name() == status


@EVERY_STATE
def test_each_state_knows_the_class_of_its_agents(kind, status):
    assert MACHINES[kind].get_state(status).agent_class() is AGENTS[kind]


@EVERY_STATE
def test_state_knows_whether_the_round_and_the_subtask_end_there(kind, status):
    _, round_ends, subtask_ends, _ = EXPECTED[kind, status]
    state = MACHINES[kind].get_state(status)
    assert (state.is_round_end(), state.is_subtask_end()) == (round_ends, subtask_ends)


@EVERY_STATE
def test_state_knows_the_next_agent(kind, status, run):
    context = run(status, address=ADDRESSES[kind], assign={"host": "host/t"} if kind is not AgentKind.HOST else {})
    expected = {SELF: ADDRESSES[kind], HOST: "host/t"}[EXPECTED[kind, status][3]]
    assert MACHINES[kind].get_state(status).next_agent(context) == expected


@EVERY_STATE
async def test_handling_a_state_asks_level_2_and_returns_its_message(kind, status, run, make):
    asked, *_ = EXPECTED[kind, status]
    level2 = Level2()
    context = run(
        status,
        address=ADDRESSES[kind],
        memory=(make.step("ASSIGN", target=make.target, subtask="write").record,),
        steps=1,
        outcome=Outcome.FAILED,
    )
    said = await MACHINES[kind].get_state(status).handle(level2, context)
    assert level2.asked == ([asked] if asked else [])
    assert (said is level2.said) is (asked is not None)


APPROVED = ApprovalAnswer(id="ask", task_id="t", approved=True)


@pytest.mark.parametrize(
    ("held_by", "answer", "asked"),
    [
        pytest.param(Held.POLICY, None, "process_confirmation", id="asks-where-there-is-no-confirm"),
        pytest.param(Held.POLICY, APPROVED, "process_resume", id="approved"),
        pytest.param(Held.PAUSE, None, "process_resume", id="paused"),
    ],
)
@pytest.mark.parametrize("kind", AgentKind)
async def test_in_continue_held_actions_are_asked_for_or_run_before_a_new_step(kind, held_by, answer, asked, run):
    level2 = Level2()
    context = run(address=ADDRESSES[kind], held=(Action(tool="write"),), held_by=held_by, answer=answer)
    await MACHINES[kind].get_state("CONTINUE").handle(level2, context)
    assert level2.asked == [asked]


@EVERY_STATE
def test_a_state_in_which_nothing_happened_is_its_own_next_state(kind, status, run):
    state = MACHINES[kind].get_state(status)
    assert state.next_state(run(status, address=ADDRESSES[kind])) is state


def test_the_next_state_is_the_shared_state_of_the_status_that_was_decided(run, make):
    context = run().apply(make.step("PENDING"))
    machine = AppAgentStateManager
    assert machine.get_state("CONTINUE").next_state(context) is machine.get_state("PENDING")


@pytest.mark.parametrize("machine", MACHINES.values())
async def test_the_none_state_does_nothing_and_leads_nowhere(machine, run, make):
    none = machine.none_state
    context = run("nonsense").apply(make.step("FINISH"))
    level2 = Level2()
    assert none.name() == ""
    assert await none.handle(level2, context) == Captured(observation=None)
    assert level2.asked == []
    assert none.decide(context) is None
    assert none.next_state(context) is none
    assert not none.is_round_end()
    assert not none.is_subtask_end()


async def test_confirm_resumes_the_approved_actions(run):
    level2 = Level2()
    approved = ApprovalAnswer(id="ask", task_id="t", approved=True)
    await AppAgentStateManager.get_state("CONFIRM").handle(level2, run("CONFIRM", answer=approved))
    assert level2.asked == ["process_resume"]


@pytest.mark.parametrize("status", ["FAIL", "ERROR"])
@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET])
async def test_cleanup_touches_nothing_after_a_stop_from_outside(status, outcome, run):
    level2 = Level2()
    said = await AppAgentStateManager.get_state(status).handle(level2, run(status, outcome=outcome))
    assert (said, level2.asked) == (Captured(observation=None), [])


async def test_assign_hands_the_subtask_that_was_decided_to_its_targets_agent(run, make):
    decided = make.step("ASSIGN", target=make.target, subtask="write a line").record
    before = make.end(Outcome.FAILED).result
    context = run("ASSIGN", address="host/t", memory=(decided,), steps=1, subtasks=(before,), assign={"round": 2})
    said = await HostAgentStateManager.get_state("ASSIGN").handle(Level2(), context)
    assert said == Assign(
        task_id="t",
        run_id="t~2",
        address="app/memo/one",
        request="write a line",
        round=2,
        number=2,
        target=make.target,
        host="host/t",
        subtasks=(before,),
    )


@pytest.mark.parametrize("kind", [AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX])
def test_agent_without_a_host_is_its_own_next_agent(kind, run):
    context = run("FINISH", address=ADDRESSES[kind])
    assert MACHINES[kind].get_state("FINISH").next_agent(context) == ADDRESSES[kind]


def test_assign_has_the_subtasks_agent_as_its_next_agent(run):
    assign = Assign(task_id="t", run_id="t~1", address="app/memo/one", request="write", number=1)
    context = run("ASSIGN", address="host/t").apply(assign)
    assert HostAgentStateManager.get_state("ASSIGN").next_agent(context) == "app/memo/one"


async def test_assign_without_a_target_is_refused_when_it_is_handled(run, make):
    context = run("ASSIGN", address="host/t", memory=(make.step("ASSIGN").record,), steps=1)
    with pytest.raises(LookupError, match="ASSIGN without a target"):
        await HostAgentStateManager.get_state("ASSIGN").handle(Level2(), context)


@pytest.mark.parametrize(
    ("outcome", "ending"),
    [
        (Outcome.FINISHED, SubtaskFinished),
        (Outcome.FAILED, SubtaskFailed),
        (Outcome.REJECTED, SubtaskFailed),
        (Outcome.CANCELLED, SubtaskFailed),
        (Outcome.TIMED_OUT, SubtaskFailed),
        (Outcome.OUT_OF_BUDGET, SubtaskFailed),
        (Outcome.ERROR, SubtaskErrored),
    ],
)
@pytest.mark.parametrize("machine", [AppAgentStateManager, MobileAgentStateManager])
async def test_finish_archives_a_subtask_with_the_recorded_outcome(machine, outcome, ending, run, make):
    causes = (Cause(reason="why"),)
    memory = (make.step("FINISH", "success", comment="said").record,)
    context = run("FINISH", outcome=outcome, causes=causes, memory=memory, steps=1, usage=Usage(steps=1))
    said = await machine.get_state("FINISH").handle(Level2(), context)
    assert type(said) is ending
    assert (said.task_id, said.run_id, said.token) == ("t", "t~1", 7)
    result = said.result
    assert (result.outcome, result.causes, result.output, result.comment) == (outcome, causes, "value 0", "said")
    assert result.usage == Usage(steps=1)


@pytest.mark.parametrize("outcome", Outcome)
async def test_finish_of_a_host_agent_ends_the_round_with_the_recorded_outcome(outcome, run):
    context = run("FINISH", address="host/t", outcome=outcome)
    said = await HostAgentStateManager.get_state("FINISH").handle(Level2(), context)
    assert isinstance(said, RoundEnding)
    assert (said.run_id, said.token, said.outcome) == ("t~0", 7, outcome)


@pytest.mark.parametrize("address", ["host/t", "app/memo/one"])
async def test_finish_without_a_recorded_outcome_is_never_a_success(address, run):
    machine = HostAgentStateManager if address.startswith("host") else AppAgentStateManager
    said = await machine.get_state("FINISH").handle(Level2(), run("FINISH", address=address))
    outcome = said.outcome if isinstance(said, RoundEnding) else said.result.outcome
    assert outcome is Outcome.ERROR


async def test_a_round_hands_on_the_output_of_its_last_finished_subtask(run, make):
    done = (
        make.end(Outcome.FINISHED, output="first").result,
        make.end(Outcome.FINISHED, output="second").result,
        make.end(Outcome.FAILED, output="half").result,
    )
    context = run("FINISH", address="host/t", outcome=Outcome.FINISHED, subtasks=done)
    said = await HostAgentStateManager.get_state("FINISH").handle(Level2(), context)
    assert said.output == "second"


async def test_round_output_is_the_host_models_own_result(run, make):
    done = (make.end(Outcome.FINISHED, output="first").result,)
    memory = (make.step("FINISH", result={"rows": 3}).record,)
    context = run("FINISH", address="host/t", outcome=Outcome.FINISHED, subtasks=done, memory=memory, steps=1)
    said = await HostAgentStateManager.get_state("FINISH").handle(Level2(), context)
    assert said.output == {"rows": 3}


def test_a_failed_last_look_does_not_keep_cleanup_from_ending(run):
    failed = StepFailure(phase=None, causes=(Cause(reason="gone"),))
    move = AppAgentStateManager.get_state("FAIL").decide(run("FAIL", outcome=Outcome.FAILED).apply(failed))
    assert (move.target, move.outcome) == ("FINISH", None)
