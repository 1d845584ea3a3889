"""Programs that are killed between the files of one call: the result lists all of them."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

import forks
from support import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("pypdfium2")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are forked, and killed with SIGKILL")

PROGRAM = """
import json, sys
from pathlib import Path
from callboard import Settings, Supervisor, Task
from callboard.testing import Faults, kill_process

folder, call, place, nth, policy = Path(sys.argv[1]), *map(json.loads, sys.argv[2:])
target = call.get("target")


def model(request):
    if request.memory and any(record.results for record in request.memory):
        return {"Status": "FINISH"}
    if request.kind == "host" and call["function"] == "save_as":
        if request.subtasks:
            return {"Status": "FINISH"}
        return {"Status": "ASSIGN", "ControlText": "a.pdf", "Current Sub-Task": "save"}
    action = {"function": call["function"], "arguments": call["arguments"]}
    return {"Status": "CONTINUE", "Actions": [action]}


settings = Settings.load(
    journal={"path": folder / "journal.db"},
    documents={"workspace": folder / "workspace"},
    shells={"box": {"cwd": folder / "workspace"}} if target else {},
    policy=[{"verdict": "approve", "tool": call["function"]} if policy else {"verdict": "allow"}],
)
with Faults() as faults:
    if place:
        faults.after(place, kill_process, nth=nth)
    with Supervisor.start(settings, models=dict.fromkeys(["host", "app", "linux"], model)) as supervisor:
        handle = supervisor.submit(Task(id="t", key="t", request="x", target=target))
        for _ in handle.events() if policy else ():
            for request in handle.approvals():
                handle.approve(request.id) if policy == "approve" else handle.reject(request.id)
        result = handle.result(50)
names = lambda paths: [Path(path).name for path in paths]
print(json.dumps([result.outcome, names(result.artifacts), names(result.made)]))
"""
EXTRACT = {"function": "extract_archive", "arguments": {"path": "a.zip", "folder": "out"}}
SAVE = {"function": "save_as", "arguments": {"path": "page.png", "width": 20}}
FILES = {"extract_archive": ["1.txt", "2.txt", "3.txt"], "save_as": ["page-1.png", "page-2.png", "page-3.png"]}
CALLS = {
    "copy": {"function": "move_file", "arguments": {"path": "a.zip", "new_path": "b.zip", "copy": True}},
    "delete": {"function": "delete_file", "arguments": {"path": "a.zip"}},
    "folder": {"function": "make_folder", "arguments": {"path": "new/deep"}},
    "move": {"function": "move_file", "arguments": {"path": "a.zip", "new_path": "b.zip"}},
    "pack": {"function": "make_archive", "arguments": {"path": "b.zip", "files": ["a.pdf"]}},
    "shell": {"function": "write_file", "arguments": {"path": "new.txt", "text": "x"}, "target": "box"},
    "shell again": {"function": "write_file", "arguments": {"path": "a.txt", "text": "x"}, "target": "box"},
}


def live(folder: Path, call: dict[str, Any], place: str = "", nth: int = 1, policy: str = "") -> Any:
    """Run the program; return its outcome and files unless it is killed."""
    texts = [json.dumps(argument) for argument in (call, place, nth, policy)]
    ended = forks.run([sys.executable, "-c", PROGRAM, str(folder), *texts], timeout=PATIENCE)
    assert ended.returncode == (-9 if place else 0), ended.stderr
    return None if place else json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in FILES["extract_archive"]:
            archive.writestr(name, name)
    (folder / "a.zip").write_bytes(packed.getvalue())
    (folder / "a.txt").write_text("old")
    pages = [Image.new("RGB", (20, 20), color) for color in ("red", "green", "blue")]
    pages[0].save(folder / "a.pdf", save_all=True, append_images=pages[1:])
    return folder


@pytest.mark.parametrize("call", [EXTRACT, SAVE], ids=lambda call: call["function"])
@pytest.mark.parametrize("kills", [[1], [2], [3], [1, 1]], ids=str)
@pytest.mark.usefixtures("workspace")
def test_killed_call_lists_all_of_its_new_files(tmp_path: Path, call: dict[str, Any], kills: list[int]) -> None:
    for kill in kills:
        live(tmp_path, call, "effect", kill)
    names = FILES[call["function"]]
    assert live(tmp_path, call) == ["finished", names, names]


@pytest.mark.parametrize("call", [EXTRACT, SAVE], ids=lambda call: call["function"])
@pytest.mark.parametrize("later", [["approval_request", "effect"], ["decided"]], ids=str)
@pytest.mark.usefixtures("workspace")
def test_killed_call_that_is_held_lists_all_of_its_new_files(
    tmp_path: Path, call: dict[str, Any], later: list[str]
) -> None:
    live(tmp_path, call, "effect", 2)
    for place in later:
        live(tmp_path, call, place, policy="approve")
    names = FILES[call["function"]]
    assert live(tmp_path, call, policy="approve") == ["finished", names, names]


@pytest.mark.parametrize("kills", [[], ["approval_request"]], ids=str)
@pytest.mark.usefixtures("workspace")
def test_killed_call_that_is_rejected_lists_the_files_that_it_made(tmp_path: Path, kills: list[str]) -> None:
    live(tmp_path, EXTRACT, "effect", 2)
    for place in kills:
        live(tmp_path, EXTRACT, place, policy="reject")
    assert live(tmp_path, EXTRACT, policy="reject") == ["rejected", ["1.txt", "2.txt"], ["1.txt", "2.txt"]]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_killed_call_lists_the_files_that_it_lists_without_a_crash(
    tmp_path: Path, workspace: Path, call: dict[str, Any]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(workspace, other / "workspace")
    live(tmp_path, call, "effect")
    assert live(tmp_path, call) == live(other, call)
