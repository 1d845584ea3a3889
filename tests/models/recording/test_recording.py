"""Recordings: a live run's requests and answers, and the same run once more without a model."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import Expected, FunctionModel, Model, ModelAnswer, Outcome, Settings, Supervisor, Task
from callboard.messages import (
    AgentKind,
    CommandResult,
    Decision,
    Effect,
    ModelError,
    ModelTimeoutError,
    Observation,
    ResultStatus,
    ScriptError,
    SettingsError,
    StepRecord,
)
from callboard.models import RecordedModel, ToolInfo, recorder
from callboard.models.recording._recorded import MatchBy, recorded_model
from callboard.models.recording._recording_model import Recorded, Recording, RecordingModel
from callboard.models.recording._request_digest import RequestDigest
from callboard.terminal import USAGE
from callboard.testing import MemoryServer
from support import PATIENCE, command_line

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "sales_report"
REQUEST = "Extract the sales table from Word and create a bar chart in Excel"
READ = ToolInfo(name="read", description="Read it.", schema={"type": "object"}, effect=Effect.READ)


@pytest.fixture
def file(tmp_path):
    """The file of a recording."""
    return tmp_path / "run.jsonl"


@pytest.fixture
def example(tmp_path):
    """Make a fresh copy of the example, with certain settings."""

    def copy(name, **changes):
        place = Path(shutil.copytree(EXAMPLE, tmp_path / name))
        path = place / "callboard.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text("utf-8")), **changes}), encoding="utf-8")
        return place

    return copy


def run(example, **sections):
    settings = Settings.load(example / "callboard.yaml", **sections)
    with Supervisor.start(settings) as supervisor:
        return supervisor.submit(Task(request=REQUEST)).result(PATIENCE)


def again(example, model):
    """Run it without its script, on a recording."""
    (example / "script.yaml").unlink()
    return run(example, models={"host": model, "app": model})


def answering(file, base, model, *requests):
    """Have requests answered by a model that is recorded."""
    recorded = RecordingModel(model, Recording(file, base))
    return [asyncio.run(recorded.answer(request)) for request in requests]


def played(file, base, request, by=MatchBy.REQUEST):
    return asyncio.run(RecordedModel.load(file, base, by).answer(request)).content


def refused(file, base, request):
    with pytest.raises(ScriptError) as info:
        played(file, base, request)
    return str(info.value)


def saying(*answers):
    left = iter(answers)
    return FunctionModel(lambda _: next(left))


# A run becomes a test


def test_a_recorded_run_is_played_back_without_its_models(example, file):
    live = run(example("live"), models={"record": file})
    replayed = again(example("again"), f"recorded:{file}")
    assert replayed.outcome is live.outcome is Outcome.FINISHED
    assert replayed.output == live.output
    assert [done.output for done in replayed.subtasks] == [done.output for done in live.subtasks]


def test_a_recording_has_each_call_once_with_its_agent_and_number(example, file):
    result = run(example("live"), models={"record": file})
    calls = [(line["address"], line["call"]) for line in map(json.loads, file.read_text("utf-8").splitlines())]
    assert len(calls) == result.usage.model_calls
    assert calls.count(("host", 1)) == 1
    assert {address for address, _ in calls} == {"host", "app/word/sales.docx", "app/excel/report.xlsx"}


def test_agents_may_take_turns_in_another_order_than_recorded(example, file):
    run(example("live"), models={"record": file})
    file.write_text("".join(reversed(file.read_text("utf-8").splitlines(keepends=True))), encoding="utf-8")
    replayed = again(example("again"), f"recorded:{file}")
    assert replayed.outcome is Outcome.FINISHED


def test_a_changed_prompt_ends_the_run_with_the_difference(example, file):
    run(example("live"), models={"record": file})
    changed = example("again", prompts={"app": "app.md"})
    (changed / "app.md").write_text("# AppAgent\n\nBe quick.\n", encoding="utf-8")
    result = again(changed, f"recorded:{file}")
    assert result.outcome is Outcome.ERROR
    assert any("\n+  Be quick.\n" in cause.reason for cause in result.causes)


def test_replay_by_order_ignores_a_changed_prompt(example, file):
    run(example("live"), models={"record": file})
    changed = example("again", prompts={"app": "app.md"})
    (changed / "app.md").write_text("Be quick.\n", encoding="utf-8")
    result = again(changed, f"recorded:{file}?by=order")
    assert result.outcome is Outcome.FINISHED


def test_the_host_programs_own_models_are_recorded_too(start, file):
    supervisor = start(app=[{"Status": "FINISH", "Result": 7}], models={"record": file})
    supervisor.submit(Task(request="do it", target="memo:one")).result(PATIENCE)
    (line,) = map(json.loads, file.read_text("utf-8").splitlines())
    assert line["answer"]["content"] == {"Status": "FINISH", "Result": 7}


def test_models_are_not_recorded_unless_configured():
    models = {AgentKind.APP: FunctionModel(lambda _: {})}
    assert recorder(Settings.load())(models["app"]) is models["app"]


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call the command line in an empty folder: ``call("run", "example")``."""
    monkeypatch.chdir(tmp_path)
    return command_line


