"""Folding: a run's messages, in order, make the same run again."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.actors.states import (
    GO_ON,
    STOP,
    WAS_DONE,
    WAS_NOT_DONE,
    AppAgentStateManager,
    By,
    HostAgentStateManager,
    LinuxAgentStateManager,
    MobileAgentStateManager,
    Run,
    Unfinished,
    fold,
    moved,
)
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
    CommandResult,
    Decided,
    Decision,
    Foreseen,
    Held,
    Intent,
    Limit,
    Message,
    Noted,
    Observation,
    Outcome,
    Pause,
    Probe,
    Question,
    RequestExpired,
    ResultStatus,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
    StepRecord,
    SubtaskEnding,
    SubtaskResult,
    Target,
    TargetKind,
    Usage,
    subtask_ended,
)
from callboard.messages import Answered as ModelAnswered

LIMITS = Limits(steps=6, action_failures=2, repeats=2, reannotations=1)
TARGET = Target(id="memo:one", name="memo:one", kind=TargetKind.WINDOW, address="app/memo/one", server="memory")
MACHINES = {
    "app/memo/one": AppAgentStateManager,
    "host/t": HostAgentStateManager,
    "mobile/emulator": MobileAgentStateManager,
    "linux/local": LinuxAgentStateManager,
}
SEEN = Observation(fingerprint="seen")
CHOICES = (GO_ON, STOP)


@dataclass(frozen=True)
class Heard:
    """The journal rows of one message to a run."""

    message: Message
    job: int = 0


def assignment(address="app/memo/one", number=1, *, token=7, **fields):
    host = address.startswith("host/")
    number = 0 if host else number
    return Assign(
        task_id="t", run_id=f"t~{number}", address=address, token=token, request="do it", number=number, **fields
    )


def result(call="t~1.1.0", status=ResultStatus.SUCCESS):
    error = "" if status is ResultStatus.SUCCESS else "no"
    return CommandResult(call_id=call, tool="write", status=status, error=error, artifacts=(f"{call}.txt",))


def question(run, **fields):
    asked = (AskedQuestion(text="which?"),)
    return Question(id=ask_id(run), questions=asked, usage=Usage(model_calls=1), **whose(run), **fields)


def ask_id(run):
    return f"{run.assign.run_id}~ask-{run.assign.round}.{run.job}"


def whose(run):
    assign = run.assign
    return {"task_id": "t", "run_id": assign.run_id, "token": assign.token, "address": assign.address}


class Drawn:
    """Level 2 of an agent that does whatever hypothesis draws; its states ask it."""

    def __init__(self, draw, machine):
        self.draw, self.machine = draw, machine

    def choose(self, *options):
        return self.draw(st.sampled_from(options))

    def once_in(self, times):
        return self.draw(st.integers(1, times)) == times

    async def process(self, run):
        how = self.choose("done", "done", "done", "failed", "asks")
        if how == "failed":
            return self.failed()
        if how == "asks":
            return question(run, limit=Limit(node="t", kind="steps"))
        return self.done(run, self.decision(run), self.choose(0, 0, 1, 2))

    def decision(self, run):
        row = self.machine.transitions[run.status]
        status = self.choose(*(target for target, by in row.items() if By.MODEL in by))
        return Decision(
            status=status,
            thought=self.choose("a", "b", "c"),
            actions=tuple(Action(tool="write") for _ in range(2)),
            target=TARGET if status == "ASSIGN" else None,
            subtask="a part",
            questions=(AskedQuestion(text="which?"),),
            plan=self.choose((), ("one", "two")),
            reannotate=self.choose((), ("field-1",)),
        )

    def done(self, run, decision, ran, **fields):
        ended = tuple(result(status=self.choose(*ResultStatus)) for _ in range(ran))
        record = StepRecord(
            step=run.steps + 1, status=run.status, observation=SEEN, decision=decision, results=ended, **fields
        )
        held_by = (
            Held.MODEL if decision.status == "CONFIRM" else self.choose(Held.NOT, Held.NOT, Held.PAUSE, Held.POLICY)
        )
        held = decision.actions[ran:]
        held_by = held_by if held else Held.NOT
        usage = Usage(steps=1, model_calls=1, commands=ran)
        return StepDone(record=record, held=held if held_by is not Held.NOT else (), held_by=held_by, usage=usage)

    def failed(self):
        outcome = self.choose(Outcome.ERROR, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET, Outcome.FAILED)
        causes = (Cause(reason="it broke", where="here"),)
        return StepFailure(phase=None, causes=causes, outcome=outcome, results=(result(),), usage=Usage(steps=1))

    async def process_resume(self, run):
        if self.once_in(3):
            return self.failed()
        return self.done(run, run.memory[-1].decision, self.choose(1, 2), resumed=True)

    async def process_confirmation(self, run):
        asked = {"id": ask_id(run), "actions": run.held, "reason": "a rule", "observation": SEEN}
        unattended = ApprovalAnswer(id=ask_id(run), task_id="t", approved=True, unattended=True)
        return self.choose(ApprovalRequest(**asked, **whose(run)), unattended, self.failed())

    async def process_asker(self, run):
        return self.choose(question(run), Answer(id=ask_id(run), task_id="t", nobody=True))

    async def capture(self, run):
        return Captured(observation=self.choose(None, SEEN))

    def notes(self, run):
        """The notes of a step; a question at the limit of a budget comes before the decision."""
        answered = ModelAnswered(step=run.steps + 1, call=1, content={"Status": "CONTINUE"})
        decided = Decided(step=run.steps + 1, observation=SEEN, decision=Decision(status="CONTINUE"))
        intent = Intent(call_id="t~1.1.0", tool="write")
        foreseen = Foreseen(call_id="t~1.1.0", path="a.txt", after="1")
        return (answered, decided, intent, foreseen, result())

    def word_to(self, run):
        """The messages from outside to a waiting run."""
        asked = {"id": run.waiting, "task_id": "t"}
        said = self.choose("answer", "approval", "expired")
        if run.status == "ASSIGN":
            outcome = self.choose(Outcome.FINISHED, Outcome.FAILED, Outcome.ERROR)
            return ended_as(outcome, run.waiting)
        if said == "expired":
            return RequestExpired(**asked, at_deadline=self.choose(*AtDeadline))
        if run.asked_person and run.status != "CONFIRM" and not run.held:
            return Answer(**asked, texts=(self.choose(*CHOICES),))
        return ApprovalAnswer(**asked, approved=self.once_in(2))


def ended_as(outcome, run_id="t~1"):
    causes = () if outcome is Outcome.FINISHED else (Cause(reason="it broke", where="there"),)
    number = int(run_id.rpartition("~")[2])
    done = SubtaskResult(
        run_id=run_id, number=number, request="x", address="app/memo/one", outcome=outcome, causes=causes
    )
    return subtask_ended("t", 9, done)


class Live:
    """An agent's run, moved as the agent moves it, and all that the journal keeps of it."""

    def __init__(self, machine, processing):
        self.machine, self.processing = machine, processing
        self.heard, self.run, self.recovered = [], None, None
        self.noted = ()

    def begin(self, assign):
        self.heard.append(Heard(assign))
        self.run = self.moved(Run.begin(assign, LIMITS, self.machine.initial, self.recovered))

    def moved(self, run):
        while (move := self.machine.get_state(run.status).decide(run)) is not None:
            run = moved(self.machine, run, move)
        return run

    def hear(self, message):
        """Something comes from outside."""
        self.heard.append(Heard(message))
        run = self.run
        if run.over or not run.expects(message):
            return
        if isinstance(message, Cancel) and run.busy and self.noted:
            left = functools.reduce(Unfinished.after, self.noted, Unfinished())
            run = run.with_lost(left.usage, left.done)
        self.run = self.moved(run.apply(message))

    def start(self):
        """Start the next job. Returns its word, which is not told yet."""
        self.run = run = replace(self.run, busy=True, job=self.run.job + 1)
        self.noted = ()
        handling = self.machine.get_state(run.status).handle(self.processing, run)
        try:
            handling.send(None)
        except StopIteration as said:
            return said.value, run.job
        msg = "nothing here waits for anything"
        raise AssertionError(msg)

    def note(self, *notes):
        self.noted = (*self.noted, *notes)
        self.heard.extend(Heard(note, self.run.job) for note in notes)

    def take_back(self, said, job):
        """The word of a job comes back; it may be late."""
        self.heard.append(Heard(said, job))
        run = self.run
        if run.over or not run.busy or job != run.job:
            return
        if isinstance(said, RoundEnding | SubtaskEnding):
            self.run = self.recovered = replace(run, over=True, busy=False)
        else:
            self.run = self.moved(run.apply(said))

    @property
    def ready(self):
        run = self.run
        return not (run.busy or run.waiting or run.paused or run.over)


