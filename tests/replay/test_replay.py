"""A run replayed: the recorded steps go the same way again, whatever happened to the run."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path

import pytest
import yaml

from callboard import EventName, Outcome, Settings, Supervisor, Task, tool
from callboard.actors.agent import Agent
from callboard.actors.replay import RecordedTask, replay, replay_journal
from callboard.messages import Effect, Event, StepDone, UnknownTaskError
from callboard.testing import Faults, MemoryServer, VirtualClock
from support import ASSIGN, HELD, PATIENCE, append, lone, stop_blocked

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sales_report"
FINISH = {"Status": "FINISH", "Comment": "done"}
ASK = {"Status": "PENDING", "Questions": [{"text": "which one?"}]}
NOD = {"policy": [{"verdict": "approve", "tool": "append", "reason": "appending needs a nod"}]}
INVALID = {"Status": "FINISH", "Function": "append", "Args": {"control_id": "field-1"}}


def actions(*texts, status="CONTINUE"):
    made = [{"function": "append", "arguments": {"control_id": "field-1", "text": text}} for text in texts]
    return {"Status": status, "Actions": made}


def recorded(path, task_id="t"):
    """List the moves that the journal's events tell of, those of each run in their order."""
    told = [row.message for row in RecordedTask.load(path, task_id).rows if isinstance(row.message, Event)]
    moves = [event for event in told if event.name is EventName.STATE_CHANGED and event.data["source"]]
    listed = [(move.run_id, move.data["source"], move.data["target"], move.data["by"]) for move in moves]
    return sorted(listed, key=lambda move: move[0])


def approve(handle, event):
    handle.approve(event.data["request"]["id"])


def reject(handle, event):
    handle.reject(event.data["request"]["id"], "no")


def answer(*texts):
    return lambda handle, event: handle.answer(event.data["request"]["id"], *texts)


def went_the_same_way(record, task_id="t"):
    """Check that a replay makes the recorded transitions in the recorded order; give how the task ended."""
    done = record.again(task_id)
    assert done.difference is None, str(done.difference)
    made = [(made.run_id, made.source, made.target, made.by) for made in done.transitions]
    assert sorted(made, key=lambda move: move[0]) == recorded(record.path, task_id) != []
    return done.outcome


def test_a_host_and_two_subtasks(record):
    host = [ASSIGN, {**ASSIGN, "Current Sub-Task": "more"}, FINISH]
    record.run(Task(id="t", request="x"), host=host, app=[append("1", "FINISH"), append("2"), append("3", "FINISH")])
    assert went_the_same_way(record) is Outcome.FINISHED


def test_replay_executes_no_action_and_asks_no_model(record):
    calls = []

    def model(request):
        calls.append(request.call)
        return append("1", "FINISH")

    record.run(lone(id="t"), app=model)
    effects = list(record.surface.effects)
    assert went_the_same_way(record) is Outcome.FINISHED
    assert (calls, record.surface.effects) == ([1], effects)


@pytest.mark.parametrize(
    "invalid",
    [
        pytest.param(INVALID, id="arguments that do not fit"),
        pytest.param({"Status": "DANCE"}, id="an unknown status"),
        pytest.param({"Status": "CONTINUE", "Function": "fly"}, id="an unknown tool"),
        pytest.param({"Status": "CONTINUE", "Function": "read", "ControlLabel": "field-9"}, id="an unknown control"),
        pytest.param("no JSON", id="no JSON"),
    ],
)
def test_answers_that_were_sent_back_are_sent_back(record, invalid):
    record.run(lone(id="t"), app=[invalid, append("1"), FINISH])
    assert went_the_same_way(record) is Outcome.FINISHED


def test_an_answer_that_stayed_invalid(record):
    record.run(lone(id="t"), app=[INVALID] * 3, limits={"repairs": 2})
    assert went_the_same_way(record) is Outcome.ERROR


def test_a_model_that_failed(record):
    def model(request):
        if request.call == 2:
            msg = "no more today"
            raise RuntimeError(msg)
        return append("1")

    record.run(lone(id="t"), app=model)
    assert went_the_same_way(record) is Outcome.ERROR


@pytest.mark.parametrize(
    ("decide", "outcome"), [(approve, Outcome.FINISHED), (reject, Outcome.REJECTED)], ids=["approved", "rejected"]
)
def test_an_approval(record, decide, outcome):
    record.run(lone(id="t"), {EventName.APPROVAL_REQUESTED: decide}, app=[actions("1", "2"), FINISH], **NOD)
    assert went_the_same_way(record) is outcome


