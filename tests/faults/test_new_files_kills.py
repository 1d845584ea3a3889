"""Programs that are killed between the files of one call: the result lists all of them."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from typing import TYPE_CHECKING

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

folder, call, kill = Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])


def model(request):
    if request.memory:
        return {"Status": "FINISH"}
    if request.kind == "host" and call["function"] == "save_as":
        if request.subtasks:
            return {"Status": "FINISH"}
        return {"Status": "ASSIGN", "ControlText": "a.pdf", "Current Sub-Task": "save"}
    return {"Status": "CONTINUE", "Actions": [call]}


settings = Settings.load(journal={"path": folder / "journal.db"}, documents={"workspace": folder / "workspace"})
with Faults() as faults:
    if kill:
        faults.after("effect", kill_process, nth=kill)
    with Supervisor.start(settings, models={"host": model, "app": model}) as supervisor:
        result = supervisor.submit(Task(id="t", key="t", request="x")).result(50)
names = lambda paths: [Path(path).name for path in paths]
print(json.dumps([result.outcome, names(result.artifacts), names(result.made)]))
"""
EXTRACT = {"function": "extract_archive", "arguments": {"path": "a.zip", "folder": "out"}}
SAVE = {"function": "save_as", "arguments": {"path": "page.png", "width": 20}}
FILES = {"extract_archive": ["1.txt", "2.txt", "3.txt"], "save_as": ["page-1.png", "page-2.png", "page-3.png"]}


@pytest.mark.parametrize("call", [EXTRACT, SAVE], ids=lambda call: call["function"])
@pytest.mark.parametrize("kills", [[1], [2], [3], [1, 1]], ids=str)
def test_killed_call_lists_all_of_its_new_files(tmp_path: Path, call: dict[str, object], kills: list[int]) -> None:
    (tmp_path / "workspace").mkdir()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in FILES["extract_archive"]:
            archive.writestr(name, name)
    (tmp_path / "workspace" / "a.zip").write_bytes(packed.getvalue())
    pages = [Image.new("RGB", (20, 20), color) for color in ("red", "green", "blue")]
    pages[0].save(tmp_path / "workspace" / "a.pdf", save_all=True, append_images=pages[1:])
    for kill in (*kills, 0):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), json.dumps(call), str(kill)]
        ended = forks.run(command, timeout=PATIENCE)
        assert ended.returncode == (-9 if kill else 0), ended.stderr
    names = FILES[str(call["function"])]
    assert json.loads(ended.stdout.splitlines()[-1]) == ["finished", names, names]
