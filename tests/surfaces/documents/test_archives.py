"""Archives: listed, extracted and made, also hostile ones and after crashes."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import stat
import struct
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from callboard.surfaces import ToolError
from callboard.surfaces.documents import _workspace

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface


def zipped(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    """Write an archive, also with names and duplicates that no good program writes."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo("x")
            info.filename = name
            archive.writestr(info, data, method)


def tree(folder: Path) -> dict[str, bytes]:
    """Read all files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


FILES = {"a.txt": b"one", "sub/b.bin": bytes(range(256)) * 40, "sub/deep/Ünïcode.csv": b"a,b\n1,2\n", "empty": b""}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_files_of_an_archive_are_listed_and_extracted(workspace: Path, call: Call, method: int) -> None:
    zipped(workspace / "a.zip", FILES, method)
    answer = call("list_archive", path="a.zip")
    assert [(entry["path"], entry["bytes"]) for entry in answer["files"]] == [
        (name, len(FILES[name])) for name in FILES
    ]
    answer = call("extract_archive", path="a.zip", folder="new/out")
    assert answer["files"] == [f"new/out/{name}" for name in FILES]
    assert tree(workspace / "new" / "out") == FILES
    assert not any(path.stat().st_mode & 0o111 for path in (workspace / "new").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("coding", "name"), [("utf-8", "Größe/日本.txt"), ("cp437", "Größe/ä.txt"), ("cp437", "plain.txt")]
)
def test_names_without_the_mark_for_utf_8_are_read(workspace: Path, call: Call, coding: str, name: str) -> None:
    raw = name.encode(coding)
    zipped(workspace / "a.zip", {"x" * len(raw): b"one"})
    data = (workspace / "a.zip").read_bytes()
    (workspace / "a.zip").write_bytes(data.replace(b"x" * len(raw), raw))
    assert call("extract_archive", path="a.zip", folder="out")["files"] == [f"out/{name}"]


def test_archive_that_is_made_is_extracted_as_it_was(workspace: Path, call: Call) -> None:
    for name, data in FILES.items():
        (workspace / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / "in" / name).write_bytes(data)
    (workspace / "in" / ".hidden").write_bytes(b"x")
    os.utime(workspace / "in" / "a.txt", (0, 0))
    answer = call("make_archive", path="a.zip", files=["in/sub", "in/a.txt", "in/a.txt", "in"])
    assert sorted(answer["files"]) == sorted(f"in/{name}" for name in FILES)
    assert answer["bytes"] == (workspace / "a.zip").stat().st_size
    with zipfile.ZipFile(workspace / "a.zip") as archive:
        assert archive.testzip() is None
    call("extract_archive", path="a.zip", folder="out")
    assert tree(workspace / "out" / "in") == FILES


def test_archives_of_another_program_are_read_and_it_reads_ours(workspace: Path, call: Call) -> None:
    zip_program, unzip_program = shutil.which("zip"), shutil.which("unzip")
    if zip_program is None or unzip_program is None:
        (pytest.fail if os.environ.get("REQUIRE_ZIP") else pytest.skip)("zip and unzip are not installed")
    for name, data in FILES.items():
        (workspace / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / "in" / name).write_bytes(data)
    subprocess.run([zip_program, "-qr", "../theirs.zip", "."], cwd=workspace / "in", check=True)
    call("extract_archive", path="theirs.zip", folder="out")
    assert tree(workspace / "out") == FILES
    call("make_archive", path="ours.zip", files=["in"])
    subprocess.run([unzip_program, "-q", "ours.zip", "-d", "theirs"], cwd=workspace, check=True)
    assert tree(workspace / "theirs" / "in") == FILES


def test_pattern_chooses_files_in_folders_too(workspace: Path, call: Call) -> None:
    zipped(workspace / "a.zip", FILES)
    assert call("extract_archive", path="a.zip", folder="out", pattern="*.CSV")["files"] == ["out/sub/deep/Ünïcode.csv"]


def test_nothing_is_overwritten(workspace: Path, call: Call) -> None:
    zipped(workspace / "a.zip", FILES)
    (workspace / "out" / "sub").mkdir(parents=True)
    (workspace / "out" / "sub" / "b.bin").write_bytes(b"mine")
    with pytest.raises(ToolError, match=r"already a file 'out/sub/b\.bin'"):
        call("extract_archive", path="a.zip", folder="out")
    assert tree(workspace / "out") == {"sub/b.bin": b"mine"}
    with pytest.raises(ToolError, match="already a file"):
        call("make_archive", path="a.zip", files=["out"])


def left_out(answer: dict[str, Any]) -> dict[str, str]:
    """Return the reasons of an answer for files that were not extracted, by path."""
    entries = answer.get("left_out") or answer["files"]
    return {entry["path"]: entry["not_extracted_because"] for entry in entries if "not_extracted_because" in entry}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *(
            (name, "leads out of the workspace")
            for name in ("../x", "a/../../x", "/etc/x", "C:/x", "..\\x", "\\\\server\\x", "a/..", "C:x", "a/../b")
        ),
        *(
            (name, "not every operating system")
            for name in ("CON", "con.txt", "a.", "a ", "b/nul/c", "a?b", "x" * 256, "ä" * 128)
        ),
        ("a\x07", "control characters"),
        ("a/\u202etxt.exe", "control characters"),
        (f"{'x' * 200}/{'y' * 198}", "400 characters"),
        (".profile", "hidden"),
        ("sub/.ssh/config", "hidden"),
        ("callboard.yaml", "settings"),
        ("sub/Callboard.YAML", "settings"),
    ],
)
def test_file_with_an_unusable_name_is_left_out_alone(workspace: Path, call: Call, name: str, reason: str) -> None:
    zipped(workspace / "a.zip", {"good.txt": b"good", name: b"evil", "sub/also.txt": b"good"})
    answer = call("extract_archive", path="a.zip", folder="out")
    assert answer["files"] == ["out/good.txt", "out/sub/also.txt"]
    assert left_out(answer) == {name.replace("\\", "/"): ANY}
    assert reason in next(iter(left_out(answer).values()))
    assert tree(workspace / "out") == {"good.txt": b"good", "sub/also.txt": b"good"}
    assert sorted(path.name for path in workspace.iterdir()) == ["a.zip", "out"]
    assert [path.name for path in workspace.parent.iterdir()] == ["workspace"]
    if "400" not in reason:
        assert left_out(call("list_archive", path="a.zip")) == left_out(answer)


def test_dots_and_empty_parts_of_names_are_dropped(workspace: Path, call: Call) -> None:
    names = ("./a", "b/./c", "d//e", "././f/.//g", "h\\.\\i")
    zipped(workspace / "a.zip", {"./": b"", **{name: name[-1].encode() for name in names}})
    answer = call("extract_archive", path="a.zip", folder="out")
    assert tree(workspace / "out") == {"a": b"a", "b/c": b"c", "d/e": b"e", "f/g": b"g", "h/i": b"i"}
    assert answer["left_out"] == []
    assert call("extract_archive", path="a.zip", folder="other", pattern="b/c")["files"] == ["other/b/c"]


def test_list_of_files_that_are_left_out_is_bounded(workspace: Path, call: Call) -> None:
    zipped(workspace / "a.zip", {"good.txt": b"good", **{f".{number}": b"" for number in range(510)}})
    answer = call("extract_archive", path="a.zip", folder="out")
    assert (answer["files"], len(answer["left_out"]), answer["more_left_out"]) == (["out/good.txt"], 500, 10)


def test_folder_of_an_extraction_must_be_usable(workspace: Path, call: Call) -> None:
    zipped(workspace / "a.zip", FILES)
    for folder in ("", "../out", "CON", ".out", "out/"):
        with pytest.raises(ToolError, match=re.escape(f"{folder!r} is refused")):
            call("extract_archive", path="a.zip", folder=folder)
    assert [path.name for path in workspace.iterdir()] == ["a.zip"]


def test_links_hidden_files_and_unreadable_entries_are_left_out(workspace: Path, call: Call) -> None:
    with zipfile.ZipFile(workspace / "a.zip", "w") as archive:
        for name, mode in (("link", stat.S_IFLNK), ("device", stat.S_IFBLK), ("pipe", stat.S_IFIFO)):
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, (mode | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
        archive.writestr("script.sh", b"#!/bin/sh")
        archive.writestr("__MACOSX/._a", b"x")
        archive.writestr(".profile", b"x")
        archive.writestr("packed", b"x" * 99, zipfile.ZIP_LZMA)
        archive.writestr("blocks", b"x" * 99, zipfile.ZIP_BZIP2)
    answer = call("extract_archive", path="a.zip", folder="out")
    assert answer["files"] == ["out/script.sh"]
    assert {entry["path"]: entry["not_extracted_because"].split()[-1] for entry in answer["left_out"]} == {
        "link": "device", "device": "device", "pipe": "device", "__MACOSX/._a": "documents", ".profile": "documents",
        "packed": "read", "blocks": "read",
    }  # fmt: skip
    assert tree(workspace / "out") == {"script.sh": b"#!/bin/sh"}


def test_link_in_the_workspace_is_not_followed(workspace: Path, call: Call) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (workspace / "out").mkdir()
    (workspace / "out" / "sub").symlink_to(outside)
    zipped(workspace / "a.zip", FILES)
    with pytest.raises(ToolError, match="is a link"):
        call("extract_archive", path="a.zip", folder="out")
    assert tree(outside) == {}
    assert tree(workspace / "out") == {}
    with pytest.raises(ToolError, match="is a link"):
        call("make_archive", path="b.zip", files=["out/sub"])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "refused"),
    [
        (("a", "A"), ("a", "A")),
        (("a", "a"), ("a",)),
        (("a", "./a"), ("a",)),
        (("\u00e4", "a\u0308"), ("\u00e4", "a\u0308")),
        (("a", "a/b"), ("a",)),
        (("A", "a/b/c"), ("A",)),
    ],
)
def test_names_that_can_not_all_be_files_are_left_out(
    workspace: Path, call: Call, names: tuple[str, str], refused: tuple[str, ...]
) -> None:
    with zipfile.ZipFile(workspace / "a.zip", "w") as archive:
        for name in (*names, "good"):
            info = zipfile.ZipInfo("x")
            info.filename = name
            archive.writestr(info, name.encode())
    answer = call("extract_archive", path="a.zip", folder="out")
    assert set(left_out(answer)) == set(refused)
    assert left_out(call("list_archive", path="a.zip")) == left_out(answer)
    assert tree(workspace / "out") == {
        name: name.encode() for name in (*names, "good") if name not in {*refused, "./a"}
    }


def test_folder_with_contents_of_its_own_is_left_out(workspace: Path, call: Call) -> None:
    with zipfile.ZipFile(workspace / "a.zip", "w") as archive:
        archive.writestr("a.txt", b"1")
        archive.writestr("sub/", b"contents")
        archive.writestr("empty/", b"")
    assert left_out(call("extract_archive", path="a.zip", folder="out")) == {
        "sub": "it is named as a folder, and has contents of its own"
    }
    assert tree(workspace / "out") == {"a.txt": b"1"}


def test_bombs_are_refused_before_anything_is_written(
    workspace: Path, surface: DocumentSurface, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surface._workspace, "max_bytes", 100_000)
    bomb = b"\0" * 90_000
    zipped(workspace / "many.zip", {f"{number}.bin": bomb for number in range(6)})
    zipped(workspace / "large.zip", {"large.bin": b"\0" * 100_001})
    zipped(workspace / "files.zip", {str(number): b"" for number in range(1_001)})
    for name in ("many", "large", "files"):
        with pytest.raises(ToolError, match=r"are too much|are allowed"):
            call("extract_archive", path=f"{name}.zip", folder="out")
    assert not (workspace / "out").exists()


def test_file_that_is_larger_than_it_says_is_not_extracted(workspace: Path, call: Call) -> None:
    zipped(workspace / "a.zip", {"a": b"\0" * 1_000_000})
    data = bytearray((workspace / "a.zip").read_bytes())
    for signature, offset in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        at = data.index(signature) + offset
        data[at : at + 4] = struct.pack("<I", 10)
    (workspace / "a.zip").write_bytes(data)
    assert left_out(call("extract_archive", path="a.zip", folder="out")) == {
        "a": "its contents can't be read: Bad CRC-32 for file 'a'"
    }
    assert not (workspace / "out").exists()


def test_damaged_and_protected_archives_are_told(workspace: Path, call: Call) -> None:
    zipped(workspace / "good.zip", FILES, zipfile.ZIP_STORED)
    data = (workspace / "good.zip").read_bytes()
    (workspace / "cut.zip").write_bytes(data[:-30])
    (workspace / "changed.zip").write_bytes(data.replace(b"one", b"two"))
    (workspace / "text.zip").write_bytes(b"hello")
    protected = bytearray(data)
    for signature, offset in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        protected[data.index(signature) + offset] |= 1
    (workspace / "protected.zip").write_bytes(protected)
    for name in ("cut", "text"):
        with pytest.raises(ToolError, match="damaged"):
            call("extract_archive", path=f"{name}.zip", folder="out")
    with pytest.raises(ToolError, match="no file"):
        call("list_archive", path="none.zip")
    assert not (workspace / "out").exists()
    answer = call("extract_archive", path="protected.zip", folder="out")
    assert left_out(answer) == {"a.txt": "it is protected with a password"}
    answer = call("extract_archive", path="changed.zip", folder="other")
    assert left_out(answer) == {"a.txt": "its contents can't be read: Bad CRC-32 for file 'a.txt'"}
    assert tree(workspace / "other") == {name: data for name, data in FILES.items() if name != "a.txt"}


def test_no_bytes_of_a_damaged_archive_break_a_call(workspace: Path, call: Call) -> None:
    source = random.Random(1)  # noqa: S311 - damages that are the same in each run
    zipped(workspace / "good.zip", FILES)
    data = (workspace / "good.zip").read_bytes()
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(source.choice((1, 2, 4))):
            damaged[source.randrange(len(damaged))] = source.choice((0, 255, source.randrange(256)))
        (workspace / "a.zip").write_bytes(damaged)
        with contextlib.suppress(ToolError):
            call("extract_archive", path="a.zip", folder="out")
        shutil.rmtree(workspace / "out", ignore_errors=True)
    assert sorted(path.name for path in workspace.iterdir()) == ["a.zip", "good.zip"]


@pytest.mark.parametrize("done", range(len(FILES) + 1))
def test_extraction_that_a_crash_interrupted_is_finished(
    workspace: Path, surface: DocumentSurface, call: Call, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    zipped(workspace / "a.zip", FILES)
    foreseen, published = [], []
    foresee, publish = _workspace.foresee, _workspace.publish_file

    def noted(path: Path, before: str, after: str, answer: object) -> None:
        foreseen.append((path, before, after))
        foresee(path, before, after, answer)

    def killed(spare: Path, path: Path) -> None:
        if len(published) == done:
            raise KeyboardInterrupt
        published.append(path)
        publish(spare, path)

    monkeypatch.setattr(_workspace, "foresee", noted)
    monkeypatch.setattr(_workspace, "publish_file", killed)
    extract = {"path": "a.zip", "folder": "out"}
    if done < len(FILES):
        with pytest.raises(KeyboardInterrupt):
            call("extract_archive", **extract)
    else:
        call("extract_archive", **extract)
    state = surface._workspace.mark_of(str(foreseen[-1][0])) == foreseen[-1][2]
    assert state == (done == len(FILES)), "the last file tells whether all are there"
    monkeypatch.undo()
    assert call("extract_archive", **extract)["files"] == [f"out/{name}" for name in FILES]
    assert tree(workspace / "out") == FILES


def test_resources_are_the_files_that_a_call_touches(workspace: Path, surface: DocumentSurface) -> None:
    arguments = {"path": "a.zip", "files": ["b.docx", "sub"]}
    names = surface.resources(None, "make_archive", arguments)
    assert names == [f"file:{workspace / name}" for name in ("a.zip", "b.docx", "sub")]
