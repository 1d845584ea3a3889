"""The decisions of each state: one row per move, and only moves of the table."""

from __future__ import annotations

import itertools

import pytest

from callboard.actors.processing import MACHINES
from callboard.actors.states import GO_ON, STOP, By, Move
from callboard.messages import (
    Action,
    AgentKind,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Assign,
    AtDeadline,
    Cancel,
    Captured,
    Cause,
    Held,
    Observation,
    Outcome,
    PlanStep,
    Question,
    RequestExpired,
    StepFailure,
)

HOST, APP, MOBILE, LINUX, OPERATOR = AgentKind
ADDRESSES = {
    HOST: "host/t",
    APP: "app/memo/one",
    MOBILE: "mobile/emulator",
    LINUX: "linux/local",
    OPERATOR: "operator/memo/one",
}
STATES = [(kind, status) for kind in AgentKind for status in MACHINES[kind].transitions]
WORKING = [(kind, status) for kind, status in STATES if status in {"CONTINUE", "SCREENSHOT"}]
ASKING = [(kind, status) for kind, status in STATES if status in {"PENDING", "CONFIRM"}]
CLEANING = [(kind, status) for kind, status in STATES if status in {"FAIL", "ERROR"}]
FINAL = [(kind, status) for kind, status in STATES if status == "FINISH"]

CANCEL = Cancel(task_id="t")
FAILED = StepFailure(phase=None, causes=(Cause(reason="boom"),))
CAPTURED = Captured(observation=None)
ANSWER = Answer(id="ask", task_id="t", texts=("yes",))
NOBODY = Answer(id="ask", task_id="t", nobody=True)
APPROVED = ApprovalAnswer(id="ask", task_id="t", approved=True)
UNATTENDED = ApprovalAnswer(id="ask", task_id="t", approved=True, unattended=True)
REJECTED = ApprovalAnswer(id="ask", task_id="t", approved=False, by="ann", reason="too risky")
EXPIRED = RequestExpired(id="ask", task_id="t")
DENIED, FAILS, ALLOWED = (
    RequestExpired(id="ask", task_id="t", at_deadline=then)
    for then in (AtDeadline.DENY, AtDeadline.FAIL, AtDeadline.ALLOW)
)
GOES_ON = Answer(id="ask", task_id="t", texts=(GO_ON,))
STOPS = Answer(id="ask", task_id="t", texts=(STOP,))
SPENT = StepFailure(phase=None, causes=(Cause(reason="no tokens"),), outcome=Outcome.OUT_OF_BUDGET)
LATE = StepFailure(phase=None, causes=(Cause(reason="too slow"),), outcome=Outcome.TIMED_OUT)
QUESTION = Question(
    id="ask", task_id="t", run_id="t~1", token=7, address="app/a/b", questions=(AskedQuestion(text="which?"),)
)
REQUEST = ApprovalRequest(
    id="ask",
    task_id="t",
    run_id="t~1",
    token=7,
    address="app/a/b",
    actions=(),
    reason="rule 1",
    observation=Observation(),
)
ASSIGN = Assign(task_id="t", run_id="t~1", address="app/memo/one", request="write", number=1)


CLAIMS = [
    *((kind, "FINISH") for kind in AgentKind),
    (HOST, "ASSIGN"),
    *((kind, said) for kind in (HOST, APP, OPERATOR) for said in ("CONFIRM", "PENDING")),
    *((kind, "SCREENSHOT") for kind in (APP, OPERATOR)),
]


def decide(kind, run):
    return MACHINES[kind].get_state(run.status).decide(run)


def ending(move):
    return None if move is None else (move.target, move.by, move.outcome)


@pytest.mark.parametrize(("kind", "status"), [pair for pair in STATES if pair not in CLEANING + FINAL])
def test_a_cancel_leads_to_fail_by_the_system_from_every_state_at_work(kind, status, run):
    context = run(status, address=ADDRESSES[kind]).apply(CANCEL)
    assert decide(kind, context) == Move("FAIL", By.SYSTEM)
    assert context.outcome is Outcome.CANCELLED


