"""Tests of a routine's replay: guards, loops, references, people, models, crashes."""

from __future__ import annotations

import pytest

from callboard import EventName, Outcome, Task
from callboard.journal import JournalReader
from callboard.messages import AgentKind, Effect, Routine, StepDone, TaskRefusedError
from callboard.routines import dump
from callboard.surface import ToolError, tool
from callboard.testing import MemoryServer, assert_replays
from support import PATIENCE, wait_for


def control(name="field-1", **facts):
    return {"kind": "field", "name": name, "id": name, **facts}


def write(text, field="field-1", **facts):
    action = {"tool": "write", "arguments": {"control_id": "${controls.0.id}", "text": text}, "control": 0}
    return {"status": "CONTINUE", "controls": [control(field)], "actions": [{**action, **facts}]}


def lone(*steps, **parts):
    """Make a routine of one window without a HostAgent."""
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": [*steps, {"status": "FINISH"}]}
    return Routine.model_validate({"routine": "fill", "request": "Fill ${who}", "subtasks": [subtask], **parts})


ALONE = {"ask_question": False}
WHO = {"parameters": {"who": {"value": "Ann"}}}


def names(handle, *wanted):
    return [event for event in handle.events() if event.name in wanted]


def test_routine_is_repeated_without_a_model(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(servers=[surface])
    handle = supervisor.submit(Task(routine=lone(write("for ${who}"), **WHO), parameters={"who": "Bob"}))
    result = handle.result(PATIENCE)
    assert result.ok
    assert surface.effects == [("memo:one", "field-1", "for Bob")]
    assert (result.usage.model_calls, result.usage.replayed, result.usage.steps) == (0, 2, 2)
    followed = names(handle, EventName.ROUTINE_FOLLOWED, EventName.MODEL_ANSWERED)
    assert [(event.name, event.data["place"]) for event in followed] == [
        (EventName.ROUTINE_FOLLOWED, 1),
        (EventName.ROUTINE_FOLLOWED, 2),
    ]
    assert handle.task.request == "Fill Bob"


class Folder(MemoryServer):
    """A window that works in a folder."""

    def observe(self, target, look):
        return super().observe(target, look).model_copy(update={"window": {"folder": "/home/ada/june"}})


def test_folder_of_the_window_is_that_of_this_run(start):
    surface = Folder(MemoryServer.window())
    assert (
        start(servers=[surface]).submit(Task(routine=lone(write("${window.folder}/a.txt"), **WHO))).result(PATIENCE).ok
    )
    assert [text for _, _, text in surface.effects] == ["/home/ada/june/a.txt"]


def test_loop_runs_once_for_each_item_and_ends_earlier_at_the_last(start):
    surface = MemoryServer(MemoryServer.window(), controls={"field-1": "", "field-2": ""})
    loop = {"each": "rows", "steps": [write("${item.0}"), write("${item.1}", "field-2")], "last": 1}
    routine = lone(loop, write("done"), parameters={"who": {"value": "x"}, "rows": {"value": [["a", "b"]]}})
    rows = [["a", "b"], ["c", "d"], ["e", "f"]]
    result = start(servers=[surface]).submit(Task(routine=routine, parameters={"rows": rows})).result(PATIENCE)
    assert result.ok
    assert [text for _, _, text in surface.effects] == ["a", "b", "c", "d", "e", "done"]


def endless_model(request):
    arguments = {"control_id": "field-1", "text": str(request.step)}
    return {"Status": "CONTINUE", "Function": "write", "Args": arguments}


def test_repeated_steps_are_not_limited_but_those_of_a_model_are(start):
    surface = MemoryServer(MemoryServer.window())
    loop, rows = {"each": "rows", "steps": [write("${item}")]}, list("abcdef")
    parts = {"parameters": {"who": {"value": "x"}, "rows": {"value": rows}}}
    supervisor = start(servers=[surface], app=endless_model, limits={"steps": 3})
    assert supervisor.submit(Task(routine=lone(loop, **parts))).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == rows
    result = supervisor.submit(Task(routine=lone(loop, write("x", "gone"), **parts))).result(PATIENCE)
    assert (result.outcome, result.usage.replayed, result.usage.model_calls) == (Outcome.OUT_OF_BUDGET, 6, 3)


def test_reference_to_a_step_after_a_loop_counts_written_steps(start):
    surface = MemoryServer(MemoryServer.window())
    loop = {"each": "rows", "steps": [write("${item}")]}
    last = write("${steps.1.results.0.value}!")
    routine = lone(loop, last, parameters={"who": {"value": "x"}, "rows": {"value": ["a", "b", "c"]}})
    assert start(servers=[surface]).submit(Task(routine=routine)).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["a", "b", "c", "c!"]


def test_model_takes_over_where_a_guard_does_not_hold(start):
    surface = MemoryServer(MemoryServer.window())
    seen = []

    def model(request):
        seen.append((request.step, request.observation.notes))
        return {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "by a model"}}

    routine = lone(write("one"), write("two", "gone"), write("three"), **WHO)
    handle = start(servers=[surface], app=model).submit(Task(routine=routine))
    result = handle.result(PATIENCE)
    assert result.ok
    assert [text for _, _, text in surface.effects] == ["one", "by a model"]
    assert (result.usage.model_calls, result.usage.replayed) == (1, 1)
    [missed] = names(handle, EventName.ROUTINE_MISSED)
    assert (missed.data["routine"], missed.data["place"]) == ("routine:fill", 2)
    assert "gone" in missed.data["expected"]
    assert any("gone" in note for note in seen[0][1])