def test_an_approval_for_the_rest_of_the_task(record):
    def always(handle, event):
        handle.approve(event.data["request"]["id"], remember=True)

    record.run(lone(id="t"), {EventName.APPROVAL_REQUESTED: always}, app=[append("1"), append("1"), FINISH], **NOD)
    assert went_the_same_way(record) is Outcome.FINISHED


def test_replay_follows_an_approval_that_timed_out(record):
    clock = VirtualClock()
    late = {EventName.APPROVAL_REQUESTED: lambda _handle, _event: clock.advance(3600)}
    record.run(lone(id="t"), late, app=[append("1"), FINISH], clock=clock, limits={"approval_seconds": 60}, **NOD)
    assert went_the_same_way(record) is Outcome.REJECTED


def test_replay_without_people_follows_the_record(record):
    system = {"ask_question": False, "safe_guard": False}
    record.run(lone(id="t"), app=[ASK, append("1"), FINISH], system=system, **NOD)
    done = record.again(system={})
    assert done.same, str(done.difference)


def test_a_question(record):
    record.run(lone(id="t"), {EventName.QUESTION_ASKED: answer("the first")}, app=[ASK, append("1", "FINISH")])
    assert went_the_same_way(record) is Outcome.FINISHED


def test_replay_follows_a_question_that_timed_out(record):
    clock = VirtualClock()
    late = {EventName.QUESTION_ASKED: lambda _handle, _event: clock.advance(3600)}
    record.run(lone(id="t"), late, app=[ASK], clock=clock, limits={"question_seconds": 60})
    assert went_the_same_way(record) is Outcome.TIMED_OUT


class Pauses(MemoryServer):
    """Tells when it appends for the first time, and waits until it may go on."""

    def __init__(self):
        super().__init__(MemoryServer.window())
        self.reached, self.go = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    def append(self, target: str, control_id: str, text: str) -> str:
        """Add to a field's text, slowly."""
        self.reached.set()
        assert self.go.wait(HELD)
        return super().append(target, control_id, text)


def test_a_pause_in_the_middle_of_an_action_list(record):
    surface = Pauses()
    with record.begin(app=[actions("1", "2", "3"), FINISH], servers=[surface]) as supervisor:
        handle = supervisor.submit(lone(id="t"))
        assert surface.reached.wait(PATIENCE)
        handle.pause()
        surface.go.set()
        next(event for event in handle.events() if event.name is EventName.STEP_ENDED)
        handle.resume()
        handle.result(PATIENCE)
    assert [text for _, _, text in surface.effects] == ["1", "2", "3"]
    assert went_the_same_way(record) is Outcome.FINISHED


def test_a_cancel_in_the_middle_of_a_model_call(record):
    reached, go = threading.Event(), threading.Event()

    def model(request):
        if request.call == 2:
            reached.set()
            go.wait(HELD)
        return append("1")

    with record.begin(host=[ASSIGN, FINISH], app=model) as supervisor:
        handle = supervisor.submit(Task(id="t", request="x"))
        assert reached.wait(PATIENCE)
        handle.cancel()
        handle.result(PATIENCE)
        go.set()
    assert went_the_same_way(record) is Outcome.CANCELLED


def test_an_answer_between_a_cancel_and_its_delivery_replays_the_same(record):
    reached, go, heard = threading.Event(), threading.Event(), threading.Event()

    def model(request):
        reached.set()
        go.wait(HELD)
        return FINISH

    def hear(event):
        if event.name in {EventName.STEP_ENDED, EventName.MESSAGE_STALE}:
            heard.set()

    def let_go():
        go.set()
        assert heard.wait(PATIENCE)

    with Faults() as faults, record.begin(app=model) as supervisor:
        supervisor.subscribe(hear)
        handle = supervisor.submit(lone(id="t"))
        assert reached.wait(PATIENCE)
        faults.before("cancel", let_go)
        handle.cancel()
        handle.result(PATIENCE)
    assert went_the_same_way(record) is Outcome.CANCELLED


def test_a_failed_action_and_the_ones_after_it(record):
    record.surface = MemoryServer(MemoryServer.window(), controls={"field-1": "", "field-2": ""})
    wrong = {"function": "read", "arguments": {"control_id": "field-9"}}
    first = {"Status": "FINISH", "Actions": [*actions("1")["Actions"], wrong, *actions("2")["Actions"]]}
    record.run(lone(id="t"), app=[first, append("3", "FINISH")])
    assert went_the_same_way(record) is Outcome.FINISHED