def same(live, folded):
    """Compare, except for the counters of jobs."""
    return replace(live, busy=False, job=0) == replace(folded, job=0)


@pytest.mark.parametrize("address", MACHINES)
@settings(max_examples=40)
@given(data=st.data())
def test_fold_of_a_runs_messages_makes_the_same_run_at_any_time(address, data):
    machine = MACHINES[address]
    processing = Drawn(data.draw, machine)
    live = Live(machine, processing)
    for number in range(1, processing.choose(1, 2) + 1):
        live.begin(assignment(address, number, token=number, round=number))
        for _ in range(30):
            if live.run.over:
                break
            if live.ready and not processing.once_in(4):
                played(live, processing)
            else:
                live.hear(from_outside(live.run, processing))
            assert same(live.run, fold(live.heard, LIMITS, machine))
        if not live.run.over:
            return


def played(live, processing):
    """Play one job: with notes on its way, and possible messages in between."""
    said, job = live.start()
    working = isinstance(said, StepDone | StepFailure)
    live.note(*processing.notes(live.run)[: processing.choose(0, 1, 2, 3, 5) if working else 0])
    while processing.once_in(4):
        words = [Pause(task_id="t"), Resume(task_id="t")]
        if live.run.outcome is None:  # a second cancel breaks off a last look, and nothing that counts
            words.append(Cancel(task_id="t"))
        live.hear(processing.choose(*words))
    live.take_back(said, job)