@pytest.mark.parametrize(("kind", "status"), [pair for pair in STATES if pair not in CLEANING + FINAL])
def test_an_exception_leads_to_error_or_to_fail_where_there_is_no_error(kind, status, run):
    context = run(status, address=ADDRESSES[kind]).apply(FAILED)
    expected = ("FAIL", Outcome.FAILED) if kind in {MOBILE, LINUX} else ("ERROR", Outcome.ERROR)
    move = decide(kind, context)
    assert (move.target, move.outcome, move.by) == (*expected, By.SYSTEM)


@pytest.mark.parametrize("failed", [SPENT, LATE])
@pytest.mark.parametrize(("kind", "status"), WORKING + ASKING)
def test_a_step_out_of_time_or_budget_leads_to_fail_with_that_outcome(kind, status, failed, run):
    context = run(status, address=ADDRESSES[kind]).apply(failed)
    assert decide(kind, context) == Move("FAIL", By.SYSTEM, failed.outcome)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(QUESTION, None, id="asked"),
        pytest.param(GOES_ON, None, id="go-on"),
        pytest.param(STOPS, ("FAIL", By.USER, Outcome.OUT_OF_BUDGET), id="stop"),
        pytest.param(EXPIRED, ("FAIL", By.TIMEOUT, Outcome.OUT_OF_BUDGET), id="expired"),
    ],
)
@pytest.mark.parametrize(("kind", "status"), WORKING)
def test_answer_of_a_person_decides_at_a_budget_limit(kind, status, message, expected, run):
    context = run(status, address=ADDRESSES[kind]).apply(message)
    assert ending(decide(kind, context)) == expected


@pytest.mark.parametrize(("kind", "status"), WORKING)
def test_the_last_allowed_step_leads_to_fail_as_out_of_budget(kind, status, run, make):
    def after(*records):
        return run(status, address=ADDRESSES[kind], limits={"steps": 2}, memory=records, steps=len(records))

    step = make.step().record
    resumed = step.model_copy(update={"resumed": True})
    over = after(step, resumed, step)
    assert decide(kind, after()) is None
    assert decide(kind, after(step)) is None
    assert decide(kind, after(step, resumed)) is None
    assert decide(kind, over) == Move("FAIL", By.SYSTEM, Outcome.OUT_OF_BUDGET, "the limit of 2 steps was reached")


def test_limit_of_one_step_is_described_in_the_singular(run, make):
    over = run("CONTINUE", address=ADDRESSES["app"], limits={"steps": 1}, memory=(make.step().record,), steps=1)
    assert decide("app", over) == Move("FAIL", By.SYSTEM, Outcome.OUT_OF_BUDGET, "the limit of 1 step was reached")


MEANT = {"FINISH": Outcome.FINISHED, "FAIL": Outcome.FAILED, "ERROR": Outcome.ERROR}


@pytest.mark.parametrize(
    ("kind", "said"), [(kind, said) for kind in AgentKind for said in MACHINES[kind].offered("CONTINUE")]
)
def test_in_continue_the_models_status_is_followed_with_its_outcome(kind, said, run, make):
    context = run(address=ADDRESSES[kind]).apply(make.step(said, "success"))
    assert ending(decide(kind, context)) == (said, By.MODEL, MEANT.get(said))


@pytest.mark.parametrize(("kind", "status"), [pair for pair in WORKING if pair[0] in {HOST, APP, OPERATOR}])
def test_action_held_by_the_policy_leads_to_confirm_at_any_status(kind, status, run, make):
    for said in MACHINES[kind].offered(status):
        context = run(status, address=ADDRESSES[kind]).apply(make.step(said, held=1, by_policy="rule 1"))
        assert decide(kind, context) == Move("CONFIRM", By.SYSTEM)


