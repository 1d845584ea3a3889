"""The run: one frozen value, and its change by each message."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.states import GO_ON, STOPPED, AppAgentStateManager, By, Move, Run, see
from callboard.config import Limits
from callboard.messages import (
    Action,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Assign,
    AtDeadline,
    Cancel,
    Captured,
    Cause,
    Check,
    CheckResult,
    CommandResult,
    Decision,
    Held,
    Limit,
    Observation,
    Outcome,
    Pause,
    Question,
    RequestExpired,
    ResultStatus,
    Resume,
    StepDone,
    StepFailure,
    StepRecord,
    SubtaskFinished,
    SubtaskResult,
    Usage,
)

APPROVED = ApprovalAnswer(id="ask", task_id="t", approved=True)
EXPIRED = RequestExpired(id="ask", task_id="t")
ALLOWED = RequestExpired(id="ask", task_id="t", at_deadline=AtDeadline.ALLOW)
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


def test_a_run_is_frozen(run):
    with pytest.raises(dataclasses.FrozenInstanceError):
        run().status = "FAIL"


def test_a_run_begins_in_the_initial_status_with_nothing_done(run, make):
    assign = run(assign={"subtasks": (make.end(Outcome.FINISHED).result,)}).assign
    begun = Run.begin(assign, Limits(), "CONTINUE")
    assert begun == Run(assign=assign, limits=Limits(), status="CONTINUE", subtasks=assign.subtasks)


def test_memory_plan_and_calls_carry_over_to_a_tasks_next_assignment(run, make):
    before = run().apply(make.step("FINISH", "success", plan=("next",)))
    begun = Run.begin(run(assign={"run_id": "t~2", "number": 2}).assign, Limits(), "CONTINUE", before)
    assert (begun.memory, begun.plan, begun.asked) == (before.memory, ("next",), 1)
    assert (begun.steps, begun.records, begun.usage) == (0, (), Usage())


def test_assignment_of_another_task_keeps_no_memory(run, make):
    before = run().apply(make.step("FINISH", "success", plan=("next",)))
    other = run(task="other").assign
    assert Run.begin(other, Limits(), "CONTINUE", before) == Run.begin(other, Limits(), "CONTINUE")


def test_assignment_keeps_no_ending_of_an_earlier_one(run, make):
    before = run().apply(make.step("FAIL", "failure")).moved(Move("FAIL", By.MODEL, Outcome.FAILED), reannotating=False)
    begun = Run.begin(before.assign, Limits(), "CONTINUE", before)
    assert (begun.outcome, begun.causes, begun.failures, begun.last, begun.notes) == (None, (), 0, None, ())


# Results of a step


def test_a_step_is_remembered_and_counted(run, make):
    step = make.step("CONTINUE", "success", plan=("a", "b"))
    after = run().apply(step).apply(step)
    assert after.memory == after.records == (step.record, step.record)
    assert (after.steps, after.asked, after.plan) == (2, 2, ("a", "b"))
    assert after.usage == step.usage + step.usage


def test_a_plan_is_kept_until_the_model_gives_another(run, make):
    first = run().apply(make.step("CONTINUE", plan=("a", "b")))
    kept = first.apply(make.step("CONTINUE"))
    changed = kept.apply(make.step("CONTINUE", plan=("c",)))
    assert (kept.plan, changed.plan) == (("a", "b"), ("c",))


def test_failed_actions_in_a_row_are_counted_until_one_step_succeeds(run, make):
    ran = [("failure",), (), ("failure", "skipped"), ("skipped",), ("success", "failure"), ("success",), ("failure",)]
    counts, context = [], run()
    for results in ran:
        context = context.apply(make.step("CONTINUE", *results))
        counts.append(context.failures)
    assert counts == [1, 1, 2, 2, 3, 0, 1]


def test_failed_and_skipped_actions_become_notes_for_the_next_step_only(run, make):
    after = run().apply(make.step("CONTINUE", "success", "failure", "skipped"))
    assert after.notes == ("write failed: no", "write was not run: no")
    assert after.apply(make.step("CONTINUE", "success")).notes == ()


@pytest.mark.parametrize("claim", ["FINISH", "ASSIGN", "CONFIRM", "PENDING", "SCREENSHOT"])
def test_claim_that_does_not_hold_becomes_a_note(claim, run, make):
    after = run().apply(make.step(claim, "failure"))
    assert after.notes[-1] == f"{claim} does not hold, because an action of the same answer failed"


@pytest.mark.parametrize("claim", ["FINISH", "ASSIGN", "CONFIRM", "PENDING", "SCREENSHOT"])
def test_claim_beside_a_skipped_action_becomes_a_note(claim, run, make):
    after = run().apply(make.step(claim, "success", "skipped"))
    assert after.notes[-1] == f"{claim} does not hold, because an action of the same answer was not run"


def test_held_actions_are_kept_with_their_rule_until_the_next_step(run, make):
    held = run().apply(make.step("FINISH", held=2, by_policy="rule 1"))
    assert (held.held, held.held_why) == ((Action(tool="write"), Action(tool="write")), "rule 1")
    assert held.held_by is Held.POLICY
    after = held.apply(make.step("CONTINUE", "success"))
    assert (after.held, after.held_by, after.held_why) == ((), Held.NOT, "")


def test_a_failed_step_is_used_up_but_not_remembered(run):
    used = Usage(steps=1, model_calls=2)
    after = run(steps=0).apply(StepFailure(phase=None, causes=(Cause(reason="boom"),), usage=used))
    assert (after.memory, after.steps, after.usage, after.asked) == ((), 0, used, 2)


def test_files_of_a_failed_step_are_kept(run, make):
    wrote = CommandResult(
        call_id="1", tool="save", status=ResultStatus.SUCCESS, artifacts=("/new", "/old"), made=("/new",)
    )
    failed = StepFailure(phase=None, causes=(Cause(reason="boom"),), results=(wrote,))
    after = run().apply(failed).apply(make.step("CONTINUE", "success"))
    assert (after.artifacts, after.made) == (("/new", "/old"), ("/new",))


def test_failed_actions_are_counted_with_those_of_interrupted_steps(run, make):
    late = CommandResult(call_id="1", tool="save", status=ResultStatus.FAILURE, in_doubt=True)
    wrote = CommandResult(call_id="2", tool="save", status=ResultStatus.SUCCESS)
    failed = StepFailure(phase=None, causes=(Cause(reason="boom"),), results=(wrote, late))
    after = run().apply(make.step("CONTINUE", "success", "failure", "skipped")).apply(failed)
    assert after.apply(make.step("CONTINUE", "dry_run", "none", "failure")).failed_actions == 3


def test_a_capture_changes_nothing_else(run):
    message = Captured(observation=None)
    before = run("FAIL", busy=True)
    assert before.apply(message) == dataclasses.replace(before, last=message, busy=False)


# Its output


def test_output_is_the_models_own_result_before_any_value(run, make):
    assert run().output is None
    acted = run().apply(make.step("CONTINUE", "success", "success"))
    assert acted.output == "value 1"
    assert acted.apply(make.step("FINISH", "failure")).output == "value 1"
    assert acted.apply(make.step("FINISH", result=["own"])).output == ["own"]


def test_only_the_steps_of_this_assignment_count_for_what_it_gives(run, make):
    before = run().apply(make.step("FINISH", "success", comment="old"))
    begun = Run.begin(before.assign, Limits(), "CONTINUE", before)
    assert (begun.output, begun.decision_comment, begun.artifacts) == (None, "", ())


def test_artifacts_are_given_once_and_in_order(run):
    def wrote(*paths):
        result = CommandResult(call_id="1", tool="save", status=ResultStatus.SUCCESS, artifacts=paths)
        record = StepRecord(
            step=1,
            status="CONTINUE",
            observation=Observation(),
            decision=Decision(status="CONTINUE"),
            results=(result,),
        )
        return StepDone(record=record)

    after = run().apply(wrote("/b", "/a")).apply(wrote("/a", "/c"))
    assert after.artifacts == ("/b", "/a", "/c")


# Waiting


@pytest.mark.parametrize(("message", "awaited"), [(QUESTION, "ask"), (REQUEST, "ask")])
def test_a_question_or_approval_is_waited_for_by_its_id(message, awaited, run):
    assert run("PENDING").apply(message).waiting == awaited


def test_an_assigned_subtask_is_waited_for_by_its_run(run):
    assign = Assign(task_id="t", run_id="t~3", address="app/a/b", request="write", number=3)
    assert run("ASSIGN", address="host/t").apply(assign).waiting == "t~3"


def test_an_answer_becomes_a_note_beside_its_question(run, make):
    questions = (AskedQuestion(text="which?"), AskedQuestion(text="why?"))
    asked = run("PENDING").apply(make.step("PENDING", questions=questions))
    put = QUESTION.model_copy(update={"questions": questions})
    after = asked.apply(put).apply(Answer(id="ask", task_id="t", texts=("this", "that")))
    assert after.waiting == ""
    assert after.notes == ("asked 'which?', a person answered 'this'", "asked 'why?', a person answered 'that'")


def test_answers_are_kept_until_the_next_step(run, make):
    asked = run("PENDING").apply(make.step("PENDING", questions=(AskedQuestion(text="which?"),)))
    answered = asked.apply(Answer(id="ask", task_id="t", texts=("this",)))
    assert (asked.replies, answered.replies, answered.apply(make.step("CONTINUE")).replies) == ((), ("this",), ())
    assert asked.apply(Answer(id="ask", task_id="t", nobody=True)).replies == ()


def test_model_gets_a_note_when_its_question_has_no_answerer(run, make):
    asked = run().apply(make.step("PENDING", questions=(AskedQuestion(text="which?"),)))
    after = asked.apply(Answer(id="ask", task_id="t", nobody=True))
    assert after.notes == ("nobody will answer questions: decide yourself, or say FAIL",)


def test_an_approval_is_kept_until_the_status_changes(run):
    approved = run("CONFIRM", waiting="ask").apply(APPROVED)
    assert (approved.waiting, approved.answer) == ("", APPROVED)
    assert approved.moved(Move("CONTINUE", By.USER), reannotating=False).answer is None


DEADLINES = [EXPIRED.model_copy(update={"at_deadline": then}) for then in (AtDeadline.DENY, AtDeadline.FAIL)]


@pytest.mark.parametrize("message", [*DEADLINES, Cancel(task_id="t")])
def test_held_actions_never_run_after_a_deadline_or_a_cancel(message, run):
    after = run("CONFIRM", waiting="ask", held=(Action(tool="write"),), held_by=Held.POLICY).apply(message)
    assert (after.waiting, after.answer) == ("", None)
    move = AppAgentStateManager.get_state("CONFIRM").decide(after)
    assert move.target in {"FAIL", "FINISH"}
    assert after.moved(move, reannotating=False).held == ()


def test_a_cancel_drops_at_once_what_was_held_and_ends_a_pause(run):
    after = run(held=(Action(tool="write"),), held_by=Held.PAUSE, paused=True).apply(Cancel(task_id="t"))
    assert (after.held, after.held_by, after.paused) == ((), Held.NOT, False)


def test_a_deadline_that_allows_is_an_approval_that_no_person_gave(run):
    held = (Action(tool="write"),)
    after = run("CONFIRM", waiting="ask", held=held).apply(ALLOWED)
    assert (after.waiting, after.held) == ("", held)
    assert (after.answer.approved, after.answer.unattended, after.answer.by) == (True, True, "")


def test_a_pause_and_its_end_change_nothing_else(run, make):
    before = run(busy=True).apply(make.step("CONTINUE", "success"))
    paused = before.apply(Pause(task_id="t"))
    assert paused == dataclasses.replace(before, paused=True)
    assert paused.apply(Resume(task_id="t")) == before


def test_an_approval_outlives_a_pause_of_the_approved_actions(run, make):
    approved = run(held=(Action(tool="write"),), held_by=Held.POLICY, waiting="ask").apply(APPROVED)
    step = make.step("CONTINUE", held=1)
    paused = approved.apply(step.model_copy(update={"held_by": Held.PAUSE}))
    assert (paused.answer, len(paused.held)) == (APPROVED, 1)
    assert paused.apply(make.step("CONTINUE", "success")).answer is None


def test_going_on_at_a_limit_is_counted_and_is_no_note(run):
    limit = Limit(node="the task t", kind="steps")
    question = QUESTION.model_copy(update={"limit": limit})
    asked = run().apply(question)
    once = asked.apply(Answer(id="ask", task_id="t", texts=(GO_ON,)))
    twice = once.apply(question).apply(Answer(id="ask", task_id="t", texts=(GO_ON,)))
    assert [one.grants for one in (asked, once, twice)] == [(), (limit,), (limit, limit)]
    assert twice.notes == ()


def test_the_same_words_as_the_answer_to_a_models_question_grant_nothing(run):
    after = run("PENDING").apply(QUESTION).apply(Answer(id="ask", task_id="t", texts=(GO_ON,)))
    assert (after.grants, after.notes) == ((), (f"asked 'which?', a person answered {GO_ON!r}",))


def test_usage_of_a_step_broken_off_at_a_limit_is_counted(run):
    asked = run().apply(QUESTION.model_copy(update={"usage": Usage(model_calls=2)}))
    assert (asked.usage, asked.asked, asked.steps) == (Usage(model_calls=2), 2, 0)


# Loops


def looked(step, fingerprint):
    """Give the same step on another surface."""
    seen = step.record.observation.model_copy(update={"fingerprint": fingerprint})
    return step.model_copy(update={"record": step.record.model_copy(update={"observation": seen})})


def counts(context, *steps):
    found = []
    for step in steps:
        context = context.apply(step)
        found.append(context.repeats)
    return found


def test_the_same_step_on_the_same_surface_is_counted(run, make):
    step = make.step("CONTINUE", "success")
    assert counts(run(), step, step, step) == [1, 2, 3]


def test_changed_surface_restarts_the_repetition_count(run, make):
    step = make.step("CONTINUE", "success")
    assert counts(run(), step, step, looked(step, "other"), looked(step, "other")) == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"said": "PENDING"}, id="status"),
        pytest.param({"ran": ("success",)}, id="actions"),
        pytest.param({"decision": {"questions": (AskedQuestion(text="which?"),)}}, id="questions"),
    ],
)
def test_another_step_on_the_same_surface_is_counted_apart(other, run, make):
    step = make.step("CONTINUE")
    apart = make.step(other.get("said", "CONTINUE"), *other.get("ran", ()), **other.get("decision", {}))
    assert counts(run(), step, apart, step, apart) == [1, 1, 2, 2]


def test_a_step_in_another_state_is_counted_apart(run, make):
    step = make.step("CONTINUE")
    there = step.model_copy(update={"record": step.record.model_copy(update={"status": "SCREENSHOT"})})
    assert counts(run(), step, there, step) == [1, 1, 2]


def test_held_step_that_is_resumed_is_no_repetition(run, make):
    step = make.step("CONTINUE")
    resumed = step.model_copy(update={"record": step.record.model_copy(update={"resumed": True})})
    assert counts(run(), step, resumed, step, resumed, resumed) == [1, 1, 2, 2, 2]


def test_steps_of_an_earlier_assignment_do_not_count_as_repeated(run, make):
    step = make.step("CONTINUE")
    before = run().apply(step).apply(step)
    assert Run.begin(before.assign, Limits(), "CONTINUE", before).apply(step).repeats == 1


def test_model_gets_a_note_at_the_limit_of_repetitions(run, make):
    context, told = run(limits={"repeats": 2}), []
    for _ in range(3):
        context = context.apply(make.step("CONTINUE"))
        told.append(context.notes)
    assert told == [
        (),
        ("you did the same 2 times, and nothing changed: do something else, or say FAIL",),
        ("you did the same 3 times, and nothing changed: do something else, or say FAIL",),
    ]


def test_a_subtasks_result_joins_those_before_it(run, make):
    end = make.end(Outcome.FAILED)
    after = run("ASSIGN", address="host/t", waiting="t~1", subtasks=(end.result,)).apply(end)
    assert (after.waiting, after.subtasks) == ("", (end.result, end.result))


# Stale messages


@pytest.mark.parametrize("message", [Answer(id="ask", task_id="t"), APPROVED, EXPIRED])
def test_only_the_answer_to_what_is_waited_for_is_expected(message, run):
    assert run("PENDING", waiting="ask").expects(message)
    assert not run("PENDING", waiting="later").expects(message)
    assert not run("CONTINUE").expects(message)


def test_only_the_end_of_the_assigned_subtask_is_expected(run, make):
    assert run("ASSIGN", waiting="t~1", awaited=("t~1",)).expects(make.end(Outcome.FINISHED, "t~1"))
    assert not run("ASSIGN", waiting="t~2", awaited=("t~2",)).expects(make.end(Outcome.FINISHED, "t~1"))
    assert run("ASSIGN", waiting="t~2", awaited=("t~2", "t~1")).expects(make.end(Outcome.FINISHED, "t~1"))
    assert not run("CONTINUE").expects(make.end(Outcome.FINISHED, "t~1"))


@pytest.mark.parametrize("outcome", Outcome)
def test_a_cancel_is_expected_until_archiving_and_the_outcome_stays(outcome, run):
    assert run().expects(Cancel(task_id="t"))
    cleaning = run("FAIL", outcome=outcome, job=3)
    assert cleaning.expects(Cancel(task_id="t")) is (outcome not in STOPPED)  # there is no last look to give up
    stopped = cleaning.apply(Cancel(task_id="t"))
    assert (stopped.outcome, stopped.job) == (outcome, 4)
    assert not run("FINISH", outcome=outcome).expects(Cancel(task_id="t"))


# The outcome


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET])
def test_a_cancel_writes_its_outcome_and_makes_the_running_job_stale(outcome, run):
    after = run(job=3, busy=True).apply(Cancel(task_id="t", outcome=outcome, reason="enough"))
    assert (after.outcome, after.causes) == (outcome, (Cause(reason="enough", where="app/memo/one"),))
    assert (after.job, after.busy) == (4, False)


@pytest.mark.parametrize("first", Outcome)
@pytest.mark.parametrize("second", Outcome)
def test_an_outcome_is_written_once(first, second, run):
    causes = (Cause(reason="first"),)
    moved = run(outcome=first, causes=causes).moved(Move("FINISH", By.SYSTEM, second, "second"), reannotating=False)
    assert (moved.status, moved.outcome, moved.causes) == ("FINISH", first, causes)


def test_a_move_without_an_outcome_writes_none(run):
    moved = run().moved(Move("CONTINUE", By.MODEL), reannotating=False)
    assert (moved.outcome, moved.causes) == (None, ())


def test_a_success_has_no_causes(run):
    assert run().moved(Move("FINISH", By.MODEL, Outcome.FINISHED, "said so"), reannotating=False).causes == ()


def test_the_causes_of_a_failed_step_are_kept_whole(run):
    causes = (Cause(reason="outer"), Cause(reason="inner", exception="OSError"))
    failed = run().apply(StepFailure(phase=None, causes=causes))
    assert failed.moved(Move("ERROR", By.SYSTEM, Outcome.ERROR), reannotating=False).causes == causes


def test_the_causes_of_a_subtask_stand_below_the_subtask(run, make):
    end = make.end(Outcome.ERROR)
    moved = (
        run("ASSIGN", address="host/t").apply(end).moved(Move("FINISH", By.SYSTEM, Outcome.ERROR), reannotating=False)
    )
    first, *rest = moved.causes
    assert (first.reason, first.where) == ("the subtask t~1 ended as error", "app/memo/one")
    assert tuple(rest) == end.result.causes


def test_any_other_failure_gives_the_moves_reason(run):
    given = run().moved(Move("FAIL", By.MODEL, Outcome.FAILED, "no such file"), reannotating=False)
    silent = run().moved(Move("FAIL", By.MODEL, Outcome.FAILED), reannotating=False)
    assert given.causes == (Cause(reason="no such file", where="app/memo/one"),)
    assert silent.causes == (Cause(reason="the agent gave up", where="app/memo/one"),)


def test_steps_in_a_row_in_screenshot_are_counted_and_forgotten_elsewhere(run):
    once = run().moved(Move("SCREENSHOT", By.MODEL), reannotating=True)
    twice = once.moved(Move("SCREENSHOT", By.MODEL), reannotating=True)
    assert (once.reannotations, twice.reannotations) == (1, 2)
    assert twice.moved(Move("CONTINUE", By.MODEL), reannotating=False).reannotations == 0


def test_last_decision_is_used_up_by_the_move(run, make):
    assert run().apply(make.step("CONTINUE")).moved(Move("CONTINUE", By.MODEL), reannotating=False).last is None


# Any order


def messages():
    results = st.lists(st.sampled_from(ResultStatus), max_size=3)
    statuses = st.sampled_from(["CONTINUE", "FINISH", "FAIL", "ASSIGN", "PENDING"])
    usage = st.builds(Usage, steps=st.just(1), model_calls=st.integers(0, 3))

    def record(status, ran):
        ended = tuple(CommandResult(call_id=str(i), tool="write", status=one) for i, one in enumerate(ran))
        return StepRecord(
            step=1, status="CONTINUE", observation=Observation(), decision=Decision(status=status), results=ended
        )

    subtask = SubtaskResult(run_id="t~1", number=1, request="do it", address="app/a/b", outcome=Outcome.FINISHED)
    return st.one_of(
        st.builds(StepDone, record=st.builds(record, statuses, results), usage=usage),
        st.builds(StepFailure, phase=st.none(), causes=st.just((Cause(reason="boom"),)), usage=usage),
        st.sampled_from(
            [
                Captured(observation=None),
                QUESTION,
                REQUEST,
                Answer(id="ask", task_id="t", texts=("yes",)),
                Answer(id="ask", task_id="t", nobody=True),
                APPROVED,
                EXPIRED,
                ALLOWED,
                SubtaskFinished(task_id="t", run_id="t~1", token=9, result=subtask),
                Assign(task_id="t", run_id="t~1", address="app/a/b", request="write", number=1),
            ]
        ),
        st.builds(Cancel, task_id=st.just("t"), outcome=st.sampled_from([Outcome.CANCELLED, Outcome.TIMED_OUT])),
    )


def begin():
    return Run.begin(
        Assign(task_id="t", run_id="t~1", address="app/a/b", token=1, request="do it", number=1), Limits(), "CONTINUE"
    )


def fold(said):
    context = begin()
    for message in said:
        if context.expects(message):
            context = context.apply(message)
    return context


@given(st.lists(messages(), max_size=12))
def test_the_same_messages_fold_to_the_same_run(said):
    assert fold(said) == fold(copy.deepcopy(said))


@given(st.lists(messages(), max_size=12), messages())
def test_applying_changes_neither_the_run_nor_the_status(said, message):
    before = fold(said)
    kept = copy.deepcopy(before)
    after = before.apply(message)
    assert before == kept
    assert after.status == before.status
    assert after.last == message
    assert not after.busy


@given(st.lists(messages(), max_size=12))
def test_a_runs_memory_only_grows_and_its_counts_agree_with_what_happened(said):
    context = begin()
    for message in said:
        if not context.expects(message):
            continue
        after = context.apply(message)
        assert after.memory[: len(context.memory)] == context.memory
        context = after
    assert context.steps == len(context.memory) == len(context.records)
    assert context.asked == context.usage.model_calls


@given(st.lists(messages(), max_size=12), st.sampled_from(Outcome), st.sampled_from(Outcome))
def test_a_written_outcome_stays_whatever_happens_after(said, first, second):
    context = begin().moved(Move("FAIL", By.SYSTEM, first, "first"), reannotating=False)
    for message in said:
        if context.expects(message):
            context = context.apply(message).moved(Move("FINISH", By.SYSTEM, second, "second"), reannotating=False)
    assert context.outcome is first


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_remarks_are_added_after_those_of_the_surface(own, added):
    seen = see(Observation(notes=tuple(own)), tuple(added))
    assert seen.notes == (*own, *added)


CHECKS = (Check(program="one"), Check(program="two"))


@pytest.mark.parametrize(
    ("held", "dry_run", "outcome"),
    [
        ([], False, Outcome.FAILED),
        ([True], False, Outcome.FAILED),
        ([True, False], False, Outcome.FAILED),
        ([True, True, True], False, Outcome.FAILED),
        ([True, True], False, Outcome.FINISHED),
        ([], True, Outcome.FINISHED),
    ],
)
def test_no_machine_finishes_without_its_checks(held, dry_run, outcome, run, make):
    begun = run()
    assign = begun.assign.model_copy(update={"checks": CHECKS, "dry_run": dry_run})
    results = tuple(CheckResult(name="c", reading="c", held=each) for each in held)
    done = make.step("FINISH")
    done = done.model_copy(update={"record": done.record.model_copy(update={"checks": results})})
    after = dataclasses.replace(begun, assign=assign).apply(done)
    moved = after.moved(Move("FINISH", By.MODEL, Outcome.FINISHED), reannotating=False)
    assert moved.outcome is outcome
    assert bool(moved.causes) == (outcome is Outcome.FAILED)
    assert moved.verified is (held == [True, True])