def from_outside(run, processing):
    words = [Pause(task_id="t"), Resume(task_id="t"), Resume(task_id="t"), Answer(id="old", task_id="t")]
    if run.waiting:
        words = [*words, *([processing.word_to(run)] * 5)]
    return processing.choose(*words, Cancel(task_id="t"))


# One by one


def heard(*messages):
    """Make a history; a word of a job is given with its number."""
    return [Heard(*message) if isinstance(message, tuple) else Heard(message) for message in messages]


def folded(*messages, machine=AppAgentStateManager):
    return fold(heard(*messages), LIMITS, machine)


def step(status="CONTINUE", thought="", number=1, **fields):
    decision = Decision(status=status, thought=thought)
    return StepDone(
        record=StepRecord(step=number, status="CONTINUE", observation=SEEN, decision=decision),
        usage=Usage(steps=1, model_calls=1),
        **fields,
    )


WORK = assignment()
DECIDED = Decided(
    step=1,
    observation=SEEN,
    decision=Decision(status="CONTINUE"),
    actions=(Action(tool="write"), Action(tool="write")),
)
INTENT = Intent(call_id="t~1.1.0", tool="write")
FORESEEN = Foreseen(call_id="t~1.1.0", path="/w/a.txt", before="", after="1")
CANCEL = Cancel(task_id="t")


def test_fold_without_an_assignment_has_no_run():
    assert folded() is None
    assert folded(CANCEL, (step(), 1)) is None


def test_an_assignment_that_has_no_lease_yet_begins_nothing():
    assert folded(assignment(token=0)) is None


