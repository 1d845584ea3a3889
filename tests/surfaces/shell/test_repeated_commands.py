"""Routines on a shell: a recorded command is repeated for other data, or not at all."""

from __future__ import annotations

import re
from typing import Any

import pytest

from callboard import FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.journal import JournalReader
from callboard.messages import Routine
from callboard.routines import record
from callboard.testing import assert_replays
from support import PATIENCE

pytest.importorskip("tree_sitter_bash")


class Runs:
    """Runs tasks on one shell, each in a workspace of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def run(self, files, task, *commands):
        """Run a task, with a model that gives commands or a routine's steps; keep the workspace."""
        self.count += 1
        self.work = self.folder / f"work-{self.count}"
        self.work.mkdir()
        for name, content in files.items():
            path = self.work / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        self.journal = self.folder / f"{self.count}.db"
        settings = Settings(
            shells={"box": {"cwd": self.work}},
            policy=[{"verdict": "allow"}],
            journal={"path": self.journal},
            system={"ask_question": False},
        )
        models = {}
        if commands:

            def decide(request: Any) -> dict[str, Any]:
                if request.step > len(commands):
                    return {"Status": "FINISH"}
                call = commands[request.step - 1]
                action = call if "function" in call else {"function": "run", "arguments": call}
                return {"Status": "CONTINUE", "Actions": [action]}

            models["linux"] = FunctionModel(decide)
        with Supervisor.start(settings, models=models) as supervisor:
            return supervisor.submit(task).result(PATIENCE)

    def record(self, files, *commands, **parameters):
        """Record a run."""
        commands = [{"command": command} if isinstance(command, str) else command for command in commands]
        assert self.run(files, Task(id="t", request="Go", target="box"), *commands).ok
        with JournalReader.open(self.journal) as reader:
            return record(reader.rows("t", events=False), name="r", parameters=parameters).routine

    def repeat(self, routine, files, **parameters):
        """Repeat a routine; return the reason why it stopped, or an empty text."""
        result = self.run(files, Task(id="t", routine=routine, parameters=parameters))
        assert result.usage.model_calls == 0
        assert assert_replays(self.journal, "t")
        if result.outcome is Outcome.FINISHED:
            return ""
        return result.causes[0].reason


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


SORT = "sort data/may.csv > out.txt"
NAMES = {"source": "data/may.csv", "report": "out.txt"}


def test_files_of_a_command_are_in_its_guard(runs):
    routine = runs.record({"data/may.csv": "b\na\n"}, SORT, **NAMES)
    (action,) = routine.subtasks[0].steps[0].actions
    assert action.arguments == {"command": "sort ${source} > ${report}"}
    assert action.relies_on == {"${source}": "a file", "${report}": "missing"}
    assert action.expect.leaves == {"exit code": 0, "${source}": "a file", "${report}": "a file"}
    assert runs.repeat(routine, {"data/june.csv": "d\nc\n"}, source="data/june.csv", report="june.txt") == ""
    assert (runs.work / "june.txt").read_text() == "c\nd\n"


def test_routine_stops_where_a_file_is_missing(runs):
    routine = runs.record({"data/may.csv": "b\na\n"}, SORT, **NAMES)
    reason = runs.repeat(routine, {"data/may.csv": "1\n"}, source="data/june.csv")
    assert "expected 'data/june.csv' to be a file; found missing" in reason
    assert not (runs.work / "out.txt").exists()


def test_routine_stops_where_a_file_would_be_overwritten(runs):
    routine = runs.record({"data/may.csv": "b\na\n"}, SORT, **NAMES)
    reason = runs.repeat(routine, {"data/may.csv": "1\n", "out.txt": "mine"})
    assert "expected 'out.txt' to be missing; found a file" in reason
    assert (runs.work / "out.txt").read_text() == "mine"


@pytest.mark.parametrize("command", [SORT, "mv data/may.csv out.txt"])
def test_routine_stops_where_a_file_is_read_and_made(runs, command):
    routine = runs.record({"data/may.csv": "b\na\n"}, command, **NAMES)
    reason = runs.repeat(routine, {"data/may.csv": "d\nc\n"}, report="data/may.csv")
    assert re.search("expected 'data/may.csv' to be both (a file and missing|missing and a file); found a file", reason)
    assert (runs.work / "data/may.csv").read_text() == "d\nc\n"


def test_routine_stops_where_a_file_is_a_folder_now(runs):
    routine = runs.record({"data/may.csv": "b\na\n"}, SORT, **NAMES)
    reason = runs.repeat(routine, {"data/may.csv": "1\n"}, source="data")
    assert "expected 'data' to be a file; found a folder" in reason


def test_files_of_an_unknown_program_are_in_its_guard(runs):
    script = "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read())"
    routine = runs.record({"in.txt": "1", "copy.py": script}, "python3 copy.py in.txt out.txt", source="in.txt")
    (action,) = routine.subtasks[0].steps[0].actions
    assert action.relies_on == {"copy.py": "a file", "${source}": "a file", "out.txt": "missing"}
    assert action.expect.leaves["out.txt"] == "a file"
    assert runs.repeat(routine, {"a b.txt": "2", "copy.py": script}, source="a b.txt")  # two words without quotes
    assert runs.repeat(routine, {"other.txt": "2", "copy.py": script}, source="other.txt") == ""
    assert "'out.txt' to be a file; found missing" in runs.repeat(
        routine, {"other.txt": "2", "copy.py": "pass"}, source="other.txt"
    )