@pytest.mark.parametrize("kind", [MOBILE, LINUX])
def test_action_held_by_the_policy_stays_at_any_status_without_confirm(kind, run, make):
    for said in MACHINES[kind].offered("CONTINUE"):
        context = run(address=ADDRESSES[kind]).apply(make.step(said, held=1, by_policy="rule 1"))
        assert decide(kind, context) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(REQUEST, None, id="asked"),
        pytest.param(APPROVED, None, id="approved-but-not-run-yet"),
        pytest.param(REJECTED, ("FAIL", By.USER, Outcome.REJECTED), id="rejected"),
        pytest.param(DENIED, ("FAIL", By.TIMEOUT, Outcome.REJECTED), id="expired-deny"),
        pytest.param(FAILS, ("FAIL", By.TIMEOUT, Outcome.TIMED_OUT), id="expired-fail"),
        pytest.param(ALLOWED, None, id="expired-allow"),
    ],
)
@pytest.mark.parametrize("kind", [MOBILE, LINUX])
def test_without_confirm_an_approval_is_waited_for_in_continue(kind, message, expected, run, make):
    held = run(address=ADDRESSES[kind]).apply(make.step("FINISH", held=1, by_policy="rule 1"))
    assert ending(decide(kind, held.apply(message))) == expected


@pytest.mark.parametrize("kind", [MOBILE, LINUX])
def test_without_confirm_the_status_is_followed_after_approved_actions_ran(kind, run, make):
    held = run(address=ADDRESSES[kind]).apply(make.step("FINISH", held=1, by_policy="rule 1"))
    ran = held.apply(REQUEST).apply(APPROVED).apply(make.step("FINISH", "success"))
    assert ending(decide(kind, ran)) == ("FINISH", By.MODEL, Outcome.FINISHED)


@pytest.mark.parametrize(
    ("kind", "status"), [pair for pair in STATES if pair[1] in {"CONTINUE", "SCREENSHOT", "CONFIRM"}]
)
def test_action_held_by_a_pause_stays_where_it_is(kind, status, run, make):
    step = make.step("CONTINUE", held=1).model_copy(update={"held_by": Held.PAUSE})
    assert decide(kind, run(status, address=ADDRESSES[kind]).apply(step)) is None


@pytest.mark.parametrize(("kind", "said"), CLAIMS)
def test_a_claim_does_not_hold_if_an_action_of_its_answer_was_not_run(kind, said, run, make):
    context = run(address=ADDRESSES[kind]).apply(make.step(said, "success", "skipped"))
    assert decide(kind, context) == Move("CONTINUE", By.SYSTEM)


@pytest.mark.parametrize(("kind", "said"), CLAIMS)
def test_a_claim_does_not_hold_if_an_action_of_its_answer_failed(kind, said, run, make):
    context = run(address=ADDRESSES[kind]).apply(make.step(said, "success", "failure", "skipped"))
    assert decide(kind, context) == Move("CONTINUE", By.SYSTEM)


@pytest.mark.parametrize("said", ["CONTINUE", "FAIL", "ERROR"])
def test_status_without_a_claim_holds_although_an_action_failed(said, run, make):
    context = run().apply(make.step(said, "failure"))
    move = decide(APP, context)
    assert (move.target, move.by) == (said, By.MODEL)


@pytest.mark.parametrize(("kind", "status"), WORKING)
def test_repeated_action_failures_lead_to_fail_by_the_system(kind, status, run, make):
    context = run(status, address=ADDRESSES[kind], limits={"action_failures": 2})
    once = context.apply(make.step("CONTINUE", "failure"))
    twice = once.apply(make.step("CONTINUE", "failure"))
    assert decide(kind, once).target != "FAIL"
    expected = Move("FAIL", By.SYSTEM, Outcome.FAILED, "repeated action failures: 2 in a row")
    assert decide(kind, twice) == expected


NO_PROGRESS = Move("FAIL", By.SYSTEM, Outcome.FAILED, "no progress: the same 3 times, and nothing changed")


@pytest.mark.parametrize(("kind", "status"), WORKING)
def test_step_repeated_after_a_warning_leads_to_fail(kind, status, run, make):
    told = run(status, address=ADDRESSES[kind], limits={"repeats": 2})
    for _ in range(2):
        told = told.apply(make.step("CONTINUE", "success"))
    assert decide(kind, told).target == "CONTINUE"
    assert decide(kind, told.apply(make.step("CONTINUE", "success"))) == NO_PROGRESS