def test_model_that_took_over_keeps_the_subtask(start):
    surface = MemoryServer(MemoryServer.window())
    model = [
        {"Status": "CONTINUE", "Function": "write", "Args": {"control_id": "field-1", "text": "m1"}},
        {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "m2"}},
    ]
    routine = lone(write("x", "gone"), write("y"), **WHO)
    handle = start(servers=[surface], app=model).submit(Task(routine=routine))
    assert handle.result(PATIENCE).usage.replayed == 0
    assert [text for _, _, text in surface.effects] == ["m1", "m2"]
    assert len(names(handle, EventName.ROUTINE_MISSED)) == 1


def test_strict_routine_fails_at_the_first_miss(start):
    surface = MemoryServer(MemoryServer.window())
    routine = lone(write("one"), write("two", "gone"), **WHO)
    supervisor = start(servers=[surface], app=lambda _: {"Status": "FINISH"})
    result = supervisor.submit(Task(routine=routine, strict_routine=True)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "the routine fill stopped at step 2" in result.causes[0].reason
    assert result.usage.model_calls == 0


def test_routine_without_model_and_person_fails_with_the_reason(start):
    supervisor = start(system={"ask_question": False})
    result = supervisor.submit(Task(routine=lone(write("two", "gone"), **WHO))).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "gone" in result.causes[0].reason


class Form(MemoryServer):
    """A window whose second field comes late.

    It comes after some looks, or when the window is completed.
    """

    looks_before = 1_000

    def observe(self, target, look):
        self.looks_before -= 1
        if not self.looks_before:
            self.complete()
        return super().observe(target, look)

    def complete(self):
        with self._lock:
            self._controls["memo:one"]["field-2"] = ""


LATE = (write("one"), write("two", "field-2"))


@pytest.mark.parametrize("kind", ["task", "model", "recorded model"])
def test_step_waits_for_a_late_control(begin, tmp_path, kind):
    surface = Form(MemoryServer.window())
    surface.looks_before = 12
    given = {"routines": {"wait_seconds": PATIENCE}, "servers": [surface]}
    if kind != "task":
        (tmp_path / "fill.yaml").write_text(dump(lone(*LATE, **WHO)), encoding="utf-8")
        record = str(tmp_path / "calls.jsonl") if kind == "recorded model" else None
        supervisor = begin(**given, models={"app": f"routine:{tmp_path / 'fill.yaml'}", "record": record})
        handle = supervisor.submit(Task(request="fill it", target="memo:one"))
    else:
        supervisor = begin(**given)
        handle = supervisor.submit(Task(routine=lone(*LATE, **WHO)))
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["one", "two"]
    assert not names(handle, EventName.ROUTINE_MISSED)
    supervisor.stop()
    assert_replays(tmp_path / "journal.db", handle.task_id)


def test_step_waits_no_longer_than_the_setting(start):
    surface = Form(MemoryServer.window())
    result = start(servers=[surface], routines={"wait_seconds": 0.2}, system=ALONE).submit(
        Task(routine=lone(*LATE, **WHO))
    )
    assert result.result(PATIENCE).outcome is Outcome.FAILED
    assert surface.looks_before < 1_000 - 6  # it looked again, and then gave up


def test_surface_that_changes_by_actions_alone_is_not_waited_for(start):
    surface = Form(MemoryServer.window())
    surface.settles = False
    supervisor = start(servers=[surface], routines={"wait_seconds": 600}, system=ALONE)
    assert supervisor.submit(Task(routine=lone(*LATE, **WHO))).result(PATIENCE).outcome is Outcome.FAILED


def test_only_guards_are_waited_for_and_no_model_that_took_over(start):
    surface = MemoryServer(MemoryServer.window())
    other_form = {"changes": False}
    model = [
        {"Status": "CONTINUE", "Function": "write", "Args": {"control_id": "field-1", "text": f"m{step}"}}
        for step in (1, 2, 3)
    ]
    supervisor = start(servers=[surface], routines={"wait_seconds": 600}, app=[*model, {"Status": "FINISH"}])
    routine = lone(write("one", expect=other_form), write("two", "field-2"), **WHO)
    assert supervisor.submit(Task(routine=routine)).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["one", "m2", "m3"]


def test_cancel_ends_the_waiting_for_a_control(start, until):
    supervisor = start(servers=[Form(MemoryServer.window())], routines={"wait_seconds": 600})
    handle = supervisor.submit(Task(routine=lone(*LATE, **WHO)))
    until(handle, EventName.COMMAND_ENDED)
    handle.cancel("not needed any more")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


@pytest.mark.parametrize(
    ("reply", "texts", "outcome"),
    [
        ("try again", ["one", "two", "three"], Outcome.FINISHED),
        ("it is done, go on", ["one", "three"], Outcome.FINISHED),
        ("stop", ["one"], Outcome.FAILED),
    ],
)
def test_person_decides_about_a_miss_without_a_model(start, until, reply, texts, outcome):
    surface = Form(MemoryServer.window())
    routine = lone(write("one"), write("two", "field-2"), write("three"), **WHO)
    handle = start(servers=[surface]).submit(Task(routine=routine))
    until(handle, EventName.QUESTION_ASKED)
    [question] = handle.questions()
    assert "stopped at step 2" in question.questions[0].text
    surface.complete()
    handle.answer(question.id, reply)
    assert handle.result(PATIENCE).outcome is outcome
    assert [text for _, _, text in surface.effects] == texts


class Lock(MemoryServer):
    """A window with a lock that fails at first."""

    failures = 1

    def _turn(self):
        if self.failures:
            self.failures -= 1
            msg = "it is stuck"
            raise ToolError(msg)
        self.effects.append(("memo:one", "lock", "open"))
        return {"open": True}

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.APP,))
    def open_lock(self) -> dict[str, bool]:
        """Open the lock."""
        return self._turn()

    @tool(effect=Effect.ONCE, agents=(AgentKind.APP,))
    def turn_key(self) -> dict[str, bool]:
        """Turn the key."""
        return self._turn()