def test_a_denied_action(record):
    policy = [{"verdict": "deny", "tool": "append", "reason": "no"}]
    record.run(lone(id="t"), app=[append("1"), FINISH], policy=policy)
    assert went_the_same_way(record) is Outcome.FINISHED


def test_a_list_that_was_cut(record):
    class Shrinks(MemoryServer):
        @tool(effect=Effect.ONCE)
        def append(self, target: str, control_id: str, text: str) -> str:
            """Add to a field's text; the other field goes away."""
            self.remove(target, "field-2")
            return super().append(target, control_id, text)

    record.surface = Shrinks(MemoryServer.window(), controls={"field-1": "", "field-2": ""})
    other = {"function": "read", "arguments": {}, "control_label": "field-2"}
    record.run(lone(id="t"), app=[{"Status": "CONTINUE", "Actions": [*actions("1")["Actions"], other]}, FINISH])
    assert went_the_same_way(record) is Outcome.FINISHED


def test_the_end_of_a_budget(record):
    stop = {EventName.QUESTION_ASKED: answer("stop")}
    budget = {"task": {"model_calls": 2}, "at_limit": "ask"}
    record.run(lone(id="t"), stop, app=[append(str(n)) for n in range(5)], budget=budget)
    assert went_the_same_way(record) is Outcome.OUT_OF_BUDGET


def test_a_step_that_took_too_long_is_taken_as_recorded(record):
    clock = VirtualClock()

    async def model(request):
        clock.advance(100)
        await never()

    record.run(lone(id="t"), app=model, clock=clock, limits={"step_seconds": 50, "model_seconds": 500})
    done = record.again()
    assert (done.same, done.outcome, done.taken) == (True, Outcome.TIMED_OUT, 1)


async def never():
    """Wait forever."""
    await asyncio.Event().wait()


def test_the_rounds_of_a_plan(record):
    plan = [{"request": "first", "target": "memo:one"}, {"request": "second", "target": "memo:one"}]
    record.run(Task(id="t", plan=plan), host=[], app=[append("1", "FINISH"), append("2", "FINISH")])
    assert went_the_same_way(record) is Outcome.FINISHED


def test_replay_of_a_follow_up_uses_the_results_of_its_conversation(record):
    host = [ASSIGN, FINISH, ASSIGN, FINISH]
    with record.begin(host=host, app=lambda request: append(request.task_id, "FINISH")) as supervisor:
        supervisor.submit(Task(id="one", request="x")).result(PATIENCE)
        supervisor.submit(Task(id="two", request="more", session="one")).result(PATIENCE)
    assert [went_the_same_way(record, task_id) for task_id in ("one", "two")] == [Outcome.FINISHED] * 2


def broken_off(record, answers, at, **given):
    """Run a task until a model's call, stop there, and let another supervisor end it."""
    reached, go = threading.Event(), threading.Event()

    def model(request):
        if request.call == at and not go.is_set():
            reached.set()
            go.wait(HELD)
        return answers[request.call - 1]

    with record.begin(app=model, host=[ASSIGN, FINISH], **given) as first:
        first.submit(Task(id="t", request="x"))
        assert reached.wait(PATIENCE)
        stop_blocked(first)
    go.set()
    with record.begin(app=model, host=[ASSIGN, FINISH], **given) as second:
        second.handle("t").result(PATIENCE)


def test_a_task_that_another_process_went_on_with(record):
    broken_off(record, [append("1"), append("2"), append("3", "FINISH")], at=3)
    assert went_the_same_way(record) is Outcome.FINISHED


def test_answers_that_a_crash_left_in_the_middle_of_a_step(record):
    broken_off(record, [INVALID, append("1"), append("2", "FINISH")], at=2)
    assert went_the_same_way(record) is Outcome.FINISHED


class Hangs(MemoryServer):
    """Hangs once, before or after an action; a stamp can't be seen afterwards."""

    def __init__(self, where):
        super().__init__(MemoryServer.window())
        self.where = where
        self.reached, self.go = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    def append(self, target: str, control_id: str, text: str) -> str:
        """Add to a field's text."""
        self._pass("before")
        whole = super().append(target, control_id, text)
        self._pass("after")
        return whole

    @tool(effect=Effect.ONCE)
    def stamp(self, target: str) -> str:
        """Have an effect that can't be seen."""
        self._pass("before")
        self.effects.append((target, "stamp", "stamp"))
        self._pass("after")
        return "done"

    def _pass(self, where):
        if where == self.where:
            self.where = ""
            self.reached.set()
            self.go.wait(HELD)


