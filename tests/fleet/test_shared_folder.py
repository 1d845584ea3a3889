"""Files that are too large for the server, in a folder that machines share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import ValidationError

from callboard import Settings, Task
from callboard.fleet import DamagedFileError, StoredFile
from callboard.fleet._shared_folder import SharedFolder
from callboard.fleet._task_files import sent_by
from callboard.messages import SettingsError
from callboard.surface import Effect, committing, tool
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, call, wait_for

TEXT = "42 pieces"
REMOTE = "finance-3:memo:finance-3"


class Archive(MemoryServer):
    """A window whose tools make and read files."""

    def __init__(self, name, folder):
        super().__init__(self.window(name))
        self.folder = folder
        folder.mkdir()

    @tool(effect=Effect.IDEMPOTENT)
    def make(self, target: str) -> str:
        """Make a file, and return its path."""
        path = self.folder / "scan.txt"
        with committing(path):
            path.write_text(TEXT, encoding="utf-8")
        return str(path)

    @tool(effect=Effect.READ)
    def read(self, target: str, path: str) -> str:
        """Read a file."""
        return Path(path).read_text(encoding="utf-8")


def worker(request):
    """Make a file, or read that of the subtask before."""
    if request.step == 2:
        return {**FINISH, "Result": request.memory[-1].results[0].value}
    return call("make") if request.request == "make" else call("read", path=request.subtasks[-1].artifacts[0])


def read_there(request):
    """Make a file here, and have it read on the other machine."""
    if len(request.subtasks) == 2:
        return {**FINISH, "Result": request.subtasks[-1].output}
    target, work = (REMOTE, "read") if request.subtasks else ("memo:desk", "make")
    return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": work}


@pytest.fixture
def share(tmp_path):
    """Give the shared folder; `mount` is another path to it."""
    folder = tmp_path / "share"
    folder.mkdir()
    (tmp_path / "mount").symlink_to(folder)
    return folder


@pytest.fixture
def machines(fleet, tmp_path, share):
    """Start a machine with a small limit: ``machines("desk", files="shared:/mnt")``."""

    def start(name, files, **given):
        settings = {"max_file_bytes": 3, "files": files}
        return fleet.machine(name, surface=Archive(name, tmp_path / name), app=worker, fleet=settings, **given)

    return start


def copies(share):
    """List the files in the shared folder."""
    return [path for path in share.rglob("*") if path.is_file()]


def test_large_file_of_a_result_is_copied_here(fleet, machines, share, tmp_path):
    machines("finance-3", f"shared:{share}")
    here = machines("desk", f"shared:{tmp_path / 'mount'}", serves=False)
    result = fleet.submit(here, Task(request="make", target=REMOTE)).result(PATIENCE)
    assert result.ok, result.causes
    (path,) = result.artifacts
    assert Path(path).read_text(encoding="utf-8") == TEXT
    assert not Path(path).is_relative_to(share)
    assert (result.output, result.subtasks[0].paths_there[path]) == (path, str(tmp_path / "finance-3" / "scan.txt"))
    wait_for(lambda: not copies(share))
    wait_for(lambda: not list((share / "finance-3").iterdir()))
    assert not fleet.hub.files


def test_large_file_goes_to_the_inbox_of_another_machine(fleet, machines, share, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    machines("finance-3", f"shared:{share}", documents={"workspace": workspace})
    here = machines("desk", f"shared:{tmp_path / 'mount'}", serves=False, host=read_there)
    wait_for(lambda: "finance-3" in {target.machine for target in here.targets()})
    result = here.submit(Task(request="x")).result(PATIENCE)
    assert (result.output, result.causes) == (TEXT, ())
    assert [path.name for path in (workspace / "inbox").iterdir()] == ["scan.txt"]
    wait_for(lambda: not copies(share))


@pytest.mark.parametrize("without", ["finance-3", "desk"])
def test_machine_without_the_folder_leaves_large_files(fleet, machines, share, tmp_path, without):
    ways = {"finance-3": f"shared:{share}", "desk": f"shared:{share}", without: "store"}
    machines("finance-3", ways["finance-3"])
    here = machines("desk", ways["desk"], serves=False)
    result = fleet.submit(here, Task(request="make", target=REMOTE)).result(PATIENCE)
    assert result.ok, result.causes
    assert result.artifacts == (f"{'finance-3'}:{tmp_path / 'finance-3' / 'scan.txt'}",)


def test_task_is_done_without_a_file_of_an_unknown_folder(fleet, machines, share, tmp_path):
    def finish(request):
        return {**FINISH, "Result": request.subtasks[-1].artifacts[0]}

    fleet.machine("finance-3", app=finish)
    here = machines("desk", f"shared:{share}", serves=False, host=read_there)
    wait_for(lambda: "finance-3" in {target.machine for target in here.targets()})
    assert here.submit(Task(request="x")).result(PATIENCE).output == f"desk:{tmp_path / 'desk' / 'scan.txt'}"


def test_missing_folder_is_not_made_and_the_file_stays(fleet, machines, tmp_path):
    machines("finance-3", f"shared:{tmp_path / 'not-mounted'}")
    here = machines("desk", f"shared:{tmp_path / 'not-mounted'}", serves=False)
    result = fleet.submit(here, Task(request="make", target=REMOTE)).result(PATIENCE)
    assert result.artifacts == (f"finance-3:{tmp_path / 'finance-3' / 'scan.txt'}",)
    assert not (tmp_path / "not-mounted").exists()


@pytest.mark.parametrize("way", ["shared:", "/mnt/fleet", "none"])
def test_other_ways_of_files_are_refused(way):
    with pytest.raises(SettingsError, match=r"fleet\.files"):
        Settings.load(fleet={"files": way})


@pytest_asyncio.fixture
async def copy(share, tmp_path):
    """Give a copy that desk has made for finance-3: the file, and its path in the shared folder."""
    source = tmp_path / "scan.txt"
    source.write_text(TEXT, encoding="utf-8")
    file = await SharedFolder(share, "desk").store(source, "r-1", "finance-3")
    (path,) = copies(share)
    return file, path


@pytest.mark.parametrize("field", ["writer", "sha256", "reader"])
@pytest.mark.parametrize("name", ["../finance-3", "/etc/passwd", "..", "a/b", ""])
def test_file_with_a_path_in_its_description_is_refused(field, name):
    values = {"name": "x", "sha256": "0" * 64, "size": 1, "owner": "r-1", "writer": "desk", field: name}
    if (field, name) == ("reader", ""):
        return
    with pytest.raises(ValidationError):
        StoredFile(**values, shared=True)


@pytest.mark.parametrize("owner", ["../..", "/etc", "../office-1/x", "r-1/../../x", "a\0b", "x" * 1000])
async def test_id_of_a_task_leads_to_a_folder_of_the_writer(share, tmp_path, owner):
    source = tmp_path / "scan.txt"
    source.write_text(TEXT, encoding="utf-8")
    folder = SharedFolder(share, "desk")
    file = await folder.store(source, owner)
    assert [path.parent.parent for path in copies(share)] == [share / "desk"]
    await folder.load(file, tmp_path / "new.txt")
    assert (tmp_path / "new.txt").read_text(encoding="utf-8") == TEXT


def _link_file(path, victim):
    path.unlink()
    path.symlink_to(victim / "scan.txt")


def _link_task(path, victim):
    path.unlink()
    path.parent.rmdir()
    (victim / "scan.txt").rename(victim / path.name)
    path.parent.symlink_to(victim)


def _link_writer(path, victim):
    _link_task(path, victim)
    task, writer = path.parent, path.parent.parent
    task.unlink()
    writer.rmdir()
    (victim / task.name).mkdir()
    (victim / path.name).rename(victim / task.name / path.name)
    writer.symlink_to(victim)


@pytest.mark.parametrize("plant", [_link_file, _link_task, _link_writer])
async def test_links_in_the_folder_are_not_followed(share, tmp_path, copy, plant):
    file, path = copy
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "scan.txt").write_text(TEXT, encoding="utf-8")  # even the same contents
    plant(path, victim)
    before = sorted(victim.rglob("*"))
    folder = SharedFolder(share, "desk")
    with pytest.raises(DamagedFileError):
        await folder.load(file, tmp_path / "new.txt")
    with pytest.raises(DamagedFileError):
        await folder.store(tmp_path / "scan.txt", "r-1", "finance-3")
    await folder.discard(file)
    assert sorted(victim.rglob("*")) == before
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("text", ["43 pieces", "42 pieces and more", ""])
async def test_changed_copy_is_refused_and_not_replaced(share, tmp_path, copy, text):
    file, path = copy
    path.write_text(text, encoding="utf-8")
    folder = SharedFolder(share, "desk")
    with pytest.raises(DamagedFileError):
        await folder.load(file, tmp_path / "new.txt")
    with pytest.raises(DamagedFileError):
        await folder.store(tmp_path / "scan.txt", "r-1", "finance-3")
    assert (path.read_text(encoding="utf-8"), (tmp_path / "new.txt").exists()) == (text, False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
async def test_pipe_in_place_of_a_copy_is_not_waited_for(share, tmp_path, copy):
    file, path = copy
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DamagedFileError):
        await SharedFolder(share, "finance-3").load(file, tmp_path / "new.txt")
    with pytest.raises(DamagedFileError):
        await SharedFolder(share, "desk").store(tmp_path / "scan.txt", "r-1", "finance-3")


async def test_copy_never_replaces_a_file_of_the_machine(share, tmp_path, copy):
    file, _ = copy
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError):
        await SharedFolder(share, "finance-3").load(file, tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"


async def test_copy_is_stored_once_and_deleted_with_what_a_kill_left(share, tmp_path, copy):
    file, path = copy
    folder = SharedFolder(share, "desk")
    assert await folder.store(tmp_path / "scan.txt", "r-1", "finance-3") == file
    (path.parent / ".0.part").write_text("half", encoding="utf-8")
    await SharedFolder(share, "finance-3").discard(file)  # the other machine may be the one that ends the task
    assert list((share / "desk").iterdir()) == []
    await folder.discard(file)


@pytest.mark.parametrize("changed", [{"writer": "office-1"}, {"owner": "r-2"}])
async def test_files_of_another_machine_or_task_are_left_out(copy, changed):
    file, _ = copy
    other_file = file.model_copy(update=changed)
    assert sent_by({"/a": file, "/b": other_file}, "desk", "r-1") == {"/a": file}