def call(name, **arguments):
    return {"status": "CONTINUE", "actions": [{"tool": name, "arguments": arguments}]}


@pytest.mark.parametrize(
    ("name", "choices", "texts"),
    [
        ("open_lock", ("try again", "it is done, go on", "stop"), ["one", "open", "three"]),
        ("turn_key", ("it is done, go on", "stop"), ["one", "three"]),
    ],
)
def test_person_repeats_only_an_action_that_may_be_repeated(start, until, name, choices, texts):
    surface = Lock(MemoryServer.window())
    routine = lone(write("one"), call(name), write("three"), **WHO)
    handle = start(servers=[surface]).submit(Task(routine=routine))
    until(handle, EventName.QUESTION_ASKED)
    [question] = handle.questions()
    assert question.questions[0].choices == choices
    handle.answer(question.id, choices[0])
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == texts


def test_step_after_a_failed_one_is_not_left_out_by_a_person(start, until):
    surface = Lock(MemoryServer.window())
    handle = start(servers=[surface]).submit(Task(routine=lone(call("open_lock"), write("two"), write("three"), **WHO)))
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "it is done, go on")
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["two", "three"]


def test_person_who_mends_the_work_has_its_end_tried_again(start, until):
    surface, mended = MemoryServer(MemoryServer.window()), []
    checks = [{"program": "mended", "name": "it is mended"}]
    supervisor = start(servers=[surface], checks={"mended": lambda: bool(mended)})
    handle = supervisor.submit(Task(routine=lone(write("one"), checks=checks, **WHO)))
    until(handle, EventName.QUESTION_ASKED)
    [question] = handle.questions()
    assert "it is mended" in question.questions[0].text
    assert question.questions[0].choices == ("try again", "stop")
    mended.append(True)
    handle.answer(question.id, "try again")
    result = handle.result(PATIENCE)
    assert (result.ok, result.verified) == (True, True)
    assert [text for _, _, text in surface.effects] == ["one"]


