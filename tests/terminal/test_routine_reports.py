"""Routines are listed, shown in words and counted on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from callboard import Outcome, Settings, Supervisor, Task
from callboard.journal import RoutineRun
from callboard.messages import Routine, RoutineStep
from callboard.terminal._routine_reports import RoutineStats, step_words
from callboard.testing import MemoryServer
from support import PATIENCE

Call = Callable[..., Result]
ROUTINE: dict[str, Any] = {
    "routine": "fill",
    "request": "Fill the memo for ${who}",
    "parameters": {"who": {"value": "Ann", "description": "the person"}, "rows": {"value": ["a"]}},
    "subtasks": [
        {
            "target": "memo:one",
            "kind": "app",
            "request": "fill it",
            "steps": [
                {
                    "each": "rows",
                    "steps": [
                        {
                            "status": "CONTINUE",
                            "window": "memo",
                            "controls": [{"kind": "field", "name": "field-1", "place": "Form"}],
                            "actions": [
                                {
                                    "tool": "write",
                                    "arguments": {"control_id": "${controls.0.id}", "text": "${item}"},
                                    "control": 0,
                                    "hazards": ["overwrites"],
                                }
                            ],
                        }
                    ],
                },
                {"status": "FINISH", "result": "done"},
            ],
        }
    ],
    "checks": [{"file": "report.xlsx"}],
    "recorded": {"task": "first", "verified": True, "model_calls": 7, "cost": 0.5, "seconds": 60.0},
}


@pytest.fixture
def file(here: Path) -> Path:
    path = here / "fill.routine.yaml"
    path.write_text(yaml.safe_dump(ROUTINE, sort_keys=False), encoding="utf-8")
    return path


def test_list_names_routines_with_proposals_and_problems(call: Call, file: Path) -> None:
    (file.parent / "bad.routine.yaml").write_text("request: 1", encoding="utf-8")
    (file.parent / "fill.routine.1.yaml").write_text("", encoding="utf-8")
    (file.parent / "fill.routine.proposed.yaml").write_text("", encoding="utf-8")
    lines = json.loads(call("routine", "list", "--json").stdout)
    assert [Path(line["file"]).name for line in lines] == ["bad.routine.yaml", "fill.routine.yaml"]
    assert lines[1]["parameters"] == ["who", "rows"]
    assert (lines[0]["proposal"], lines[1]["proposal"]) == (False, True)
    assert lines[0]["problem"]
    result = call("routine", "list")
    assert "proposed" in result.stdout
    assert "2 routines in" in result.stdout


def test_list_of_an_empty_folder_tells_how_to_make_a_routine(call: Call, here: Path) -> None:
    (here / "empty").mkdir()
    result = call("routine", "list", "empty")
    assert "0 routines in empty; `callboard routine save TASK` makes one" in " ".join(result.stdout.split())


def test_list_of_a_file_is_refused(call: Call, file: Path) -> None:
    result = call("routine", "list", str(file))
    assert result.exit_code == 2
    assert "is no folder" in result.stderr


def test_show_writes_parameters_steps_and_guards_in_words(call: Call, file: Path) -> None:
    result = call("routine", "show", "fill.routine.yaml")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for part in (
        "fill: Fill the memo for ${who}",
        'parameter who: usually "Ann"; the person',
        "subtask 1, the app agent of memo:one: fill it",
        "for each item of ${rows}:",
        "1. write on the field 'field-1' in 'Form' with text \"${item}\" (it overwrites)",
        "only if 'memo' is in front; there is the field 'field-1' in 'Form'; no new dialog is open",
        '2. the result is "done"',
        'check {"file": "report.xlsx"}',
        "recorded from the task first: verified, 7 model calls, 0:01:00",
    ):
        assert part in text


def test_hand_over_is_written_in_words() -> None:
    step = RoutineStep.model_validate(
        {"status": "ASSIGN", "assign": [{"subtask": 1}, {"subtask": 2, "after": [1]}], "dialogs": ["Hint"]}
    )
    assert list(step_words(step)) == [
        "hand over subtask 1",
        "hand over subtask 2 after 1",
        "ASSIGN, only if no dialog is open but Hint",
    ]


def test_stats_compare_runs_with_the_recorded_one() -> None:
    routine = Routine.model_validate(ROUTINE)
    runs = [
        RoutineRun("a", 3, 0.0, Outcome.FINISHED, routine.digest, verified=True, seconds=2.0, replayed=2),
        RoutineRun(
            "b", 2, 0.0, Outcome.FINISHED, "old", verified=False, seconds=8.0, missed=1, model_calls=3, cost=0.1
        ),
        RoutineRun("c", 1, 0.0, Outcome.FAILED, routine.digest, missed=1),
    ]
    stats = RoutineStats.of(routine, runs)
    assert (stats.runs, stats.finished, stats.verified, stats.checked) == (3, 2, 1, 2)
    assert (stats.followed, stats.repaired, stats.this_version) == (1, 1, 2)
    assert (stats.saved_calls, stats.saved_seconds, round(stats.saved_cost, 3)) == (11, 110.0, 0.9)


def test_stats_are_read_from_named_journals(call: Call, file: Path, here: Path) -> None:
    settings = Settings.load(journal={"path": here / "journal.db"}, system={"ask_question": False})
    with Supervisor.start(settings, servers=[MemoryServer(MemoryServer.window())]) as supervisor:
        routine = Routine.model_validate({**ROUTINE, "checks": []})
        assert supervisor.submit(Task(routine=routine)).result(PATIENCE).usage.missed
        supervisor.submit(Task(request="x", routine=routine, dry_run=True)).result(PATIENCE)
    result = call("routine", "stats", "fill.routine.yaml", "--journal", "journal.db")
    assert result.exit_code == 0, result.output
    assert "1 in 1 journal, 0 of this version" in result.stdout
    facts = json.loads(call("routine", "stats", "fill.routine.yaml", "--journal", "journal.db", "--json").stdout)
    assert (facts["runs"], facts["followed"], facts["journals"]) == (1, 0, 1)


def test_stats_without_a_journal_are_refused(call: Call, file: Path) -> None:
    result = call("routine", "stats", "fill.routine.yaml")
    assert result.exit_code == 2
    assert "name those of the runs with --journal" in result.stderr