def test_an_assignment_begins_a_run():
    assert folded(WORK) == Run.begin(WORK, LIMITS, "CONTINUE")


def test_fold_continues_the_job_numbers():
    assert folded(WORK, (step(), 1), (step(), 2)).job == 2
    assert folded(WORK, (step(), 1), (DECIDED, 2)).job == 2


def test_fold_ignores_a_result_of_a_job_before_a_later_one():
    run = folded(WORK, (step(thought="one"), 1), (step(thought="two"), 3), (step(thought="late"), 2))
    assert [record.decision.thought for record in run.memory] == ["one", "two"]


def test_fold_ignores_a_result_of_a_cancelled_job():
    run = folded(WORK, (step(), 1), CANCEL, (step("FINISH"), 2))
    assert (run.status, run.outcome, run.steps) == ("FAIL", Outcome.CANCELLED, 1)


def test_fold_ignores_an_answer_without_a_question():
    assert folded(WORK, Answer(id="t~1~ask-1.1", task_id="t", texts=("x",))) == folded(WORK)


def test_fold_ignores_messages_after_the_ending():
    over = (WORK, (step("FINISH"), 1), (ended_as(Outcome.FINISHED), 2))
    assert folded(*over).over
    assert folded(*over, CANCEL, (step(), 3)) == replace(folded(*over), job=3)


def test_next_assignment_continues_with_the_memory_of_the_last():
    second = assignment(number=2)
    run = folded(WORK, (step("FINISH", "one"), 1), (ended_as(Outcome.FINISHED), 2), second)
    assert (run.assign, run.status, run.over, run.steps) == (second, "CONTINUE", False, 0)
    assert [record.decision.thought for record in run.memory] == ["one"]


def test_the_next_round_of_a_host_agent_is_another_assignment():
    rounds = [assignment("host/t", token=number, round=number) for number in (1, 2)]
    end = RoundEnding(task_id="t", run_id="t~0", token=1, outcome=Outcome.FINISHED)
    run = folded(rounds[0], (step("FINISH"), 1), (end, 2), rounds[1], machine=HostAgentStateManager)
    assert (run.assign, run.steps, len(run.memory), run.outcome) == (rounds[1], 0, 1, None)


def test_the_next_round_begins_with_the_memory_of_one_that_a_crash_ended():
    rounds = [assignment("host/t", token=number, round=number) for number in (1, 2)]
    run = folded(rounds[0], (step(thought="one"), 1), rounds[1], machine=HostAgentStateManager)
    assert (run.assign, run.status, run.steps, len(run.memory)) == (rounds[1], "CONTINUE", 0, 1)


def test_same_assignment_under_a_new_lease_continues_where_it_was():
    anew = assignment(token=8)
    history = (WORK, (step(thought="one"), 1), (step("PENDING", "two"), 2))
    run = folded(*history, anew)
    assert run == replace(folded(*history), assign=anew)
    assert (run.status, run.steps, run.assign.token) == ("PENDING", 2, 8)


def test_a_run_that_waits_for_a_person_still_waits_under_a_new_lease():
    asked = question(folded(WORK))
    run = folded(WORK, (step("PENDING"), 1), (asked, 2), assignment(token=8))
    assert run.waiting == asked.id
    answered = folded(
        WORK, (step("PENDING"), 1), (asked, 2), assignment(token=8), Answer(id=asked.id, task_id="t", texts=("x",))
    )
    assert (answered.status, answered.waiting) == ("CONTINUE", "")
    assert answered.notes == ("asked 'which?', a person answered 'x'",)


def test_an_approval_by_a_clock_is_not_taken_for_the_answer_to_a_doubt():
    held = step("CONFIRM", held=(Action(tool="write"),), held_by=Held.MODEL)
    asking = folded(WORK, (held, 1))
    request = ApprovalRequest(
        id=ask_id(asking),
        task_id="t",
        run_id="t~1",
        token=7,
        address=WORK.address,
        actions=asking.held,
        reason="dangerous",
        observation=SEEN,
    )
    allowed = RequestExpired(id=request.id, task_id="t", at_deadline=AtDeadline.ALLOW)
    run = folded(WORK, (held, 1), (request, 2), allowed, (DECIDED, 3), assignment(token=8), Pause(task_id="t"))
    assert (run.status, run.outcome, run.broken_off, run.paused) == ("CONFIRM", None, True, True)