def test_answer_counts_also_if_agents_are_shown_no_entries(start, until):
    routine = lone(write("one", "gone"), write("two"), **WHO)
    surface = MemoryServer(MemoryServer.window())
    handle = start(servers=[surface], blackboard={"shown": 0}).submit(Task(routine=routine))
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "it is done, go on")
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["two"]


def test_invalid_answer_of_a_model_is_no_second_miss(start):
    surface = MemoryServer(MemoryServer.window())
    model = [{"Status": "NONSENSE"}, {"Status": "FINISH"}]
    handle = start(servers=[surface], app=model).submit(Task(routine=lone(write("x", "gone"), **WHO)))
    result = handle.result(PATIENCE)
    assert (result.ok, result.usage.missed) == (True, 1)
    [missed] = names(handle, EventName.ROUTINE_MISSED)
    assert "gone" in missed.data["expected"]


def test_failed_action_stops_the_routine_before_the_next_step(start):
    surface = MemoryServer(MemoryServer.window())
    bad = {"status": "CONTINUE", "actions": [{"tool": "write", "arguments": {"control_id": "no", "text": "x"}}]}
    routine = lone(bad, write("two"), **WHO)
    handle = start(servers=[surface], system={"ask_question": False}).submit(Task(routine=routine))
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert surface.effects == []
    [missed] = names(handle, EventName.ROUTINE_MISSED)
    assert missed.data["place"] == 1


@pytest.mark.parametrize(("text", "texts", "outcome"), [("b", ["b", "c"], "finished"), ("a", ["a"], "failed")])
def test_action_that_leaves_the_surface_as_it_was_stops_the_routine(start, text, texts, outcome):
    surface = MemoryServer(MemoryServer.window(), controls={"field-1": "a"})
    routine = lone({**write(text), "alters": True}, write("c"), **WHO)
    handle = start(servers=[surface], system={"ask_question": False}).submit(Task(routine=routine))
    result = handle.result(PATIENCE)
    assert (result.outcome.value, [written for _, _, written in surface.effects]) == (outcome, texts)
    if outcome == "failed":
        assert "expected that write changes the view; found the same view" in result.causes[0].reason


