"""Models named in a call: `--model host=openai:gpt-5,app=local:qwen` beats the settings' `models`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from callboard import EventName, Outcome, Settings, Supervisor, Task, TaskResult
from callboard.messages import AgentKind
from callboard.terminal import USAGE
from callboard.terminal._commands import model_options, models_of
from callboard.terminal._journals import resume_command

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sales_report"
KINDS = [kind.value for kind in AgentKind]
NAMES = st.from_regex(r"[a-z]{1,8}:[a-z0-9_./?=-]{1,12}", fullmatch=True).filter(
    lambda name: not name.startswith(("recorded:", "scripted:"))
)
CREATE = {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": "new.xlsx"}}
NOD = [{"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}]


def finish(comment):
    return {"Status": "FINISH", "Comment": comment}


@pytest.fixture
def folder(folder):
    """Make a folder that can be run, whose own script finishes at once unless a test says more."""
    return lambda *answers, **sections: folder(*(answers or [finish("the folder's own")]), **sections)


def script(file, *answers):
    file.write_text(yaml.safe_dump({"host": list(answers)}), encoding="utf-8")


def outcome(result):
    return TaskResult.model_validate_json(result.stdout).outcome


# Which model an agent gets


def test_a_model_of_the_call_beats_that_of_the_settings(call, here, folder):
    script(here / "other.yaml", finish("the call's"))
    assert "the call's" in call("run", folder(), "--model", "host=scripted:other.yaml").stdout


def test_a_model_of_the_call_beats_that_of_the_environment(call, here, folder, monkeypatch):
    monkeypatch.setenv("CALLBOARD_MODELS__HOST", "scripted:missing.yaml")
    script(here / "other.yaml", finish("the call's"))
    assert "the call's" in call("run", folder(), "--model", "host=scripted:other.yaml").stdout


@pytest.mark.parametrize(
    ("options", "said"), [(["--model", "scripted:other.yaml"], "the call's"), (["--record", "run.jsonl"], "the task's")]
)
@pytest.mark.parametrize("file", ["", "task.yaml"])
def test_a_model_of_the_call_beats_that_of_the_task(call, here, folder, options, said, file):
    script(here / "other.yaml", finish("the call's"))
    script(here / "own.yaml", finish("the task's"))
    task = yaml.safe_dump({"request": "do it", "model": f"scripted:{here / 'own.yaml'}"})
    assert said in call("run", folder(files={"task.yaml": task}) / file, *options).stdout


def test_kinds_that_the_call_does_not_name_keep_the_settings_model(call, here, folder):
    script(here / "other.yaml", finish("the call's"))
    assert "the folder's own" in call("run", folder(), "--model", "app=scripted:other.yaml").stdout


def test_a_relative_file_starts_from_the_folder_of_the_call(call, here, folder):
    script(here / "script.yaml", finish("the call's"))
    assert "the call's" in call("run", folder(), "--model", "scripted:script.yaml").stdout


def test_a_task_file_runs_with_it_and_without_settings(call, here, folder):
    script(here / "other.yaml", finish("the call's"))
    result = call("run", folder() / "task.yaml", "--model", "host=scripted:other.yaml")
    assert (result.exit_code, "the call's" in result.stdout) == (0, True), result.output


@pytest.mark.parametrize(
    "options",
    [
        ["recorded:run.jsonl"],
        ["recorded:run.jsonl?by=order"],
        ["host=recorded:run.jsonl", "app=recorded:run.jsonl"],
        ["host=recorded:run.jsonl?by=order, app=recorded:run.jsonl?by=order"],
    ],
)
def test_a_recorded_run_of_the_example_is_played_back_by_name(call, options):
    live = call("run", EXAMPLE, "--json", "--record", "run.jsonl")
    again = call("run", EXAMPLE, "--json", *(word for option in options for word in ("--model", option)))
    assert outcome(again) is Outcome.FINISHED
    assert json.loads(again.stdout)["output"] == json.loads(live.stdout)["output"]


def test_answers_of_the_calls_model_can_be_recorded(call, here, folder):
    script(here / "other.yaml", finish("the call's"))
    call("run", folder(), "--model", "scripted:other.yaml", "--record", "run.jsonl")
    (line,) = map(json.loads, (here / "run.jsonl").read_text("utf-8").splitlines())
    assert line["answer"]["content"]["Comment"] == "the call's"


def test_a_live_model_at_an_address_of_the_environment_drives_a_run(call, folder, provider, monkeypatch):
    monkeypatch.setenv("CALLBOARD_PROVIDERS__LOCAL__URL", provider.url)
    provider.says({"Status": "FINISH", "Comment": "the model's"})
    result = call("run", folder(), "--model", "host=local:small")
    assert result.exit_code == 0, result.output
    assert "the model's" in result.stdout
    assert [request["model"] for request in provider.requests] == ["small", "small"]
    assert "it says FINISH, and nothing was done yet" in json.dumps(provider.requests[1])
    assert "changed nothing\n" in result.stdout


def test_the_policy_is_tried_with_a_model_of_the_call(call, here, folder):
    script(here / "other.yaml", CREATE, finish("made"))
    result = call("policy", "check", folder(), "--model", "scripted:other.yaml", "--json")
    assert [verdict["tool"] for verdict in json.loads(result.stdout)] == ["create_document"]


# Going on


@pytest.fixture
def suspended(folder):
    """A folder whose journal has a task that is not over: it waits for a person."""
    place = folder(CREATE, finish("the folder's own"), policy=NOD, journal={"path": "journal.db"})
    settings = Settings.load(place / "callboard.yaml")
    with Supervisor.start(settings) as supervisor:
        handle = supervisor.submit(Task(id="t", request="do it"))
        next(event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    return place


def test_resume_continues_a_task_with_the_calls_model(call, here, suspended):
    script(here / "other.yaml", CREATE, finish("the call's"))
    result = call("resume", suspended, "--yes", "--model", "scripted:other.yaml")
    assert result.exit_code == 0, result.output
    assert "the call's" in result.stdout


@pytest.mark.parametrize(
    "models",
    [
        {},
        {"host": "openai:gpt-5"},
        {"host": "recorded:/some where/run.jsonl?by=order", "app": "local:qwen"},
        dict.fromkeys(KINDS, "openai:gpt-5"),
    ],
)
def test_resume_command_names_the_same_models(models):
    command = resume_command(None, None, models)
    words = shlex.split(command)
    assert words[:2] == ["callboard", "resume"]
    assert models_of(words[3::2]) == models


# How options are read


@pytest.mark.parametrize(
    ("options", "models"),
    [
        ([], {}),
        (["host=openai:gpt-5"], {"host": "openai:gpt-5"}),
        (["host=openai:gpt-5", "app=local:qwen"], {"host": "openai:gpt-5", "app": "local:qwen"}),
        (["host=openai:gpt-5,app=local:qwen"], {"host": "openai:gpt-5", "app": "local:qwen"}),
        (["host=openai:gpt-5, app = local:qwen"], {"host": "openai:gpt-5", "app": "local:qwen"}),
        (["openai:gpt-5"], dict.fromkeys(KINDS, "openai:gpt-5")),
        (["app=local:qwen", "openai:gpt-5"], {**dict.fromkeys(KINDS, "openai:gpt-5"), "app": "local:qwen"}),
        (["ollama:qwen3:4b"], dict.fromkeys(KINDS, "ollama:qwen3:4b")),
        (["linux=scripted:/a,b.yaml"], {"linux": "scripted:/a,b.yaml"}),
        (["mobile=recorded:/a.jsonl?by=order"], {"mobile": "recorded:/a.jsonl?by=order"}),
    ],
)
def test_options_name_models_by_kind_of_agent(options, models):
    assert models_of(options) == models


@given(st.dictionaries(st.sampled_from(KINDS), NAMES))
def test_models_written_as_options_are_read_as_they_were(models):
    assert models_of(model_options(models)[1::2]) == models


@pytest.mark.parametrize("command", [("run", EXAMPLE), ("resume", EXAMPLE), ("policy", "check", EXAMPLE)])
@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("hots=openai:gpt-5", "--model hots=openai:gpt-5: there is no kind of agent 'hots'; did you mean 'host'?"),
        ("qq=a:b", "--model qq=a:b: there is no kind of agent 'qq'; there are: host, app, mobile, linux"),
        ("host=a:b,qq=a:b", "--model qq=a:b: there is no kind of agent 'qq'; there are: host, app, mobile, linux"),
        ("host=a:b,host=c:d", "--model host=c:d: there is already a model for host: a:b"),
        ("gpt-5", "--model gpt-5: 'gpt-5' is not a known model; known forms are: scripted:FILE, "),
        ("host=", "--model host=: '' is not a known model; known forms are: scripted:FILE, "),
        ("openai:", "--model openai: names no model after the colon: write openai:MODEL, such as openai:gpt-5"),
        ("app=openai: ", "--model app=openai: names no model after the colon: write openai:MODEL"),
        ("scripted:", "--model scripted: names no file after the colon: write scripted:FILE"),
        ("", "--model : '' is not a known model; known forms are: scripted:FILE, "),
    ],
)
def test_wrong_option_is_reported_in_one_line(call, here, command, option, told):
    result = call(*command, "--model", option)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert result.stderr.startswith(f"callboard: {told}")
    assert result.stderr.count("\n") == 1
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("recorded:none.jsonl", "models.host: the recording {here}/none.jsonl can't be read"),
        ("app=scripted:none.yaml", "models.app: the script {here}/none.yaml: can't be read"),
        ("app=elsewhere:small", "models.app: providers.elsewhere: 'elsewhere' is no known kind of provider"),
    ],
)
def test_missing_model_is_reported_before_anything_is_copied(call, here, option, told):
    result = call("run", EXAMPLE, "--model", option)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert result.stderr.startswith(f"callboard: {told.format(here=here)}")
    assert list(here.iterdir()) == []


def test_two_models_for_all_kinds_are_refused(call):
    result = call("run", EXAMPLE, "--model", "openai:gpt-5", "--model", "local:qwen")
    assert result.exit_code == USAGE
    assert "--model local:qwen: there is already a model for all kinds of agents: openai:gpt-5" in result.stderr
