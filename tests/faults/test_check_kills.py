"""Programs that are killed while their checks run: no outcome is better than the truth, and nothing runs twice."""

from __future__ import annotations

import functools
import json
import random
import sys
from pathlib import Path

import pytest

import forks
from callboard.testing import assert_replays
from support import PATIENCE

PROGRAM = """
import json, sys
from pathlib import Path
from callboard import Settings, Supervisor, Task
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import Faults, kill_process

folder, case, kills = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
passed = 0


def place():
    '''A place at which this life may end: before and after each check, and around each row.'''
    global passed
    passed += 1
    if passed in kills:
        kill_process()


def seen():
    place()
    with (folder / "reads").open("a") as file:
        file.write("x")
    place()
    return True


def write(text):
    return {"function": "append_rows", "arguments": {"rows": [["total", text]]}}


def model(request):
    with (folder / "calls").open("a") as file:
        file.write(f"{request.run_id} {request.call}\\n")
    if request.kind == "app":
        text = request.request
        return {"Status": "FINISH", "Actions": [] if text == "nothing" else [write(text)]}
    if request.kind == "judge":
        answer = "yes" if "12" in request.evidence.changes else "no"
        return {"Answers": [{"Reason": "the difference says so", "Answer": answer}]}
    script = {
        "true": ["12"], "lies": ["nothing"], "wrong": ["13"], "mended": ["nothing", "12"], "beside": ["12", "beside"],
        "judged": ["12"], "judged lies": ["nothing"], "judged mended": ["13", "12"],
    }[case]
    refusals = ("a check does not hold", "says no to")
    refused = any(refusal in note for note in request.observation.notes for refusal in refusals)
    done = len(request.subtasks)
    if done < len(script) and (done == 0 or refused or case == "beside"):
        where = "budget.csv" if script[done] == "beside" else "report.csv"
        return {"Status": "ASSIGN", "ControlText": where, "Current Sub-Task": script[done]}
    return {"Status": "FINISH"}


settings = Settings.load(journal={"path": folder / "journal.db"}, documents={"workspace": folder / "workspace"})
checks = [
    {"program": "seen"},
    {"table": "report.csv", "path": "/0", "same_as": {"table": "source.csv", "path": "/0"}},
    {"unchanged": "source.csv"},
    {"only": "report.csv"},
    {"program": "seen"},
]
with Faults() as faults:
    for kind in ("answered", "step_done", "subtask_finished", "round_ended", "task_result", "files_at_start"):
        for number in range(1, 7):
            faults.before(kind, place, nth=number)
            faults.after(kind, place, nth=number)
    models = {"host": model, "app": model}
    with Supervisor.start(settings, models=models, checks={"seen": seen}) as supervisor:
        given = {"judge": {"question": "Is the total 12?"}} if case.startswith("judged") else {"checks": checks}
        handle = supervisor.submit(Task(id="t", request="x", **given))
        result = handle.result(50)
print(json.dumps({
    "outcome": result.outcome, "verified": result.verified, "passed": passed,
    "held": [check.held for check in result.checks], "judged": [each.answer for each in result.judged],
    "commands": result.actions,
}))
"""
CASES = {
    "true": ("finished", True),
    "lies": ("failed", False),
    "wrong": ("failed", False),
    "mended": ("finished", True),
    "beside": ("failed", False),
    "judged": ("finished", None),
    "judged lies": ("failed", None),
    "judged mended": ("finished", None),
}
"""The outcome of each case, and whether it is verified."""


def fresh(folder: Path) -> Path:
    (folder / "workspace").mkdir(parents=True)
    for name, row in (("source", "total,12"), ("report", None), ("budget", "North,400")):
        text = "name,value\n" + (f"{row}\n" if row else "")
        (folder / "workspace" / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def lived(folder: Path, case: str, *lives: list[int]) -> dict[str, object]:
    """Let a program live until it is killed, life after life, and then to its end; give what the last one says."""
    for kills in (*lives, []):
        command = [sys.executable, "-c", PROGRAM, str(folder), case, json.dumps(kills)]
        ended = forks.run(command, timeout=PATIENCE)
        if ended.returncode == 0:
            break
        assert ended.returncode == -9, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    calls = (folder / "calls").read_text(encoding="utf-8").split("\n")
    written = [
        sorted((path.name, path.read_bytes()) for path in (folder / "workspace").iterdir() if path.suffix == ".csv")
    ]
    return {**said, "calls": calls, "written": written}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    @functools.cache
    def play(case):
        return lived(fresh(tmp_path_factory.mktemp(case)), case)

    return play


def compare(folder, case, undisturbed, *lives):
    told, usual = lived(fresh(folder), case, *lives), undisturbed(case)
    for name in ("outcome", "verified", "held", "judged", "commands", "written"):
        assert told[name] == usual[name], (case, lives, name)
    assert set(told["calls"]) == set(usual["calls"])
    repeated = len(told["calls"]) - len(usual["calls"])
    # the call that was killed before its answer was kept, and the judge's, which is asked again
    assert repeated <= sum(bool(life) for life in lives) * (1 + case.startswith("judged")), (case, lives)
    assert_replays(folder / "journal.db")


@pytest.mark.parametrize("case", CASES)
def test_a_program_that_is_not_killed_tells_the_truth(undisturbed, case):
    told = undisturbed(case)
    assert (told["outcome"], told["verified"]) == CASES[case]


@pytest.mark.parametrize("case", CASES)
def test_a_killed_program_tells_no_better_outcome(tmp_path, undisturbed, case):
    chance = random.Random(case)  # noqa: S311 - which places
    places = int(str(undisturbed(case)["passed"]))
    compare(tmp_path / "trial", case, undisturbed, [chance.randint(1, places)], [chance.randint(1, 6)])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_program_killed_anywhere_tells_no_better_outcome(tmp_path, undisturbed, case):
    chance = random.Random(case)  # noqa: S311 - which places
    places = int(str(undisturbed(case)["passed"]))
    for place in range(1, places + 1):
        compare(tmp_path / str(place), case, undisturbed, [place], [chance.randint(1, 6)])
