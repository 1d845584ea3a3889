"""Mistakes of users: each gets one plain sentence and its exit code, before anything is done."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import unicodedata
import zipfile
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard.journal import JournalFile
from support import command_line

FINISH = {"Status": "FINISH"}
FAIL = {"Status": "FAIL", "Comment": "it can't be read"}
OLE, ENCRYPTED = bytes.fromhex("d0cf11e0a1b11ae1"), "EncryptedPackage".encode("utf-16-le")
UTF_32 = "<?xml version='1.0' encoding='UTF-32'?><a/>".encode("utf-32")
UTF_7 = b"<?xml version='1.0' encoding='UTF-7'?><a/>"


def zipped(**parts):
    """Make a file as Office writes it, of some parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made.getvalue()


def job(*, files=None, task="request: do it\n", **settings):
    """Make the folder ``job``, runnable except for the given parts: files by name, and sections of the settings."""
    models = {"host": "scripted:script.yaml", "app": "scripted:script.yaml"}
    whole = {"models": models, "documents": {"workspace": "workspace"}, **settings}
    host = [{"Status": "ASSIGN", "ControlText": "a.docx", "Current Sub-Task": "x"}, FAIL]
    Path("job/workspace").mkdir(parents=True)
    written = {
        "callboard.yaml": yaml.safe_dump(whole),
        "task.yaml": task,
        "script.yaml": yaml.safe_dump({"host": host}),
        **(files or {}),
    }
    for name, content in written.items():
        if content is not None:
            Path("job", name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return ["run", "job"]


def document(data):
    """Make a folder whose task is to read a document."""
    return job(files={"workspace/a.docx": data})


def empty_journal(*command):
    JournalFile.open(Path("j.db")).close()
    return [*command, "j.db"]


def odd_name(*inside):
    """Give a name that is no UTF-8 to the folder, or to a file in it."""
    job()
    named = Path("job", *inside, os.fsdecode(b"a\xff.docx"))
    named.touch()
    return ["run", "job"] if inside else ["run", named]


MADE = {"folder": Path.mkdir, "file": Path.touch}


def beside(what, name, *command):
    """Make a file or folder beside the folder, and give a command that names it."""
    MADE[what](Path(name))
    return [*job(), *command, name]


SETTINGS, TASK = "job/callboard.yaml: ", "job/task.yaml: "
NEEDS = "a task needs at least: request: TEXT"
DAMAGED = "'a.docx' is damaged and can't be opened ("

MISTAKES = {
    # the arguments
    "a path that is not there": (lambda: ["run", "nowhere"], "nowhere: there is no such file or folder"),
    "no path": (
        lambda: ["run"],
        "Missing argument 'FOLDER | TASK.yaml | REQUEST DOCUMENT... | NAME.routine.yaml DOCUMENT...'; see root run",
    ),
    "an unknown option": (lambda: ["run", "x", "--jsn"], "No such option: --jsn; see root run --help"),
    "an unknown command": (lambda: ["rnu"], "No such command 'rnu'. Did you mean 'run'?; see root --help"),
    "an unknown kind of agent": (lambda: ["graph", "hots"], "agent: 'hots' is not one of 'host', 'app', 'mobile', "),
    "an output that is there": (
        lambda: beside("folder", "out", "--output"),
        "out: already exists: choose another --output, or resume it: callboard resume out",
    ),
    "a recording that is there": (lambda: beside("file", "rec", "--record"), "rec: already exists; give the recordi"),
    "a log that is a folder": (lambda: beside("folder", "log", "--log-file"), "log.file: {here}/log can't be opened"),
    "an output for a file": (lambda: [*job()[:1], "job/task.yaml", "--output", "x"], "--output needs a folder"),
    "an empty folder": (lambda: Path("e").mkdir() or ["run", "e"], "e: has no callboard.yaml: a folder to run holds "),
    "no task": (lambda: job(files={"task.yaml": None}), "job: has no task.yaml: a folder to run holds its task there"),
    "a name that is no UTF-8": (odd_name, "job/a\\udcff.docx: its name is not UTF-8: rename it first"),
    "one in the folder": (lambda: odd_name("workspace"), "job/workspace/a\\udcff.docx: its name is not UTF-8: rename"),
    # the task
    "YAML with an open bracket": (
        lambda: job(task="request: [x\n"),
        TASK + "is not valid YAML: expected ',' or ']', but got",
    ),
    "YAML with a tab": (
        lambda: job(task="request:\n\t- x\n"),
        TASK + "is not valid YAML: found character '\\t' that cannot ",
    ),
    "a key that stands twice": (lambda: job(task="request: a\nrequest: b\n"), TASK + "the key 'request' appears twice"),
    "a list for a task": (lambda: job(task="- a\n"), TASK + f"has no keys; {NEEDS}"),
    "an empty task": (lambda: job(task=""), TASK + f"has no keys; {NEEDS}"),
    "a blank request": (lambda: job(task="request: ' '\n"), TASK + "request is empty: describe the work"),
    "a mistyped key": (lambda: job(task="requst: x\n"), TASK + "requst: unknown key; did you mean 'request'?"),
    "a number for a text": (
        lambda: job(task="request: 5\n"),
        TASK + "request: must be text, and is read as a number: put ",
    ),
    "a task in Latin-1": (
        lambda: job(files={"task.yaml": b"request: f\xfcr"}),
        TASK + "is not UTF-8 text (byte 11): sa",
    ),
    "settings for a task": (lambda: [job()[0], "job/callboard.yaml"], SETTINGS + "holds settings, not a task: give "),
    "settings in its place": (lambda: job(task="models: {}\n"), TASK + "holds settings, not a task: give the folder "),
    "an unknown target": (
        lambda: job(task="request: x\ntarget: no.docx\n"),
        "there is no target 'no.docx'; there are: word, excel, powerpoint",
    ),
    # the settings
    "a task for settings": (
        lambda: [job()[0], "job/task.yaml", "--settings", "job/task.yaml"],
        TASK + "is a task, not settings: pass it as the task, or pass its folder",
    ),
    "settings that are no YAML": (
        lambda: job(files={"callboard.yaml": "a: ["}),
        SETTINGS + "is not valid YAML: expected the",
    ),
    "a mistyped section": (lambda: job(limit={"steps": 3}), SETTINGS + "limit: unknown key; did you mean 'limits'?"),
    "a word for a number": (lambda: job(limits={"steps": "many"}), SETTINGS + "limits.steps: must be a whole number"),
    "a number below the least": (lambda: job(limits={"steps": 0}), SETTINGS + "limits.steps: must be at least 1"),
    "a verdict that is none": (
        lambda: job(policy=[{"verdict": "forbid"}]),
        SETTINGS + "policy.rules.0.verdict: must be 'allow', 'approve' or 'deny'",
    ),
    "an expression with look-ahead": (
        lambda: job(policy=[{"verdict": "deny", "tool": "re:(?=x)"}]),
        SETTINGS + "policy.rules.0.tool: is not a regular expression: look-around, including look-ahead and look-beh",
    ),
    "a server with two transports": (
        lambda: job(mcpServers={"a": {"command": "x", "url": "http://x"}}),
        SETTINGS + "mcpServers.a: needs either `command` (stdio) or `url` (HTTP)",
    ),
    "a program that is not there": (
        lambda: job(mcpServers={"a": {"command": "no-such-program"}}),
        "mcpServers.a: the program 'no-such-program' is missing",
    ),
    "a server that is not there": (
        lambda: job(mcpServers={"a": {"url": "http://127.0.0.1:9/mcp", "start_seconds": 20}}),
        "mcpServers.a: no connection to http://127.0.0.1:9/mcp: ",
    ),
    "a workspace that is not there": (
        lambda: job(documents={"workspace": "nowhere"}),
        "documents: the folder {here}/job/nowhere is missing: mkdir -p {here}/job/nowhere",
    ),
    "a prompt that is not there": (
        lambda: job(prompts={"host": "no.md"}),
        "prompts.host: {here}/job/no.md can't be read: No such file or directory",
    ),
    # the models
    "a model without a provider": (
        lambda: [*job(), "--model", "gpt-5"],
        "--model gpt-5: 'gpt-5' is not a known model; kn",
    ),
    "a mistyped kind of agent": (
        lambda: [*job(), "--model", "hots=openai:gpt-5"],
        "--model hots=openai:gpt-5: there is no kind of agent 'hots'; did you mean 'host'?",
    ),
    "a mistyped provider": (
        lambda: [*job(), "--model", "opnai:gpt-5"],
        "models.host: providers.opnai: 'opnai' is no known kind of provider; did you mean 'openai'?",
    ),
    "a key that is missing": (
        lambda: [*job(), "--model", "openai:gpt-5"],
        "models.host: providers.openai: set OPENAI_API_KEY, or providers.openai.api_key; a server of one's own needs ",
    ),
    "a script that is not there": (
        lambda: job(files={"script.yaml": None}),
        "models.host: the script {here}/job/script.yaml: can't be read: No such file or directory",
    ),
    "a script of another form": (
        lambda: job(files={"script.yaml": "host: {a: b}\n"}),
        "models.host: {here}/job/script.yaml: host: expected a list of answers, found a mapping of keys to values",
    ),
    # the journal
    "a journal that is a folder": (
        lambda: beside("folder", "j", "--journal"),
        "the journal {here}/j can't be read: Is a directory",
    ),
    "a journal that is none": (
        lambda: Path("j.db").write_text("hello" * 999) and ["tasks", "j.db"],
        "the journal {here}/j.db is no journal, or a damaged one (file is not a database): put a copy of it back",
    ),
    "a task that a journal does not have": (
        lambda: empty_journal("show", "nobody"),
        "the journal {here}/j.db has no task 'nobody'; it is empty",
    ),
}


@pytest.mark.parametrize(("make", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_is_reported_in_one_sentence_before_anything_is_done(call, here, monkeypatch, make, sentence):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = call(*make())
    assert isinstance(result.exception, SystemExit), result.exception
    (line,) = result.stderr.splitlines()
    assert (line.startswith(f"callboard: {sentence.format(here=here)}"), result.exit_code) == (True, 2), line
    if "target" not in sentence:  # the targets are known only once all is started
        assert (result.stdout, list(Path().glob("runs/*"))) == ("", [])


ENDINGS = {
    "no network": (
        lambda: [*job(providers={"local": {"url": "http://127.0.0.1:9/v1", "retries": 0}}), "--model", "local:x"],
        3,
        "because the model gave no usable answer: local:x gave no answer: no connection to http://127.0.0.1:9/v1/",
    ),
    "a document that is none": (
        lambda: document(b"no document"),
        1,
        "'a.docx' can't be read: it is a plain text, despite its name; rename it to end with .txt",
    ),
    "an empty document": (lambda: document(b""), 1, DAMAGED + "it is empty)"),
    "another archive": (
        lambda: document(zipped(x=b"y")),
        1,
        DAMAGED + "it has no list of content types, so it is not ",
    ),
    "a document with a password": (
        lambda: document(OLE + bytes(600) + ENCRYPTED + bytes(600)),
        1,
        "'a.docx' is protected with a password; it was not opened, and is unchanged",
    ),
    "a document in UTF-32": (
        lambda: document(zipped(**{"[Content_Types].xml": UTF_32})),
        1,
        "'a.docx' is refused: its part [Content_Types].xml is in UTF-32, which no Office program writes; save ",
    ),
    "a document in UTF-7": (
        lambda: document(zipped(**{"[Content_Types].xml": UTF_7})),
        1,
        "its part [Content_Types].xml is in UTF-7, which no Office program writes; save it again",
    ),
    "a script that ends too early": (
        lambda: job(files={"script.yaml": "host: []\n"}),
        3,
        "because the model gave no usable answer: host/job-1, step 1: {here}/runs/job-1/script.yaml has no answer 1 ",
    ),
}


@pytest.mark.parametrize(("make", "code", "reason"), ENDINGS.values(), ids=ENDINGS)
def test_failure_of_the_work_is_reported_in_plain_english(call, here, make, code, reason):
    result = call(*make())
    said = " ".join(result.output.split())
    assert (reason.format(here=here) in said, result.exit_code) == (True, code), result.output
    for word in ("BadZipFile", "data_collection", "llm_interaction", "Errno", "Traceback", "<unicode string>"):
        assert word not in said


def test_a_long_request_is_cut_where_it_is_shown(call):
    result = call(*job(task=f"request: {'long ' * 100_000}\n"))
    assert len(result.stdout) < 5000
    assert "(499999 characters)" in result.stdout


def test_resume_reports_that_an_empty_journal_has_no_tasks(call):
    job(journal={"path": "journal.db"})
    Path("job/journal.db").touch()
    result = call("resume", "job")
    assert (result.exit_code, result.stdout) == (0, "nothing to resume: the journal has no unfinished task\n")


ODD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12)


@settings(max_examples=25)
@given(ODD.filter(lambda name: name not in {".", ".."} and len(name.encode()) < 200))
@example("[red]x")
@example("[/b]y".replace("/", "["))
@example(":smile:[link=x]")
@example("a\x1b[31mb\x07")
@example("~")
@example("\u202etxt.exe\u200f")
def test_names_of_others_are_shown_as_they_are(name):
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        job(files={"script.yaml": yaml.safe_dump({"host": [{**FAIL, "Comment": name}]})})
        Path("job").rename(name)
        result = command_line("run", "--", name)
        shown = result.output
    assert (type(result.exception), result.exit_code) == (SystemExit, 1), result.exception
    turns = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN"}
    assert {each for each in shown if unicodedata.category(each) == "Cc"} <= {"\n"}
    assert not {each for each in shown if unicodedata.bidirectional(each) in turns or each in "\u200e\u200f\u061c"}
    if name.isalnum():
        assert name in shown.replace("\n", "")


def test_a_document_with_brackets_in_its_path_is_worked_on(call):
    (run, place) = job(files={"script.yaml": yaml.safe_dump({"app/word/[/b]x.docx": [FAIL]})})
    Path("job/task.yaml").write_text("request: read\ntarget: '[/b]x.docx'\n")
    Path("job/workspace/[").mkdir()
    Path("job/workspace/[/b]x.docx").write_bytes(b"no document")
    result = call(run, place)
    assert (result.exit_code, "'[/b]x.docx' can't be read" in result.output) == (1, True)


def test_no_switch_has_a_type_in_the_help(call):
    for command in ([], ["run"], ["resume"], ["policy", "check"]):
        assert "<bool>" not in call(*command, "--help").stdout


@pytest.mark.parametrize("group", [(), ("policy",)])
def test_a_group_without_a_command_prints_its_help_unmarked(call, group):
    told = call(*group)
    assert (told.exit_code, told.stderr) == (2, call(*group, "--help").stdout)


def test_missing_choice_is_reported_on_one_line(call):
    told = call("graph").stderr
    assert told.startswith("callboard: Missing argument 'agent': one of host, app, mobile, linux, operator; see ")
    assert told.count("\n") == 1