def left_in_doubt(record, where, answers, people):
    """Leave a supervisor in the middle of a tool call, and let another one go on."""
    record.surface = surface = Hangs(where)
    first = record.begin(app=answers)
    first.submit(lone(id="t"))
    assert surface.reached.wait(PATIENCE)
    assert "jobs" in first.stop(timeout=0.1)
    with record.begin(app=answers) as second:
        record.play(second.handle("t"), people)
    surface.go.set()


def probes(path):
    """List the verdicts of looks, or people, on commands in doubt."""
    told = [row.message for row in RecordedTask.load(path, "t").rows if isinstance(row.message, Event)]
    return [event.data["probe"] for event in told if event.name is EventName.COMMAND_IN_DOUBT]


@pytest.mark.parametrize(("where", "probe"), [("after", "done"), ("before", "not_done")])
def test_an_action_in_doubt_that_could_be_seen(record, where, probe):
    left_in_doubt(record, where, [actions("1", "2", status="FINISH")], {})
    assert probes(record.path) == [probe]
    assert went_the_same_way(record) is Outcome.FINISHED


@pytest.mark.parametrize(
    ("said", "outcome"),
    [("it was done", Outcome.FINISHED), ("it was not done", Outcome.FINISHED), ("stop", Outcome.FAILED)],
)
def test_an_action_in_doubt_that_was_put_before_a_person(record, said, outcome):
    stamp = {"Status": "CONTINUE", "Function": "stamp"}
    left_in_doubt(record, "after", [stamp, FINISH], {EventName.QUESTION_ASKED: answer(said)})
    assert probes(record.path)[0] == "unknown"
    assert went_the_same_way(record) is outcome


def test_replay_follows_an_agent_that_crashed_and_restarted(record, monkeypatch):
    receive, crashes = Agent.receive, [1]

    def crash(agent, message):
        result = getattr(message, "result", None)
        if crashes and isinstance(result, StepDone) and result.record.step == 2:
            crashes.pop()
            raise SystemExit
        receive(agent, message)

    monkeypatch.setattr(Agent, "receive", crash)
    task = Task(id="t", request="x")
    backoff = {"backoff": 0.01}
    record.run(task, host=[ASSIGN, FINISH], app=[append("1"), append("2"), FINISH], supervision=backoff)
    assert not crashes
    done = record.again()
    assert (done.same, done.outcome) == (True, Outcome.FINISHED), str(done.difference)


def test_a_task_that_is_not_over_goes_as_far_as_it_went(record):
    with record.begin(app=[append("1"), ASK]) as supervisor:
        handle = supervisor.submit(lone(id="t"))
        next(event for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    done = record.again()
    assert (done.same, done.outcome) == (True, None)
    assert [made.target for made in done.transitions] == ["CONTINUE", "PENDING"]


def test_a_journal_without_events_is_compared_by_the_words_of_its_agents(record):
    record.run(Task(id="t", request="x"), host=[ASSIGN, FINISH], app=[append("1"), FINISH])
    rows = [row for row in RecordedTask.load(record.path, "t").rows if not isinstance(row.message, Event)]
    done = replay(RecordedTask.of(rows))
    assert (done.same, done.outcome) == (True, Outcome.FINISHED), str(done.difference)


def test_the_example_without_its_documents(tmp_path):
    folder, journal = tmp_path / "example", tmp_path / "journal.db"
    shutil.copytree(EXAMPLE, folder)
    quiet = {"journal": {"path": journal}}
    task = Task(id="sales", **yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8")))
    with Supervisor.start(Settings.load(folder / "callboard.yaml", **quiet)) as supervisor:
        assert supervisor.submit(task).result(PATIENCE).ok
    shutil.rmtree(folder)
    done = replay_journal(journal, "sales")
    assert (done.same, done.outcome) == (True, Outcome.FINISHED), str(done.difference)
    assert not folder.exists()


def test_a_task_that_the_journal_does_not_have(record):
    record.run(lone(id="t"), app=[FINISH])
    with pytest.raises(UnknownTaskError):
        record.again("other")


def test_a_recording_begins_with_its_task():
    with pytest.raises(ValueError, match="begins with its task"):
        RecordedTask.of(())