def test_other_form_of_a_result_stops_the_routine(start):
    surface = MemoryServer(MemoryServer.window())
    routine = lone(write("one", expect={"changes": True, "members": ["rows"]}), write("two"), **WHO)
    handle = start(servers=[surface], system={"ask_question": False}).submit(Task(routine=routine))
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert [text for _, _, text in surface.effects] == ["one"]


def test_fact_with_a_missing_result_in_its_name_stops_the_routine(start):
    surface = MemoryServer(MemoryServer.window())
    step = write("two", relies_on={"${steps.1.results.0.value.rows}": "a file"})
    supervisor = start(servers=[surface], system={"ask_question": False})
    result = supervisor.submit(Task(routine=lone(write("one"), step, **WHO))).result(PATIENCE)
    assert (result.outcome, [text for _, _, text in surface.effects]) == (Outcome.FAILED, ["one"])
    assert "expected the results of earlier steps; found ${steps.1.results.0.value.rows}" in result.causes[0].reason


def test_routine_of_several_subtasks_hands_over_and_passes_results_on(start):
    surface = MemoryServer(MemoryServer.window(), MemoryServer.window("two"))
    first = {
        "target": "memo:one",
        "kind": "app",
        "request": "read ${who}",
        "steps": [write("one"), finish("${steps.1.output}")],
    }
    second = {
        "target": "memo:two",
        "kind": "app",
        "request": "write it",
        "steps": [write("${subtasks.1.output} again"), finish("${steps.1.output}")],
    }
    host = [
        {"status": "ASSIGN", "assign": [{"subtask": 1}]},
        {"status": "ASSIGN", "assign": [{"subtask": 2}]},
        finish("${subtasks.2.output}"),
    ]
    routine = {"routine": "two", "request": "both", "host": host, "subtasks": [first, second], **WHO}
    result = start(servers=[surface]).submit(Task(routine=Routine.model_validate(routine))).result(PATIENCE)
    assert (result.ok, result.output, result.usage.model_calls) == (True, "one again", 0)
    assert [(target, text) for target, _, text in surface.effects] == [("memo:one", "one"), ("memo:two", "one again")]


def finish(result):
    return {"status": "FINISH", "result": result}


def test_target_may_be_named_by_a_result_of_the_host(start):
    class Opener(MemoryServer):
        @tool(effect=Effect.READ, agents={AgentKind.HOST})
        def choose(self) -> str:
            """Choose a window."""
            return "memo:two"

    surface = Opener(MemoryServer.window(), MemoryServer.window("two"))
    subtask = {"target": "${steps.1.output}", "kind": "app", "request": "fill it", "steps": [write("x"), finish("ok")]}
    host = [
        {"status": "CONTINUE", "actions": [{"tool": "choose"}]},
        {"status": "ASSIGN", "assign": [{"subtask": 1}]},
        finish("${subtasks.1.output}"),
    ]
    routine = Routine.model_validate({"routine": "pick", "request": "x", "host": host, "subtasks": [subtask]})
    result = start(servers=[surface]).submit(Task(routine=routine)).result(PATIENCE)
    assert (result.ok, result.output) == (True, "ok")
    assert surface.effects == [("memo:two", "field-1", "x")]


def test_subtasks_of_one_step_run_as_a_group(start):
    surface = MemoryServer(MemoryServer.window(), MemoryServer.window("two"))
    subtasks = [
        {"target": f"memo:{name}", "kind": "app", "request": f"fill {name}", "steps": [write(name), finish(name)]}
        for name in ("one", "two")
    ]
    host = [
        {"status": "ASSIGN", "assign": [{"subtask": 1}, {"subtask": 2, "after": [1]}]},
        finish("${subtasks.2.output}"),
    ]
    routine = Routine.model_validate({"routine": "pair", "request": "both", "host": host, "subtasks": subtasks})
    result = start(servers=[surface]).submit(Task(routine=routine)).result(PATIENCE)
    assert (result.ok, result.output) == (True, "two")
    assert [target for target, _, _ in surface.effects] == ["memo:one", "memo:two"]