def test_a_run_in_the_terminal_is_recorded_and_played_back(call, example, file):
    recorded = call("run", EXAMPLE, "--json", "--record", file.name)
    assert recorded.exit_code == 0
    models = dict.fromkeys(("host", "app"), f"recorded:{file}")
    replayed = call("run", example("again", models=models), "--json")
    assert replayed.exit_code == 0
    assert json.loads(replayed.stdout)["output"] == json.loads(recorded.stdout)["output"]


def test_a_run_is_not_added_to_another_runs_recording(call, file):
    file.write_text("another run's\n", encoding="utf-8")
    refused = call("run", EXAMPLE, "--record", file)
    assert refused.exit_code == USAGE
    assert "already exists" in refused.stderr
    assert file.read_text("utf-8") == "another run's\n"


# Equal requests


def test_the_same_request_gets_the_recorded_answer(asks, file, tmp_path):
    answering(file, tmp_path, saying({"Status": "FINISH"}), asks())
    assert played(file, tmp_path, asks()) == {"Status": "FINISH"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"instructions": "Rest."}, "+instructions: Rest."),
        ({"request": "make two charts"}, "+request: make two charts"),
        ({"statuses": ("CONTINUE",)}, "-  - FINISH"),
        ({"status": "SCREENSHOT"}, "+status: SCREENSHOT"),
        ({"plan": ("draw",)}, "+  - draw"),
        ({"reasons": ("no such tool",)}, "+  - no such tool"),
        ({"secrets": ("password",)}, "+  - password"),
        ({"observation": Observation(text="empty")}, "+  text: empty"),
        ({"memory": ()}, "-  - {"),
        ({"tools": (READ,)}, '+  - {"name": "read"'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_changed_request_is_refused_with_the_difference(asks, file, tmp_path, change, line):
    answering(file, tmp_path, saying({"Status": "FINISH"}), asks())
    said = refused(file, tmp_path, asks(**change))
    assert "another one" in said
    assert line in said


def test_a_changed_tool_makes_another_request_and_is_shown(asks, file, tmp_path):
    answering(file, tmp_path, saying({"Status": "FINISH"}), asks(tools=(READ,)))
    said = refused(file, tmp_path, asks(tools=(replace(READ, description="Read all."),)))
    assert "-  - " in said
    assert "Read it." in said
    assert "Read all." in said


def test_a_difference_that_is_too_long_to_be_shown_is_noticed(asks, tmp_path):
    long = "x\n" * 10_000
    one, other = (RequestDigest(asks(instructions=f"{long}{end}"), tmp_path) for end in "ab")
    assert one.fingerprint != other.fingerprint
    assert one.digest() != other.digest()
    assert sum(map(len, one.digest())) < 20_000


@pytest.mark.parametrize("change", [{"task_id": "u"}, {"run_id": "u~2"}], ids=["task", "run"])
def test_names_of_task_and_run_do_not_change_the_fingerprint(asks, tmp_path, change):
    assert RequestDigest(asks(**change), tmp_path).fingerprint == RequestDigest(asks(), tmp_path).fingerprint


def test_every_host_agent_is_the_same_agent(asks, tmp_path):
    one, other = (asks(kind=AgentKind.HOST, address=f"host/{task}", task_id=task) for task in "tu")
    assert RequestDigest(one, tmp_path).address == RequestDigest(other, tmp_path).address == "host"
    assert RequestDigest(one, tmp_path).fingerprint == RequestDigest(other, tmp_path).fingerprint


def remembering(**fields):
    result = {"call_id": "t~2.1.0", "tool": "read", "status": ResultStatus.SUCCESS, "value": 4, **fields}
    results = (CommandResult.model_validate(result),)
    return (
        StepRecord(
            step=1, status="CONTINUE", observation=Observation(), decision=Decision(status="FINISH"), results=results
        ),
    )


@pytest.mark.parametrize("change", [{"seconds": 3.0}, {"call_id": "u~7.1.0"}], ids=["seconds", "call"])
def test_duration_and_call_number_do_not_change_the_fingerprint(asks, tmp_path, change):
    slow = asks(memory=remembering(**change))
    assert RequestDigest(slow, tmp_path).fingerprint == RequestDigest(asks(memory=remembering()), tmp_path).fingerprint


def test_result_of_a_call_changes_the_fingerprint(asks, tmp_path):
    other = asks(memory=remembering(value=5))
    assert RequestDigest(other, tmp_path).fingerprint != RequestDigest(asks(memory=remembering()), tmp_path).fingerprint


def test_modification_time_and_size_do_not_change_the_fingerprint(asks, tmp_path):
    one, other = (
        asks(observation=Observation(window={"title": "Report", "modified": when, "size": size}, fingerprint=when))
        for when, size in (("2024", 1), ("2025", 2))
    )
    assert RequestDigest(one, tmp_path).fingerprint == RequestDigest(other, tmp_path).fingerprint


def test_the_folder_of_the_run_changes_no_request_and_is_not_in_the_file(asks, file, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    here = asks(request=f"open {one}/a.docx, not {one}s")
    answering(file, one, saying({"Comment": f"opened {one}/a.docx"}), here)
    assert f"{one}/" not in file.read_text("utf-8")
    assert f"not {one}s" in file.read_text("utf-8")
    there = asks(request=f"open {other}/a.docx, not {one}s")
    assert played(file, other, there) == {"Comment": f"opened {other}/a.docx"}


@pytest.mark.parametrize("text", ["cd ${base}/x", "${base:}", "${base::} ${base}", "${base:1}", "$${base}}"])
def test_a_text_that_reads_like_the_runs_folder_stays_that_text(asks, file, tmp_path, text):
    request = asks(request=f"do {text} in {tmp_path}")
    answering(file, tmp_path, saying({"Comment": f"{text} is not {tmp_path}/x", text: ""}), request)
    assert played(file, tmp_path, request) == {"Comment": f"{text} is not {tmp_path}/x", text: ""}
    assert played(file, tmp_path, request, MatchBy.ORDER) == {"Comment": f"{text} is not {tmp_path}/x", text: ""}


def test_a_request_with_the_folder_differs_from_one_with_its_placeholder(asks, file, tmp_path):
    answering(file, tmp_path, saying({}), asks(request=f"open {tmp_path}/x"))
    refused(file, tmp_path, asks(request="open ${base}/x"))


# Contents that must not be in the file


def test_recording_holds_only_the_name_of_a_secret(start, file):
    surface = MemoryServer(MemoryServer.window(), controls={"field": "the code is hunter2-hunter2"})
    supervisor = start(
        app=[{"Status": "FINISH"}], servers=[surface], models={"record": file}, secrets={"code": "hunter2-hunter2"}
    )
    supervisor.submit(Task(request="do it", target="memo:one")).result(PATIENCE)
    text = file.read_text("utf-8")
    assert "hunter2" not in text
    assert "${secret:code}" in text


def test_picture_does_not_change_the_fingerprint(asks, file, tmp_path):
    one, other = (Observation(picture=picture, annotated=picture[::-1]) for picture in (b"\x89PNG one", b"\x89PNG two"))
    answering(file, tmp_path, saying({}), asks(observation=one))
    assert "picture" not in file.read_text("utf-8")
    assert played(file, tmp_path, asks(observation=other)) == {}


# Answers


@settings(max_examples=50)
@given(
    content=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_answer_comes_back_as_it_was(asks, tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("recording")
    answering(folder / "run.jsonl", folder, saying(content), asks())
    assert played(folder / "run.jsonl", folder, asks()) == content


@pytest.mark.parametrize("content", [float("nan"), object(), "\ud800"], ids=["nan", "object", "surrogate"])
def test_answer_that_is_not_json_is_recorded_as_printed(asks, file, tmp_path, content):
    answering(file, tmp_path, saying(content), asks())
    assert played(file, tmp_path, asks()) == repr(content)


def test_an_answer_may_hold_every_sort_of_line_end(asks, file, tmp_path):
    content = "a\nb\rc\u2028d\x85e\x0cf"
    answering(file, tmp_path, saying(content), asks())
    assert played(file, tmp_path, asks()) == content


def test_tokens_cost_and_the_model_that_answered_are_kept(asks, file, tmp_path):
    live = ModelAnswer(content={}, input_tokens=7, output_tokens=3, cost=0.25, model="small-2024")
    (heard,) = answering(file, tmp_path, saying(live), asks())
    assert heard == live.model_copy(update={"program": True})
    played_back = asyncio.run(RecordedModel.load(file, tmp_path).answer(asks()))
    assert played_back == live.model_copy(update={"must_succeed": False})


def test_a_model_that_gave_no_answer_gives_none_again(asks, file, tmp_path):
    def fail(_):
        msg = "the provider is down"
        raise ModelError(msg)

    with pytest.raises(ModelError, match="the provider is down"):
        answering(file, tmp_path, FunctionModel(fail), asks())
    with pytest.raises(ModelError, match="the provider is down"):
        played(file, tmp_path, asks())


def test_a_model_that_took_too_long_took_too_long_again(asks, file, tmp_path):
    def fail(_):
        msg = "no answer within 4 s"
        raise ModelTimeoutError(msg)

    with pytest.raises(ModelTimeoutError, match="within 4 s"):
        answering(file, tmp_path, FunctionModel(fail), asks())
    with pytest.raises(ModelTimeoutError, match="within 4 s"):
        played(file, tmp_path, asks())


@pytest.mark.parametrize("by", MatchBy)
def test_two_tasks_at_one_address_get_their_own_answers_then_a_repeat(asks, file, tmp_path, by):
    answering(file, tmp_path, saying("first", "second"), asks(), asks())
    model = RecordedModel.load(file, tmp_path, by)
    said = [asyncio.run(model.answer(asks())).content for _ in range(3)]
    assert said[:2] == ["first", "second"]
    assert said[2] in {"first", "second"}


def test_a_request_gets_its_own_answer_whichever_task_comes_first(asks, file, tmp_path):
    answering(file, tmp_path, saying("rows", "chart"), asks(request="rows"), asks(request="chart"))
    model = RecordedModel.load(file, tmp_path)
    assert asyncio.run(model.answer(asks(request="chart"))).content == "chart"
    assert asyncio.run(model.answer(asks(request="rows"))).content == "rows"


def test_unrecorded_call_error_names_the_recorded_ones(asks, file, tmp_path):
    answering(file, tmp_path, saying({}), asks())
    assert "its last one at app/excel/book.xlsx has the number 1" in refused(file, tmp_path, asks(call=2))
    assert "it has some of app/excel/book.xlsx" in refused(file, tmp_path, asks(address="app/word/x"))


# The recorder


def test_a_recorder_passes_every_method_of_a_model_on():
    methods = {name for name, member in vars(Model).items() if callable(member) and not name.startswith("_")}
    assert methods <= vars(RecordingModel).keys()


def test_a_recorder_expects_what_its_model_expects(asks, file, tmp_path):
    model = FunctionModel(lambda _: {}, expects=lambda _: Expected(tokens=9, cost=0.5))
    assert RecordingModel(model, Recording(file, tmp_path)).estimate(asks()) == Expected(tokens=9, cost=0.5)


def test_a_recorder_is_called_as_its_model_is(file, tmp_path):
    model = FunctionModel(lambda _: {})
    assert RecordingModel(model, Recording(file, tmp_path)).name == "FunctionModel"
    model.name = "openai:gpt-5"
    assert RecordingModel(model, Recording(file, tmp_path)).name == "openai:gpt-5"


def test_a_recorder_takes_turns_and_closes_as_its_model_does(file, tmp_path):
    class Limited(FunctionModel):
        closed = False

        def turn(self):
            return asyncio.Lock()

        async def close(self):
            self.closed = True

    model = Limited(lambda _: {})
    recorder = RecordingModel(model, Recording(file, tmp_path))
    assert isinstance(recorder.turn(), asyncio.Lock)
    asyncio.run(recorder.close())
    assert model.closed


def test_many_calls_at_a_time_make_whole_lines(asks, file, tmp_path):
    async def ask_all():
        model = RecordingModel(FunctionModel(lambda request: request.call), Recording(file, tmp_path))
        await asyncio.gather(*(model.answer(asks(call=call)) for call in range(1, 21)))

    asyncio.run(ask_all())
    lines = [Recorded.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]
    assert sorted(line.call for line in lines) == list(range(1, 21))
    assert all(line.answer.content == line.call for line in lines)


def test_recording_continues_where_it_ended(asks, file, tmp_path):
    answering(file, tmp_path, saying("one"), asks())
    answering(file, tmp_path, saying("two"), asks(call=2))
    assert played(file, tmp_path, asks(call=2)) == "two"


def test_a_recording_that_cannot_be_written_is_refused_at_the_start(start, tmp_path):
    with pytest.raises(SettingsError, match="can't be written"):
        start(app=[], models={"record": tmp_path})


def test_a_call_that_cannot_be_recorded_is_an_error(asks, file, tmp_path):
    recorder = RecordingModel(FunctionModel(lambda _: {}), Recording(file, tmp_path))
    file.unlink()
    file.mkdir()
    with pytest.raises(ModelError, match="can't be written"):
        asyncio.run(recorder.answer(asks()))


# Reading


def test_a_recording_that_is_not_there_is_an_error(file, tmp_path):
    with pytest.raises(ScriptError, match="can't be read"):
        RecordedModel.load(file, tmp_path)


@pytest.mark.parametrize("line", ["{", "[]", '{"recording": 2, "address": "host", "call": 1, "fingerprint": ""}'])
def test_invalid_recording_line_is_an_error_with_its_number(asks, file, tmp_path, line):
    answering(file, tmp_path, saying({}), asks())
    file.write_text(f"{file.read_text('utf-8')}\n{line}\n", encoding="utf-8")
    with pytest.raises(ScriptError, match="line 3: is no recorded call"):
        RecordedModel.load(file, tmp_path)


@pytest.mark.parametrize("asked", ["by=chance", "in=order", "order"])
def test_a_name_that_asks_for_something_else_is_refused(file, asked):
    with pytest.raises(SettingsError, match="by=order"):
        recorded_model(Settings.load(), f"{file}?{asked}")