@pytest.mark.parametrize("value", ["-n", "; touch evil", "a b", "*"])
def test_value_that_is_no_single_word_stops_the_routine(runs, value):
    routine = runs.record({"may": "1"}, "cat may", name="may")
    assert routine.subtasks[0].steps[0].actions[0].arguments == {"command": "cat ${name}"}
    reason = runs.repeat(routine, {"may": "1", "a": "", "b": ""}, name=value)
    assert f"expected the recorded form of the call with {value!r} in it; found another form" in reason
    assert not (runs.work / "evil").exists()


IN_SCRIPTS = [
    "sed -n p {}",
    "awk '{{ print $1 }}' {}",
    "find . -name {}",
    "bash -c 'cat {}'",
    "env A=b cat {}",
    "echo $(cat {})",
    "cat <<E\n{}\nE",
]


@pytest.mark.parametrize("command", IN_SCRIPTS)
def test_value_in_a_script_differs_in_letters_and_digits_alone(runs, command):
    files = {"may.csv": "1\n", "june7.csv": "2\n", "a b": "", "b.c.d": ""}
    routine = runs.record(files, command.format("may.csv"), name="may.csv")
    assert "${name}" in routine.subtasks[0].steps[0].actions[0].arguments["command"]
    assert runs.repeat(routine, files) == ""
    assert runs.repeat(routine, files, name="june7.csv") == ""
    for value in ("a b", "b.c.d", "-x.csv", "*.csv", "$x.csv", "x.csv;", "`x.csv`"):
        assert "found another form" in runs.repeat(routine, files, name=value)


def test_routine_repeats_a_command_that_leaves_its_folder(runs):
    folder = runs.folder / "work-1"
    command = f"sort {folder}/data/may.csv > {folder}/data/out.txt && cd .."
    routine = runs.record({"data/may.csv": "b\na\n"}, "cd data", command, "cat data/out.txt")
    assert "${window.cwd}/out.txt" in routine.subtasks[0].steps[1].actions[0].expect.leaves
    assert runs.repeat(routine, {"data/may.csv": "d\nc\n"}) == ""


def test_old_routine_without_facts_has_the_guard_of_words(runs):
    step = {"status": "CONTINUE", "actions": [{"tool": "run", "arguments": {"command": "cat ${name}"}}]}
    subtask = {"target": "box", "kind": "linux", "request": "Go", "steps": [step, {"status": "FINISH"}]}
    routine = Routine.model_validate(
        {"routine": "r", "request": "Go", "parameters": {"name": {}}, "subtasks": [subtask]}
    )
    assert runs.repeat(routine, {"may": "1"}, name="may") == ""
    assert "another form" in runs.repeat(routine, {"may": "1"}, name="may; touch evil")
    assert "another form" in runs.repeat(routine, {"may": "1"}, name="-n")


def test_command_that_is_a_value_as_a_whole_is_not_run(runs):
    step = {"status": "CONTINUE", "actions": [{"tool": "run", "arguments": {"command": "${command}"}}]}
    subtask = {"target": "box", "kind": "linux", "request": "Go", "steps": [step, {"status": "FINISH"}]}
    routine = Routine.model_validate(
        {"routine": "r", "request": "Go", "parameters": {"command": {}}, "subtasks": [subtask]}
    )
    assert "another form" in runs.repeat(routine, {"may": "1"}, command="true")


def test_routine_stops_at_another_exit_code(runs):
    routine = runs.record({"a.txt": "x"}, "cmp a.txt a.txt", {"command": "grep -c x a.txt"})
    assert runs.repeat(routine, {"a.txt": "x"}) == ""
    assert "expected 'exit code' to be 0; found 1" in runs.repeat(routine, {"a.txt": "y"})


def test_file_that_a_tool_writes_is_in_its_guard(runs):
    call = {"function": "write_file", "arguments": {"path": "notes/may.txt", "text": "x"}}
    routine = runs.record({"notes/a.txt": ""}, call, path="notes/may.txt")
    (action,) = routine.subtasks[0].steps[0].actions
    assert action.relies_on == {"${path}": "missing"}
    assert action.expect.leaves == {"${path}": "a file"}
    assert "to be missing; found a file" in runs.repeat(routine, {"notes/may.txt": "mine"})


def test_names_are_those_of_the_folder_in_which_a_command_begins(runs):
    routine = runs.record({"data/a.txt": "1"}, "cd data && cp a.txt b.txt", "cat b.txt")
    first, second = [step.actions[0] for step in routine.subtasks[0].steps[:2]]
    assert first.relies_on == {"data": "a folder", "a.txt": "a file", "b.txt": "missing"}
    assert first.expect.leaves == {"exit code": 0, "data": "a folder", "a.txt": "a file", "b.txt": "a file"}
    assert second.relies_on == {"b.txt": "a file"}
    assert runs.repeat(routine, {"data/a.txt": "1"}) == ""


def test_loop_keeps_the_facts_that_all_items_share(runs):
    names = ("north", "south", "west")
    files = {f"{name}.csv": name for name in names}
    commands = [f"cat {name}.csv >> all.txt" for name in names]
    listing = {"command": 'printf \'["north", "south", "west"]\'', "read_json": True}
    routine = runs.record(files, listing, *commands)
    (action,) = routine.subtasks[0].steps[1].steps[0].actions
    assert action.relies_on == {"${item}.csv": "a file"}  # the first command makes all.txt
    assert runs.repeat(routine, files) == ""
    assert "'west.csv' to be a file; found missing" in runs.repeat(routine, {"north.csv": "", "south.csv": ""})