def test_subtasks_of_one_request_run_in_the_order_of_their_hand_over(start):
    surface = MemoryServer(MemoryServer.window())
    subtasks = [
        {"target": "memo:one", "kind": "app", "request": "same", "steps": [write(text), finish(text)]} for text in "ab"
    ]
    host = [{"status": "ASSIGN", "assign": [{"subtask": number}]} for number in (2, 1)]
    content = {"routine": "r", "request": "x", "host": [*host, finish("${subtasks.1.output}")], "subtasks": subtasks}
    result = start(servers=[surface]).submit(Task(routine=Routine.model_validate(content))).result(PATIENCE)
    assert (result.ok, result.output) == (True, "a")
    assert [text for _, _, text in surface.effects] == ["b", "a"]


def test_result_of_the_last_action_is_looked_at_before_the_end(start):
    surface = MemoryServer(MemoryServer.window())
    last = {**write("x", expect={"changes": False}), "status": "FINISH"}
    subtask = {"target": "memo:one", "kind": "app", "request": "x", "steps": [last]}
    routine = Routine.model_validate({"routine": "r", "request": "x", "subtasks": [subtask]})
    result = start(servers=[surface], system={"ask_question": False}).submit(Task(routine=routine)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "changed something" in result.causes[0].reason


def test_parameter_that_is_a_number_may_be_in_a_name(start):
    surface = MemoryServer(MemoryServer.window(), controls={"5": ""})
    routine = lone(write("x", "${n}"), parameters={"who": {"value": "x"}, "n": {"value": 4}})
    supervisor = start(servers=[surface], system={"ask_question": False})
    assert supervisor.submit(Task(routine=routine, parameters={"n": 5})).result(PATIENCE).ok
    assert surface.effects == [("memo:one", "5", "x")]


def test_approval_is_asked_again_for_each_action(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(servers=[surface], policy=[{"verdict": "approve", "tool": "write"}])
    handle = supervisor.submit(Task(routine=lone(write("one"), write("two"), **WHO)))
    for _ in range(2):
        handle.approve(wait_for(handle.approvals)[0].id)
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["one", "two"]


def test_denied_action_of_a_routine_is_not_done(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(servers=[surface], policy=[{"verdict": "deny", "tool": "write"}], system={"ask_question": False})
    assert supervisor.submit(Task(routine=lone(write("one"), **WHO))).result(PATIENCE).outcome is Outcome.FAILED
    assert surface.effects == []


def test_secret_without_a_grant_is_not_filled_in(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(servers=[surface], system={"ask_question": False})
    task = Task(routine=lone(write("${secret:pw}"), **WHO), secrets={"pw": "swordfish-4711"})
    supervisor.submit(task).result(PATIENCE)
    assert all("swordfish" not in text for _, _, text in surface.effects)


def test_recovered_task_continues_at_the_next_step(begin, until, tmp_path):
    before = begin(policy=[{"verdict": "approve", "tool": "append"}])
    append = {"tool": "append", "arguments": {"control_id": "field-1", "text": "b"}}
    routine = lone(write("a"), {"status": "CONTINUE", "actions": [append]}, write("c"), **WHO)
    handle = before.submit(Task(routine=routine))
    until(handle, EventName.APPROVAL_REQUESTED)
    before.stop()
    after = begin().handle(handle.task_id)
    after.approve(after.approvals()[0].id)
    result = after.result(PATIENCE)
    assert (result.ok, result.usage.model_calls, result.usage.replayed) == (True, 0, 4)
    with JournalReader.open(tmp_path / "journal.db") as reader:
        steps = [row.message.record for row in reader.rows(handle.task_id) if isinstance(row.message, StepDone)]
    assert [step.decision.routine_step for step in steps if not step.resumed] == [1, 2, 3, 4]
    assert_replays(tmp_path / "journal.db", handle.task_id)


@pytest.mark.parametrize("model", [False, True])
def test_run_with_a_miss_replays_from_its_journal(begin, tmp_path, model):
    models = {"app": [{"Status": "FINISH", "Result": 1}, {"Status": "FINISH", "Result": 1}]} if model else {}
    supervisor = begin(system={"ask_question": False}, **models)
    handle = supervisor.submit(Task(routine=lone(write("a"), write("b", "gone"), **WHO)))
    assert handle.result(PATIENCE).ok is model
    supervisor.stop()
    assert_replays(tmp_path / "journal.db", handle.task_id)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": {"whom": "x"}}, "has no parameter 'whom'; did you mean 'who'"),
        ({"parameters": {"who": 3}}, "is a text"),
        ({"target": "memo:two"}, "works on memo:one: leave out `target`"),
    ],
)
def test_wrong_values_are_refused_before_anything_runs(start, given, message):
    with pytest.raises(TaskRefusedError, match=message):
        start().submit(Task(routine=lone(write("${who}"), **WHO), **given))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            {"status": "CONTINUE", "actions": [{"tool": "wipe"}]},
            "subtasks.1.steps.1.actions.0: app agents have no tool",
        ),
        (
            {"status": "CONTINUE", "actions": [{"tool": "write", "arguments": {"txt": "a"}}]},
            "subtasks.1.steps.1.actions.0: write: it takes no argument 'txt'",
        ),
        (
            {"status": "CONTINUE", "actions": [{"tool": "write", "arguments": {"text": 5}}]},
            "the argument 'text': 5 is not of type 'string'",
        ),
    ],
)
def test_routine_for_other_tools_is_refused_with_its_place(start, step, message):
    with pytest.raises(TaskRefusedError, match=message):
        start().submit(Task(routine=lone(step, **WHO)))