def test_a_pause_lasts_until_the_resume():
    assert folded(WORK, Pause(task_id="t"), assignment(token=8)).paused
    assert not folded(WORK, Pause(task_id="t"), assignment(token=8), Resume(task_id="t")).paused


def test_a_step_on_its_way_is_unfinished_and_its_answers_are_kept():
    answered = ModelAnswered(step=1, call=1, content="nonsense")
    run = folded(WORK, (answered, 1), (answered, 1))
    assert (run.unfinished, run.broken_off) == (Unfinished(answers=(answered, answered)), False)


def test_after_its_decision_a_step_was_broken_off():
    run = folded(WORK, (DECIDED, 1))
    assert (run.unfinished, run.broken_off) == (Unfinished(decided=DECIDED), True)


def test_an_intent_without_an_outcome_is_in_doubt_with_what_it_foresaw():
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1))
    assert run.unfinished == Unfinished(decided=DECIDED, intent=INTENT, foreseen=(FORESEEN,))


def test_an_outcome_ends_the_doubt():
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), (result(), 1))
    assert run.unfinished == Unfinished(decided=DECIDED, results=(result(),), known=INTENT, wrote=(FORESEEN,))


def test_the_next_intent_is_another_doubt():
    later = Intent(call_id="t~1.1.1", tool="write")
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), (result(), 1), (later, 1))
    before = {"results": (result(),), "known": INTENT, "wrote": (FORESEEN,)}
    assert run.unfinished == Unfinished(decided=DECIDED, intent=later, **before)


def test_repeated_intent_replaces_the_first():
    again = INTENT.model_copy(update={"fingerprint": "anew"})
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), assignment(token=8), (again, 2))
    assert run.unfinished == Unfinished(decided=DECIDED, intent=again, earlier=(FORESEEN,))


def test_repeated_intent_keeps_the_notes_of_its_call():
    noted, again = Noted(call_id=INTENT.call_id, text="one"), INTENT.model_copy(update={"fingerprint": "anew"})
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (noted, 1), assignment(token=8), (again, 2))
    assert run.unfinished.intent.noted == ("one",)
    other = INTENT.model_copy(update={"call_id": "t~1.1.1"})
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (noted, 1), assignment(token=8), (other, 2))
    assert run.unfinished.intent.noted == ()


def test_a_foreseen_change_after_the_calls_result_leaves_no_doubt():
    late = result().model_copy(update={"status": ResultStatus.FAILURE, "error": "it took longer than 60 s"})
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (late, 1), (FORESEEN, 1))
    assert run.unfinished == Unfinished(decided=DECIDED, results=(late,))
    assert run.unfinished.doubt is None


def test_a_surface_is_known_by_the_last_action_with_a_foreseen_outcome():
    expected = Intent(call_id="t~1.1.1", tool="write", expected="after it")
    second, third = (result().model_copy(update={"call_id": f"t~1.1.{number}"}) for number in (1, 2))
    begun = (WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), (result(), 1), (expected, 1))
    assert folded(*begun).unfinished.known == INTENT
    run = folded(*begun, (second, 1), (third, 1))
    assert (run.unfinished.known, run.unfinished.wrote) == (expected, ())


def test_by_an_action_that_failed_no_surface_is_known():
    failed = result().model_copy(update={"status": ResultStatus.FAILURE, "error": "no"})
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), (failed, 1))
    assert (run.unfinished.known, run.unfinished.wrote) == (None, ())


def test_a_step_that_ended_is_not_unfinished():
    assert folded(WORK, (DECIDED, 1), (INTENT, 1), (result(), 1), (step(), 1)).unfinished is None