@pytest.mark.parametrize("kind", [HOST, APP, OPERATOR])
def test_approved_step_repeated_after_a_warning_leads_to_fail(kind, run, make):
    told = run("CONFIRM", address=ADDRESSES[kind], limits={"repeats": 2}, answer=APPROVED)
    for _ in range(2):
        told = told.apply(make.step("CONTINUE", "success"))
    assert decide(kind, told) == Move("CONTINUE", By.USER)
    assert decide(kind, told.apply(make.step("CONTINUE", "success"))) == NO_PROGRESS


@pytest.mark.parametrize(
    ("step", "times", "expected"),
    [
        pytest.param(("SCREENSHOT", ("a",)), 1, ("SCREENSHOT", By.MODEL, None), id="stays"),
        pytest.param(("SCREENSHOT", ("a",)), 2, ("CONTINUE", By.SYSTEM, None), id="the-limit-is-reached"),
        pytest.param(("SCREENSHOT", ()), 1, ("CONTINUE", By.SYSTEM, None), id="names-nothing"),
        pytest.param(("CONTINUE", ("a",)), 1, ("SCREENSHOT", By.MODEL, None), id="continue-but-names-some"),
        pytest.param(("CONTINUE", ()), 1, ("CONTINUE", By.MODEL, None), id="done"),
        pytest.param(("CONFIRM", ("a",)), 1, ("CONFIRM", By.MODEL, None), id="confirm-comes-first"),
    ],
)
def test_screenshot_stays_while_the_model_names_controls_up_to_the_limit(step, times, expected, run, make):
    said, named = step
    context = run("SCREENSHOT", reannotations=times, limits={"reannotations": 2})
    assert ending(decide(APP, context.apply(make.step(said, reannotate=named)))) == expected


@pytest.mark.parametrize("kind", [HOST, APP, OPERATOR])
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(ANSWER, ("CONTINUE", By.USER, None), id="answered"),
        pytest.param(NOBODY, ("CONTINUE", By.SYSTEM, None), id="nobody"),
        pytest.param(EXPIRED, ("FAIL", By.TIMEOUT, Outcome.TIMED_OUT), id="expired"),
        pytest.param(QUESTION, None, id="asked"),
    ],
)
def test_pending_continues_with_the_answer_or_its_absence(kind, message, expected, run):
    context = run("PENDING", address=ADDRESSES[kind]).apply(message)
    assert ending(decide(kind, context)) == expected


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        pytest.param(HOST, REJECTED, ("FAIL", By.USER, Outcome.REJECTED), id="host-rejected"),
        pytest.param(APP, REJECTED, ("FINISH", By.USER, Outcome.REJECTED), id="app-rejected"),
        pytest.param(HOST, DENIED, ("FAIL", By.TIMEOUT, Outcome.REJECTED), id="host-expired-deny"),
        pytest.param(APP, DENIED, ("FINISH", By.TIMEOUT, Outcome.REJECTED), id="app-expired-deny"),
        *(
            pytest.param(kind, message, expected, id=f"{kind}-{name}")
            for kind in (HOST, APP, OPERATOR)
            for name, message, expected in (
                ("asked", REQUEST, None),
                ("approved-but-not-run-yet", APPROVED, None),
                ("expired-fail", FAILS, ("FAIL", By.TIMEOUT, Outcome.TIMED_OUT)),
                ("expired-allow", ALLOWED, None),
            )
        ),
    ],
)
def test_confirm_waits_for_a_verdict(kind, message, expected, run):
    context = run("CONFIRM", address=ADDRESSES[kind]).apply(message)
    assert ending(decide(kind, context)) == expected


@pytest.mark.parametrize("kind", [HOST, APP, OPERATOR])
@pytest.mark.parametrize(("answer", "by"), [(APPROVED, By.USER), (UNATTENDED, By.SYSTEM), (ALLOWED, By.SYSTEM)])
def test_confirm_continues_once_the_approved_actions_ran(kind, answer, by, run, make):
    context = run("CONFIRM", address=ADDRESSES[kind]).apply(answer).apply(make.step("CONFIRM", "success"))
    assert decide(kind, context) == Move("CONTINUE", by)