def test_checks_of_a_routine_are_the_tasks_checks(start):
    surface = MemoryServer(MemoryServer.window())
    check = {"control": {"target": "memo:one", "name": "field-1"}, "path": "/detail/text", "equals": "${who}"}
    routine = lone(write("${who}"), checks=[check], **WHO)
    result = start(servers=[surface]).submit(Task(routine=routine, parameters={"who": "Zoe"})).result(PATIENCE)
    assert result.verified is True
    wrong = lone(write("other"), checks=[check], **WHO)
    supervisor = start(servers=[surface], system={"ask_question": False})
    assert supervisor.submit(Task(routine=wrong)).result(PATIENCE).verified is False


class Answering(MemoryServer):
    """A window with a tool whose answer a later step needs."""

    @tool(effect=Effect.ONCE)
    def number(self, target: str) -> str:
        """Return the next number."""
        return "7"


def test_dry_run_ends_where_it_needs_a_result_of_its_own(start):
    number = {"status": "CONTINUE", "actions": [{"tool": "number"}]}
    routine = lone(number, write("${steps.1.results.0.value}"), **WHO)
    surface = Answering(MemoryServer.window())
    handle = start(servers=[surface], system=ALONE).submit(Task(routine=routine, dry_run=True))
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert [action.tool for action in result.would_do] == ["number"]
    assert "a dry run can't tell the steps of the routine fill from step 2 on" in result.comment
    assert not names(handle, EventName.ROUTINE_MISSED)
    assert start(servers=[surface], system=ALONE).submit(Task(routine=routine)).result(PATIENCE).ok


def test_dry_run_stops_at_a_guard_before_anything_was_left_out(start):
    routine = lone(write("x", "field-2"), **WHO)
    supervisor = start(servers=[MemoryServer(MemoryServer.window())], system=ALONE)
    result = supervisor.submit(Task(routine=routine, dry_run=True)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "expected the field 'field-2'" in result.causes[0].reason
