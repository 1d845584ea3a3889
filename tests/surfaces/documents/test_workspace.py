"""The workspace: which files are documents, and how one is replaced."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import Task
from callboard.actors.runtime import Lease
from callboard.messages import LeaseVoidError, Look, TargetKind, TaskRefusedError
from callboard.surfaces import EffectGuard, ToolError
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.documents import _workspace as module
from callboard.surfaces.documents._workspace import Workspace

if TYPE_CHECKING:
    from conftest import Call

TWO_GROUPS = 0o640


@pytest.fixture
def letter(workspace: Path) -> Path:
    """Give a Word document with one paragraph."""
    path = workspace / "letter.docx"
    document = docx.Document()
    document.add_paragraph("Dear Ada,")
    document.save(str(path))
    return path


def test_each_docx_and_xlsx_file_of_the_workspace_is_a_window(
    workspace: Path, surface: DocumentSurface, call: Call
) -> None:
    (workspace / "sub").mkdir()
    call("create_document", path="sales.docx")
    call("create_document", path="sub/report.xlsx")
    windows = {target.id: target.address for target in surface.targets() if target.kind is TargetKind.WINDOW}
    assert windows == {"sales.docx": "app/word/sales.docx", "sub/report.xlsx": "app/excel/sub/report.xlsx"}


def test_hidden_files_lock_files_and_other_kinds_are_not_windows(workspace: Path, surface: DocumentSurface) -> None:
    (workspace / ".git").mkdir()
    for name in (".hidden.docx", "~$sales.docx", ".~lock.a.xlsx#", "old.dot", "macro.docm", ".git/a.docx", "a\nb.docx"):
        (workspace / name).write_bytes(b"")
    assert [target for target in surface.targets() if target.kind is TargetKind.WINDOW] == []


@pytest.mark.parametrize(
    ("name", "why"), [("a.docm", "macros"), ("a.xlt", "Excel 97"), ("a.dot", "template"), ("a.zip", "only")]
)
def test_opening_another_kind_of_file_gives_the_reason(call: Call, workspace: Path, name: str, why: str) -> None:
    (workspace / name).write_bytes(b"x")
    with pytest.raises(ToolError, match=why):
        call("open_document", path=name)


@pytest.mark.parametrize(
    "path",
    ["../outside.docx", "/etc/a.docx", "a/../../outside.docx", "C:/a.docx", "C:a.docx", "..\\outside.docx", "a//b.docx",
     "./a.docx", "", "a\0.docx", "~$a.docx", ".a.docx", "x" * 500 + ".docx"],
)  # fmt: skip
def test_paths_outside_the_workspace_are_refused(call: Call, path: str) -> None:
    with pytest.raises(ToolError, match="refused"):
        call("open_document", path=path)
    with pytest.raises(ToolError, match="refused"):
        call("create_document", path=path)


@given(st.lists(st.sampled_from(["..", ".", "", "a", "/", "\\", "C:", "~", "\0", "b.docx"]), max_size=6))
def test_no_path_leads_out_of_the_workspace(parts: list[str]) -> None:
    workspace = Workspace(Path(__file__).parent, 1000)
    try:
        path = workspace.path("/".join(parts) + ".docx")
    except ToolError:
        return
    assert path.resolve().is_relative_to(workspace.folder)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_links_are_refused_wherever_they_stand(
    workspace: Path, tmp_path: Path, call: Call, surface: DocumentSurface
) -> None:
    docx.Document().save(str(tmp_path / "secret.docx"))
    (workspace / "link.docx").symlink_to(tmp_path / "secret.docx")
    (workspace / "folder").symlink_to(tmp_path)
    (workspace / "dangling.docx").symlink_to(tmp_path / "new.docx")
    for path in ("link.docx", "folder/secret.docx"):
        with pytest.raises(ToolError, match="link"):
            call("read_text", path)
    with pytest.raises(ToolError, match="link"):
        call("create_document", path="dangling.docx")
    assert [target for target in surface.targets() if target.kind is TargetKind.WINDOW] == []
    assert not (tmp_path / "new.docx").exists()


def test_workspace_that_is_not_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError):
        DocumentSurface(tmp_path / "missing")


def test_a_file_that_others_changed_since_it_was_observed_is_not_written(
    letter: Path, call: Call, surface: DocumentSurface
) -> None:
    target = call("select_window", window="letter.docx")
    before = surface.observe(target)
    other = docx.Document(str(letter))
    other.add_paragraph("by another")
    other.save(str(letter))
    theirs = letter.read_bytes()
    call("read_text", "letter.docx")
    compared = surface.observe(target, Look(picture=False, shown=False))
    assert surface.resolve(compared, before.controls[0]) == before.controls[0]
    assert surface.fingerprint(target) == compared.fingerprint != before.fingerprint
    for name, arguments in (("insert_paragraph", {"text": "mine"}), ("save_as", {"path": "copy.docx"})):
        with pytest.raises(ToolError, match="changed by another program"):
            call(name, "letter.docx", **arguments)
    assert letter.read_bytes() == theirs
    assert surface.observe(target).fingerprint != before.fingerprint
    call("insert_paragraph", "letter.docx", text="mine")
    assert call("read_text", "letter.docx")["text"] == "Dear Ada,\nby another\nmine"


def test_a_change_between_reading_and_replacing_is_noticed_too(letter: Path, surface: DocumentSurface) -> None:
    workspace = surface._workspace
    snapshot = workspace.read_to_write("letter.docx")
    letter.write_bytes(snapshot.data + b"x")
    with pytest.raises(ToolError, match="changed by another program"):
        workspace.replace(snapshot, b"new")
    letter.unlink()
    with pytest.raises(ToolError, match="changed by another program"):
        workspace.replace(snapshot, b"new")
    assert list(letter.parent.iterdir()) == []


def test_own_writes_do_not_count_as_changes_by_others(letter: Path, call: Call) -> None:
    call("get_controls", letter.name)
    for text in ("one", "two"):
        call("insert_paragraph", letter.name, text=text)
    assert call("read_text", letter.name)["text"].endswith("one\ntwo")


@pytest.mark.parametrize("lock", ["~$letter.docx", "~$tter.docx", ".~lock.letter.docx#"])
def test_a_file_that_office_has_locked_is_read_but_not_written(letter: Path, call: Call, lock: str) -> None:
    before = letter.read_bytes()
    (letter.parent / lock).write_bytes(b"")
    with pytest.raises(ToolError, match="open in another program"):
        call("insert_paragraph", letter.name, text="x")
    assert call("read_text", letter.name)["text"] == "Dear Ada,"
    assert call("get_window_info", letter.name)["writable"] is False
    assert letter.read_bytes() == before


def test_a_lock_that_appears_before_the_file_is_replaced_stops_the_write(
    letter: Path, surface: DocumentSurface
) -> None:
    workspace = surface._workspace
    snapshot = workspace.read_to_write("letter.docx")
    (letter.parent / "~$letter.docx").write_bytes(b"")
    with pytest.raises(ToolError, match="open in another program"):
        workspace.replace(snapshot, b"new")


def test_a_read_only_file_is_not_written(letter: Path, call: Call) -> None:
    letter.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        call("insert_paragraph", letter.name, text="x")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_replaced_file_keeps_its_mode(letter: Path, call: Call) -> None:
    letter.chmod(TWO_GROUPS)
    call("insert_paragraph", letter.name, text="x")
    assert stat.S_IMODE(letter.stat().st_mode) == TWO_GROUPS


def test_void_lease_stops_a_write_without_leftovers(letter: Path, call: Call) -> None:
    before = letter.read_bytes()
    lease = Lease("letter.docx", 1)
    lease.void()
    for name, document, arguments in (
        ("insert_paragraph", letter.name, {"text": "late"}),
        ("save_as", letter.name, {"path": "late.docx"}),
        ("create_document", None, {"path": "late.xlsx"}),
    ):
        with pytest.raises(LeaseVoidError):
            call(name, document, guard=EffectGuard(lease), **arguments)
    assert letter.read_bytes() == before
    assert list(letter.parent.iterdir()) == [letter]


def test_a_written_file_is_noted_as_an_artifact_of_the_call(letter: Path, call: Call) -> None:
    guard = EffectGuard(Lease("letter.docx", 1))
    call("insert_paragraph", letter.name, guard=guard, text="x")
    assert guard.artifacts == [str(letter)]


def test_a_crash_before_the_replacement_leaves_the_old_file(
    letter: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = letter.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", fail)
    with pytest.raises(ToolError, match="No space left"):
        call("insert_paragraph", letter.name, text="x")
    assert letter.read_bytes() == before
    assert list(letter.parent.iterdir()) == [letter]


def test_file_and_folder_are_synced_around_the_replacement(
    letter: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    sync, replace = os.fsync, Path.replace

    def noted_sync(handle: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def noted_replace(self: Path, target: Path) -> Path:
        events.append("replace")
        return replace(self, target)

    monkeypatch.setattr(module.os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    call("insert_paragraph", letter.name, text="x")
    assert events == (["file", "replace"] if os.name == "nt" else ["file", "replace", "folder"])


@pytest.mark.skipif(os.name == "nt", reason="Windows can't open folders")
def test_unreadable_folder_can_still_be_written(letter: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refusing(path: object, flags: int, *mode: int) -> int:
        if path == letter.parent:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", refusing)
    call("insert_paragraph", "letter.docx", text="written")
    call("make_folder", path="made")
    call("delete_file", path="made")
    assert "written" in call("read_text", "letter.docx")["text"]


def test_creating_never_overwrites(letter: Path, call: Call) -> None:
    before = letter.read_bytes()
    with pytest.raises(ToolError, match="already a file"):
        call("create_document", path="letter.docx")
    assert letter.read_bytes() == before


def test_of_two_threads_that_create_one_file_one_wins(surface: DocumentSurface, workspace: Path) -> None:
    barrier, wins = threading.Barrier(4), []

    def create(number: int) -> None:
        barrier.wait()
        try:
            surface._workspace.create("new.docx", bytes([number]))
        except ToolError:
            return
        wins.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bytes([number]) for number in wins] == [(workspace / "new.docx").read_bytes()]
    assert len(list(workspace.iterdir())) == 1


@pytest.mark.parametrize("path", ["con.docx", "a?.docx", "a:b.docx", "missing/a.docx", "a|b.xlsx"])
def test_names_that_some_system_can_not_hold_are_not_created(call: Call, path: str) -> None:
    with pytest.raises(ToolError, match="refused"):
        call("create_document", path=path)


def test_next_write_removes_leftovers_of_a_killed_process(workspace: Path, call: Call) -> None:
    left, other = (workspace / name for name in (f".callboard-{'0a' * 8}.tmp", ".hidden.tmp"))
    for path in (left, other):
        path.write_bytes(b"half")
    call("create_document", path="new.docx")
    assert [path.exists() for path in (left, other)] == [False, True]


def test_leftover_files_of_killed_processes_are_deleted_at_the_start(workspace: Path, surface, start) -> None:
    folder = workspace / "2026" / "May"
    folder.mkdir(parents=True)
    left = [place / f".callboard-{'0a' * 8}.tmp" for place in (workspace, folder)]
    for path in left:
        path.write_bytes(b"half")
    start(servers=[surface])
    assert [path.exists() for path in left] == [False, False]


def test_unreadable_folder_is_not_taken_for_an_empty_one(surface, monkeypatch, start):
    def failing(_path):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(surface.workspace))

    supervisor = start(host=[{"Status": "FINISH"}], servers=[surface])
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing)
        with pytest.raises(TaskRefusedError, match=r"the targets of documents can't be listed: .*Too many open files"):
            supervisor.submit(Task(request="x", target="a.docx"))


def test_a_folder_within_it_that_may_not_be_read_is_left_out(workspace, surface, monkeypatch):
    (workspace / "closed").mkdir()
    (workspace / "a.docx").touch()
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert [target.id for target in surface.targets()] == ["a.docx", "word", "excel", "powerpoint"]


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u3000"], ids=["no-break", "narrow", "ideographic"])
def test_files_with_other_spaces_in_their_names_are_read(workspace: Path, call: Call, space: str) -> None:
    name = f"Screenshot at 3.04{space}PM.txt"
    (workspace / name).write_text("seen")
    assert [entry["path"] for entry in call("list_files")["files"]] == [name]
    assert list(Workspace(workspace, 1_000).documents()) == [name]
    assert call("read_text", name)["text"] == "seen"
    for refused in (f"{space}a.txt", f"sub{space}/a.txt"):
        with pytest.raises(ToolError, match="not every operating system"):
            call("create_document", path=refused)


@pytest.mark.parametrize("mark", ["\u202e", "\u200b", "\x07", "\u2028"])
def test_files_with_unseen_marks_in_their_names_are_left_alone(workspace: Path, call: Call, mark: str) -> None:
    (workspace / f"a{mark}.txt").write_text("x")
    assert call("list_files")["files"] == []
    assert list(Workspace(workspace, 1_000).documents()) == []