def test_rejection_has_its_author_and_reason(run):
    context = run("CONFIRM").apply(REJECTED)
    assert decide(APP, context).reason == "rejected by ann: too risky"
    nameless = ApprovalAnswer(id="ask", task_id="t", approved=False)
    assert decide(APP, run("CONFIRM").apply(nameless)).reason == "rejected by a person: no reason given"


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("outcome", Outcome)
def test_assign_continues_or_ends_by_the_subtasks_outcome(outcome, followed, run, make):
    step = PlanStep(request="write") if followed else None
    context = run("ASSIGN", address="host/t", assign={"plan_step": step}).apply(make.end(outcome))
    ends = followed or outcome is Outcome.ERROR
    assert ending(decide(HOST, context)) == (("FINISH", By.SYSTEM, outcome) if ends else ("CONTINUE", By.SYSTEM, None))


def test_assign_waits_while_the_subtask_is_on_its_way(run):
    assert decide(HOST, run("ASSIGN", address="host/t").apply(ASSIGN)) is None


@pytest.mark.parametrize(("kind", "status"), CLEANING)
@pytest.mark.parametrize("message", [CAPTURED, FAILED])
def test_cleanup_continues_to_finish_and_decides_no_outcome(kind, status, message, run):
    context = run(status, address=ADDRESSES[kind], outcome=Outcome.FAILED).apply(message)
    assert decide(kind, context) == Move("FINISH", By.SYSTEM)


@pytest.mark.parametrize(("kind", "status"), STATES)
def test_no_state_decides_a_move_that_the_table_does_not_have(kind, status, run, make):
    machine = MACHINES[kind]
    context = run(status, address=ADDRESSES[kind], limits={"steps": 3, "action_failures": 2, "reannotations": 2})
    runs = [context, run(status, address=ADDRESSES[kind], limits={"steps": 1}, steps=1)]
    runs += [context.apply(message) for message in (CANCEL, FAILED, CAPTURED)]
    if status in {"CONTINUE", "SCREENSHOT"}:
        heard = (QUESTION, GOES_ON, STOPS, REQUEST, APPROVED, UNATTENDED, REJECTED, DENIED, FAILS, ALLOWED, SPENT, LATE)
        for held in ((), (Action(tool="write"),)):
            asking = run(status, address=ADDRESSES[kind], held=held, held_by=Held.POLICY if held else Held.NOT)
            runs += [asking.apply(message) for message in heard]
    if status == "PENDING":
        runs += [context.apply(message) for message in (QUESTION, ANSWER, NOBODY, EXPIRED, SPENT, LATE)]
    if status == "CONFIRM":
        heard = (REQUEST, APPROVED, UNATTENDED, REJECTED, DENIED, FAILS, ALLOWED, SPENT, LATE)
        runs += [context.apply(message) for message in heard]
        runs += [context.apply(one).apply(make.step("CONFIRM", "failure")) for one in (APPROVED, UNATTENDED, ALLOWED)]
    if status == "ASSIGN":
        runs += [context.apply(make.end(outcome)) for outcome in Outcome]
    results = ((), ("success",), ("failure",), ("skipped",), ("success", "failure", "skipped"))
    for said, ran, named, times in itertools.product(machine.offered(status), results, ((), ("a",)), range(3)):
        worn = run(status, address=ADDRESSES[kind], reannotations=times, failures=times, limits={"action_failures": 2})
        runs.append(worn.apply(make.step(said, *ran, reannotate=named)))
        runs.append(worn.apply(make.step(said, *ran, held=1, by_policy="rule 1", reannotate=named)))
    moves = [move for one in runs if (move := decide(kind, one)) is not None]
    for move in moves:
        machine.check(status, move.target, move.by)
    assert bool(moves) is (status != "FINISH")


@pytest.mark.parametrize(("kind", "status"), FINAL)
def test_finish_leads_nowhere_whatever_happens(kind, status, run, make):
    context = run(status, address=ADDRESSES[kind])
    messages = (CANCEL, FAILED, CAPTURED, ANSWER, APPROVED, REJECTED, DENIED, FAILS, ALLOWED, make.step("CONTINUE"))
    assert [decide(kind, context.apply(message)) for message in messages] == [None] * len(messages)
