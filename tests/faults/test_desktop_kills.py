"""A program that is killed at work on a desktop types nothing twice, and repeats nothing blindly."""

import json
import os
import random
import shutil
import signal
import sys

import pytest

import forks
from callboard.surfaces import Need
from callboard.surfaces.desktop import DesktopSurface
from support import PATIENCE

TEXT = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich; 漢字 €.\n" * 10
"""Some of it is on no key."""
TYPING = len(TEXT) * 0.002
"""The seconds that it takes to type it at least."""
PROGRAM = """
import json, sys, threading, time
from pathlib import Path
from callboard import EventName, FunctionModel, Settings, Supervisor, Task
from callboard.testing import Faults, kill_process
folder, text, place, seconds = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
letter, born = folder / "letter.txt", time.time()
steps = [("type_text", {"text": text}), ("press_keys", {"keys": "ctrl+s"})]

def app(request):
    done = len(request.memory)
    if done == len(steps):
        return {"Status": "FINISH"}
    return {"Status": "CONTINUE", "Function": steps[done][0], "Args": steps[done][1]}

def host(request):
    assign = {"Status": "ASSIGN", "ControlText": "editor", "Current Sub-Task": "write"}
    return {"Status": "FINISH"} if request.memory else assign

settings = Settings.load(
    journal={"path": folder / "journal.db"},
    policy=[{"verdict": "allow"}],
    desktop={
        "display": "private",
        "installed": False,
        "folder": folder,
        "applications": {"editor": ["sh", "-c", "echo >> starts; exec mousepad letter.txt"]},
    },
)
with Faults() as faults:
    if place:
        getattr(faults, place[0])(place[1], kill_process, nth=place[2])
    with Supervisor.start(settings, models={"app": FunctionModel(app), "host": FunctionModel(host)}) as supervisor:
        handle = supervisor.submit(Task(id="t", request="write a letter"))
        for event in handle.events():
            if event.at < born:
                continue  # of a life before
            at_work = event.name in {EventName.POLICY_DECIDED, EventName.COMMAND_IN_DOUBT}
            if at_work and event.data["tool"] == "type_text" and seconds:
                threading.Timer(seconds, kill_process).start()
            if event.name is EventName.COMMAND_IN_DOUBT:
                print("doubt", event.data["tool"], event.data["probe"], flush=True)
            if event.name is EventName.QUESTION_ASKED:
                for question in handle.questions():
                    handle.answer(question.id, "it was done" if letter.read_text() else "it was not done")
        result = handle.result(60)
        print(result.outcome, [cause.reason for cause in result.causes], flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    """Give a folder with an empty letter, where a desktop with an editor can be started."""
    missing = [need.told for need in (*DesktopSurface.needs({}), Need.program("mousepad")) if not need.met]
    if missing and os.environ.get("REQUIRE_DESKTOP"):
        pytest.fail("; ".join(missing))
    if missing or sys.platform != "linux":
        pytest.skip("; ".join(missing) or "there is no X11 here")
    (tmp_path / "letter.txt").touch()
    return tmp_path


def live(folder, text, *, place=None, seconds=0.0):
    """Have the program live once, to its end, or killed at a place or some seconds after it began to type.

    Gives the desktop's report on each call that the life before had broken off.
    """
    command = [sys.executable, "-c", PROGRAM, str(folder), text, json.dumps(place), str(seconds)]
    done = forks.run(command, timeout=PATIENCE, cwd=folder)
    killed = place is not None or seconds > 0
    assert done.returncode == (-signal.SIGKILL if killed else 0), done.stderr
    assert killed or done.stdout.splitlines()[-1] == "finished []", done.stdout
    return [tuple(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("doubt")]


def written(folder):
    """Give the letter, and how often the editor was started."""
    return (folder / "letter.txt").read_text(encoding="utf-8"), len((folder / "starts").read_text())


def test_undone_actions_are_done_once_after_kills(folder):
    live(folder, "Dear reader", place=("after", "intent", 1))
    assert live(folder, "Dear reader", place=("after", "intent", 2)) == [("open_in_desktop", "not_done")]
    assert live(folder, "Dear reader", place=("after", "intent", 2)) == [("type_text", "not_done")]
    said = live(folder, "Dear reader")  # a person has looked into the file, and says that it is not saved
    assert said == [("press_keys", "unknown"), ("press_keys", "not_done")]
    assert written(folder) == ("Dear reader", 1)


def test_finished_actions_are_not_repeated_after_kills(folder):
    live(folder, "Dear reader", place=("before", "command_result", 1))
    said = live(folder, "Dear reader", place=("before", "command_result", 2))
    assert said == [("open_in_desktop", "begun")]
    said = live(folder, "Dear reader", place=("before", "command_result", 2))
    assert said == [("type_text", "done")]
    saved = (folder / "letter.txt").stat().st_mtime_ns
    said = live(folder, "Dear reader")  # a person has looked into the file, and says that it is saved
    assert said == [("press_keys", "unknown"), ("press_keys", "done")]
    assert written(folder) == ("Dear reader", 1)
    assert (folder / "letter.txt").stat().st_mtime_ns == saved


def test_a_call_killed_again_before_its_note_types_nothing_twice(folder):
    live(folder, TEXT, seconds=TYPING / 2)
    assert live(folder, TEXT, place=("after", "intent", 1)) == [("type_text", "begun")]
    assert live(folder, TEXT) == [("type_text", "begun")]
    assert written(folder) == (TEXT, 1)


@pytest.mark.parametrize(
    ("texts", "kills"), [(1, 3), pytest.param(20, 8, marks=(pytest.mark.slow, pytest.mark.timeout(1800)))]
)
def test_text_is_typed_once_wherever_the_process_is_killed(folder, texts, kills):
    chance = random.Random(texts)  # noqa: S311 - no secret is made of it
    for _ in range(texts):
        moments = [chance.uniform(0.0, TYPING / kills) for _ in range(kills)]
        said = [probe for seconds in [*moments, 0.0] for _, probe in live(folder, TEXT, seconds=seconds)]
        assert written(folder) == (TEXT, 1), (moments, said)
        assert {*said} <= {"not_done", "begun"}, (moments, said)
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "letter.txt").touch()