def test_fold_ignores_a_jobs_notes_after_its_cancel():
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), CANCEL, (result(), 1))
    assert run.unfinished is None
    assert [(lost.status, lost.in_doubt) for lost in run.lost] == [(ResultStatus.FAILURE, True)]


def test_a_cancel_keeps_what_the_unfinished_step_had_done():
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (result(), 1), CANCEL)
    assert (run.unfinished, run.lost, run.artifacts) == (None, (result(),), ("t~1.1.0.txt",))


def test_a_cancel_keeps_what_the_unfinished_step_was_about_to_write():
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), CANCEL)
    assert [(lost.call_id, lost.tool, lost.in_doubt) for lost in run.lost] == [(INTENT.call_id, INTENT.tool, True)]
    assert run.artifacts == (FORESEEN.path,)


def test_cancel_drops_an_action_that_a_person_calls_undone():
    asked = question(folded(WORK), in_doubt="t~1.1.0")
    probe = Answer(id=asked.id, task_id="t", texts=(WAS_NOT_DONE,))
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), assignment(token=8), (asked, 2), probe, CANCEL)
    assert run.lost == ()


def test_a_cancel_keeps_what_the_unfinished_step_had_used():
    first = ModelAnswered(step=1, call=1, content={}, input_tokens=5, output_tokens=2, cost=0.25)
    second = ModelAnswered(step=1, call=2, content={}, input_tokens=7, output_tokens=3)
    run = folded(WORK, (first, 1), (second, 1), (DECIDED, 1), (result(), 1), CANCEL)
    used = Usage(steps=1, model_calls=2, commands=1, repairs=1, cost=0.25, unpriced_calls=1)
    assert run.usage == used + Usage(input_tokens=12, output_tokens=5)


def test_a_cancel_counts_no_step_for_what_had_been_held():
    resumed = DECIDED.model_copy(update={"resumed": True})
    assert folded(WORK, (resumed, 1), (result(), 1), CANCEL).usage == Usage(commands=1)


def test_a_pause_leaves_a_step_unfinished():
    run = folded(WORK, (DECIDED, 1), Pause(task_id="t"), Resume(task_id="t"))
    assert run.broken_off


@pytest.mark.parametrize(("text", "probe"), [(WAS_DONE, Probe.DONE), (WAS_NOT_DONE, Probe.NOT_DONE)])
def test_answer_about_a_doubt_is_kept_with_it(text, probe):
    asked = question(folded(WORK), in_doubt="t~1.1.0")
    begun = (WORK, (DECIDED, 1), (INTENT, 1), (FORESEEN, 1), assignment(token=8), (asked, 2))
    assert (folded(*begun).waiting, folded(*begun).broken_off) == (asked.id, True)
    run = folded(*begun, Answer(id=asked.id, task_id="t", texts=(text,)))
    assert run.unfinished == Unfinished(decided=DECIDED, intent=INTENT, foreseen=(FORESEEN,), probe=probe)
    assert (run.waiting, run.status) == ("", "CONTINUE")


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        (Answer(id="t~1~ask-1.0", task_id="t", texts=(STOP,)), Outcome.FAILED),
        (RequestExpired(id="t~1~ask-1.0", task_id="t"), Outcome.TIMED_OUT),
        (CANCEL, Outcome.CANCELLED),
    ],
    ids=["stop", "nobody-in-time", "cancelled"],
)
def test_unsettled_doubt_ends_the_work(word, outcome):
    asked = question(folded(WORK), in_doubt="t~1.1.0")
    run = folded(WORK, (DECIDED, 1), (INTENT, 1), assignment(token=8), (asked, 2), word)
    assert (run.status, run.outcome) == ("FAIL", outcome)
    assert run.unfinished is None
    assert [(lost.call_id, lost.in_doubt) for lost in run.lost] == [(INTENT.call_id, True)]
    assert run.usage == Usage(steps=1, model_calls=asked.usage.model_calls)
