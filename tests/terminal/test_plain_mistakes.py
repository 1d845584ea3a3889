"""Forty mistakes of newcomers: one plain sentence each, without the words of a library, and the exit code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MODELS = "models: {host: 'scripted:script.yaml', app: 'scripted:script.yaml'}\ndocuments: {workspace: workspace}\n"
FOREIGN = re.compile(
    r"Input should|Field required|instance of|Value error|Traceback|Errno|pydantic|\[type=|yaml\.|jsonschema|httpx"
    r"|\b(?:str|int|dict|tuple|NoneType|True|False|None)\b|\b[A-Z][a-z]+(?:Error|Model|Settings|Source)\b"
)
QUOTED_NUMBER = "must be text, and is read as a number: put it in quotes"
QUOTED_BOOLEAN = "must be text, and is read as true or false: put it in quotes"
TASK, SETTINGS = "p/task.yaml: ", "p/callboard.yaml: "


def task(text):
    """Give a task file, and run its folder."""
    return {"task.yaml": f"request: do it\n{text}\n"}, ["run", "p"], {}


def settings(text, *, whole=False):
    """Give settings, beside those that a run needs, and run their folder."""
    return {"callboard.yaml": text if whole else f"{MODELS}{text}\n"}, ["run", "p"], {}


def command(*words):
    return {}, list(words), {}


def environment(**variables):
    return {}, ["run", "p"], variables


MISTAKES = {
    # labels and texts that YAML reads otherwise
    "a version as a label": (task("labels: {version: 1.10}"), TASK + "labels.version: " + QUOTED_NUMBER),
    "yes as a label": (task("labels: {urgent: yes}"), TASK + "labels.urgent: " + QUOTED_BOOLEAN),
    "on as the name of a label": (task("labels: {on: x}"), TASK + "labels: the key " + QUOTED_BOOLEAN),
    "a year as an id": (task("id: 2024"), TASK + "id: " + QUOTED_NUMBER),
    "a number as a label of a machine": (task("needs: {rack: 7}"), TASK + "needs.rack: " + QUOTED_NUMBER),
    "a number as a secret": (settings("secrets: {pin: 1234}"), SETTINGS + "secrets.pin: must be text, and is read as"),
    "a port as a text": (
        settings("mcpServers: {a: {command: ls, env: {PORT: 80}}}"),
        SETTINGS + "mcpServers.a.env.PORT: " + QUOTED_NUMBER,
    ),
    "on as the name of a shell": (settings("shells: {on: {cwd: x}}"), SETTINGS + "shells: the key " + QUOTED_BOOLEAN),
    # other mistakes of a task
    "a list of labels": (task("labels: [a]"), TASK + "labels: must be a mapping of keys to values"),
    "one file that is no list": (
        task("output_files: a.xlsx\nmay_change: {a: b}"),
        TASK + "may_change: must be a list",
    ),
    "a deadline in words": (task("deadline: tomorrow"), TASK + "deadline: must be a date and time with its time zone"),
    "a deadline without a time": (task("deadline: 2030-01-01"), TASK + "deadline: must be a date and time with its"),
    "checks that are no list": (task("checks: {file: a}"), TASK + "checks: must be a list"),
    "a check that is a word": (task("checks: [x]"), TASK + "checks.0: must be a mapping of keys to values"),
    "no steps at all": (task("limits: {steps: 0}"), TASK + "limits.steps: must be at least 1"),
    "half a step": (task("limits: {steps: 1.5}"), TASK + "limits.steps: must be a whole number"),
    "a cost in words": (task("budget: {cost: free}"), TASK + "budget.cost: must be a number"),
    "a plan of one sentence": (
        task("plan: do it"),
        TASK + "plan: must be a list: put it in brackets, as in [one, two]",
    ),
    "a step without a request": (task("plan: [{target: x}]"), TASK + "plan.0.request: is missing"),
    "an id with a space": (task("id: 'a b'"), TASK + "id: an id is 1 to 100 letters (A to Z), digits and _ . -"),
    "a rule without a verdict": (task("policy: [{tool: x}]"), TASK + "policy.0.verdict: is missing"),
    "a type that JSON does not have": (
        task("output_schema: {type: objekt}"),
        TASK + "output_schema: is not a JSON Schema: the value at $.type is not allowed there",
    ),
    "an empty key": (task("key: ''"), TASK + "key: is empty"),
    "maybe a dry run": (task("dry_run: maybe"), TASK + "dry_run: must be true or false"),
    # other mistakes of settings
    "one model for all": (settings("models: gpt-5\n", whole=True), SETTINGS + "models: must be a mapping of keys"),
    "a provider without a model": (
        settings("models: {host: 'openai:'}\n", whole=True),
        "models.host: 'openai:' is not a known model; known forms are: scripted:FILE, recorded:FILE, routine:FILE, ",
    ),
    "an unknown level": (settings("log: {level: loud}"), SETTINGS + "log.level: must be 'debug', 'info', 'warning' or"),
    "a mailbox without a sender": (settings("mail: {work: {}}"), SETTINGS + "mail.work.sender: is missing"),
    "one argument that is no list": (
        settings("mcpServers: {a: {command: ls, args: -l}}"),
        SETTINGS + "mcpServers.a.args: must be a list: put it in brackets, as in [one, two]",
    ),
    "a journal that is a name": (settings("journal: j.db"), SETTINGS + "journal: must be a mapping of keys to values"),
    "negative days": (settings("journal: {path: j.db, days: -1}"), SETTINGS + "journal.days: must be more than 0"),
    "a cost with its currency": (
        settings("budget: {task: {cost: 1 EUR}}"),
        SETTINGS + "budget.task.cost: must be a number",
    ),
    "an address without http": (
        settings("providers: {mine: {url: 'localhost:8080'}}"),
        SETTINGS + "providers.mine.url: is no address: write http://HOST:PORT/PATH",
    ),
    "two spellings of a provider": (
        settings("providers: {my_box: {seed: 1}, my-box: {seed: 2}}"),
        SETTINGS + "providers.my_box and providers.my-box are one provider: merge them",
    ),
    "a folder of skills that is not there": (settings("skills: [nowhere]"), "skills.0: {here}/p/nowhere: there is no"),
    "answers that are no list": (
        ({"script.yaml": "host: {a: b}\n"}, ["run", "p"], {}),
        "models.host: {here}/p/script.yaml: host: expected a list of answers, found a mapping of keys to values",
    ),
    # the environment
    "a word for a number in a variable": (
        environment(CALLBOARD_LIMITS__STEPS="many"),
        "the environment: CALLBOARD_LIMITS__STEPS: limits.steps: must be a whole number",
    ),
    "broken JSON in a variable": (
        environment(CALLBOARD_LIMITS="{steps"),
        "the environment: CALLBOARD_LIMITS: is not valid JSON: write a section as JSON, or set its keys one by one",
    ),
    "an empty address in a variable": (
        environment(CALLBOARD_PROVIDERS__LOCAL__URL=""),
        "the environment: CALLBOARD_PROVIDERS__LOCAL__URL: providers.local.url: is no address",
    ),
    "an empty key in a variable": (
        environment(OPENAI_API_KEY="", CALLBOARD_MODELS__HOST="openai:gpt-5"),
        "models.host: providers.openai: set OPENAI_API_KEY, or providers.openai.api_key",
    ),
    "an unknown section in a variable": (
        environment(CALLBOARD_LIMIT__STEPS="3"),
        "the environment: CALLBOARD_LIMIT__STEPS: unknown section 'limit'; did you mean CALLBOARD_LIMITS__...?",
    ),
    "no server of a fleet": (
        command("fleet", "serve"),
        "fleet.url is not set, and this folder has no callboard.yaml: set the variable CALLBOARD_FLEET__URL, or name a",
    ),
    "no journal for work of other machines": (
        ({}, ["fleet", "serve"], {"CALLBOARD_FLEET__URL": "nats://127.0.0.1:4222"}),
        "journal.path is not set, and this folder has no callboard.yaml: set the variable CALLBOARD_JOURNAL__PATH, or",
    ),
    "no journal for callers": (
        command("mcp"),
        "journal.path is not set, and this folder has no callboard.yaml: set the variable CALLBOARD_JOURNAL__PATH, or",
    ),
    "no journal to list": (
        command("tasks"),
        "no journal is named, and this folder has no callboard.yaml that names one: name a run's folder, or a ",
    ),
    "a level in capitals in a variable": (
        environment(CALLBOARD_LOG__LEVEL="WARNING"),
        "the environment: CALLBOARD_LOG__LEVEL: log.level: must be 'debug', 'info', 'warning' or 'error'",
    ),
    "an empty journal in a variable": (
        environment(CALLBOARD_JOURNAL__PATH=""),
        "the environment: CALLBOARD_JOURNAL__PATH: journal.path: is empty: name a path, or leave the setting out",
    ),
    "an empty workspace in a variable": (
        environment(CALLBOARD_DOCUMENTS__WORKSPACE=""),
        "the environment: CALLBOARD_DOCUMENTS__WORKSPACE: documents.workspace: is empty: name a path, or leave the",
    ),
    "a folder in the place of a list": (
        environment(CALLBOARD_SKILLS="skills/style"),
        'the environment: CALLBOARD_SKILLS: is not valid JSON: write a list as JSON, as in ["one", "two"]',
    ),
    # the command line
    "a script in the place of a task": (
        command("run", "p/script.yaml"),
        "p/script.yaml: holds the answers of a script, not a task: give the folder that it is in",
    ),
    "an eval set in the place of a task": (
        command("run", "p/eval.yaml"),
        "p/eval.yaml: is an eval set, not a task: callboard eval p/eval.yaml",
    ),
    "a task file without its settings": (
        command("run", "p/task.yaml"),
        "p/task.yaml: no model is named: add --model NAME, or --settings p/callboard.yaml; see: callboard docs models",
    ),
    "an example that is in the package": (
        command("run", "examples/sales_report"),
        "examples/sales_report: there is no such file or folder; run the installed example: callboard demo s",
    ),
    "a path in the place of a task": (
        command("show", "p/task.yaml"),
        "p/task.yaml: is a path, not a task: name the task before it, as in: TASK p/task.yaml",
    ),
    "the tasks of a folder without settings": (
        command("tasks", "p/workspace"),
        "p/workspace: has no callboard.yaml that names a journal: name a run's folder",
    ),
    "a shell for the completion": (command("completion", "zsh"), "too many arguments: zsh; see "),
    "a model without a name": (
        command("run", "p", "--model", "openai:"),
        "--model openai: names no model after the colon: write openai:MODEL",
    ),
    "a check without a place": (command("run", "p", "--check", "file:"), "--check 'file:': `file` names nothing"),
    "a port in words": (command("console", "p", "--port", "abc"), "--port: must be a whole number; see "),
    "a port that is too high": (command("console", "p", "--port", "99999"), "--port: must be at most 65535; see "),
    "tools of a folder that is not there": (command("tools", "no/where"), "no/where: there is no such file or folder"),
    "a task of no journal": (command("show", "t", "p"), "the journal {here}/p/journal.db is not there"),
    "a page that is not there": (command("docs", "modles"), "there is no page 'modles'; did you mean 'models'?"),
    "an example that is not there": (command("demo", "sales"), "there is no example 'sales'; did you mean"),
    "an outcome that does not exist": (command("tasks", "p", "--outcome", "done"), "there is no outcome 'done'"),
}


@pytest.fixture
def project(call, here):
    """Write the first project to ``p``."""
    assert call("init", "p").exit_code == 0


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_gets_a_plain_sentence_and_does_nothing(call, here, monkeypatch, mistake, sentence):
    files, words, variables = mistake
    for name, text in files.items():
        Path("p", name).write_text(text, encoding="utf-8")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = call(*words)
    assert isinstance(result.exception, SystemExit), result.exception
    lines = [line for line in result.stderr.splitlines() if not line.startswith("callboard: warning")]
    assert any(line.startswith(f"callboard: {sentence.format(here=here)}") for line in lines), result.output
    assert (result.exit_code, result.stdout, list(Path().glob("runs/*"))) == (2, "", [])
    assert not FOREIGN.search(result.output.replace(str(here), "")), result.output


def test_there_are_at_least_forty_mistakes():
    assert len(MISTAKES) >= 40
