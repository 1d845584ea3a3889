"""Files in a shell's workspace, and the hazards of a call on others."""

import errno
import os

import pytest

from callboard.messages import Foreseen, Hazard, Intent, Probe
from callboard.surfaces import ToolError


def test_a_file_is_written_read_and_edited(box):
    assert box.do("write_file", path="notes.txt", text="one\ntwo\nthree\n") == {
        "path": f"{box.work}/notes.txt",
        "bytes": 14,
    }
    box.do("edit_file", path="notes.txt", old="two\n", new="2\n")
    assert box.do("read_file", path="notes.txt") == {"text": "one\n2\nthree", "lines": 3}
    assert box.do("read_file", path="notes.txt", first_line=2, lines=1) == {"text": "2", "lines": 3, "more_lines": 1}


@pytest.mark.parametrize(("old", "why"), [("a", "occurs 3 times"), ("a a", "occurs 2 times"), ("z", "does not occur")])
def test_an_edit_that_is_not_unique_changes_nothing(box, old, why):
    (box.work / "a.txt").write_text("a a a", encoding="utf-8")
    with pytest.raises(ToolError, match=why):
        box.do("edit_file", path="a.txt", old=old, new="b")
    assert (box.work / "a.txt").read_text(encoding="utf-8") == "a a a"


def test_a_write_keeps_the_mode_of_the_file(box):
    script = box.work / "run.sh"
    script.write_text("true", encoding="utf-8")
    script.chmod(0o750)
    box.do("write_file", path="run.sh", text="false")
    assert script.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in box.work.iterdir()] == ["run.sh"]


def test_paths_count_from_where_the_shell_is(box):
    (box.work / "deep").mkdir()
    box.run("cd deep")
    box.do("write_file", path="x", text="x")
    assert (box.work / "deep" / "x").exists()
    assert box.do("list_dir")["entries"] == ["x (1)"]
    assert box.do("list_dir", path="..")["entries"] == ["deep/"]


def test_files_are_found_by_name_and_content(box):
    (box.work / "logs").mkdir()
    (box.work / "logs" / "a.log").write_text("fine\nERROR: disk\n", encoding="utf-8")
    (box.work / "logs" / "b.log").write_text("error: net\n", encoding="utf-8")
    (box.work / "logs" / "data.bin").write_bytes(b"\0ERROR")
    assert box.do("find", pattern="*.log") == {"paths": ["logs/a.log", "logs/b.log"]}
    match = {"file": "logs/a.log", "line": 2, "text": "ERROR: disk"}
    assert box.do("search", text="ERROR") == {"lines": 1, "files": {"logs/a.log": 1}, "matches": [match]}
    found = box.do("search", text="error", ignore_case=True, path="logs", names="b*")
    assert found["matches"] == [{"file": "b.log", "line": 1, "text": "error: net"}]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere", "is not there"),
        (".", "is a folder"),
        ("data.bin", "is not text in UTF-8"),
        ("large", "can be read: use"),
    ],
)
def test_unreadable_file_gives_a_clear_error(box, path, why, monkeypatch):
    for module in ("_files", "_remote_files"):
        monkeypatch.setattr(f"callboard.surfaces.shell.{module}.MOST_BYTES", 100)
    (box.work / "data.bin").write_bytes(b"\xff\xfe")
    (box.work / "large").write_bytes(b"x" * 101)
    with pytest.raises(ToolError, match=why):
        box.do("read_file", path=path)


def hazards(box, tool, path, made=()):
    return box.surface.hazards(box.target, tool, {"shell": "box", "path": path}, made)


def test_leaving_the_workspace_or_replacing_a_file_is_a_hazard(box, tmp_path):
    (box.work / "here").write_text("x", encoding="utf-8")
    (box.work / "link").symlink_to(tmp_path / "secret")
    assert hazards(box, "read_file", "here") == set()
    assert hazards(box, "read_file", "link") == {Hazard.LEAVES}
    assert hazards(box, "read_file", "../secret") == {Hazard.LEAVES}
    assert hazards(box, "list_dir", "/etc") == {Hazard.LEAVES}
    assert hazards(box, "write_file", "new") == set()
    assert hazards(box, "write_file", "here") == {Hazard.OVERWRITES}
    assert hazards(box, "write_file", "here", {f"{box.work}/here"}) == set()


def test_one_file_has_one_name_for_rules(box):
    (box.work / "link").symlink_to("here")
    names = {
        box.surface.resources(box.target, "read_file", {"path": path})
        for path in ("here", "./here", "x/../here", "link", f"{box.work}/here")
    }
    host = box.surface._shell("box").host
    assert names == {(f"file:{f'ssh://{host}' if host else ''}{box.work}/here",)}


@pytest.mark.parametrize(("there", "found"), [("old", Probe.NOT_DONE), ("new", Probe.DONE), ("other", Probe.UNKNOWN)])
def test_a_write_that_a_crash_broke_off_is_looked_at(box, there, found):
    from callboard.surfaces.shell._files import mark

    path = box.work / "file"
    path.write_text(there, encoding="utf-8")
    broken_off = Intent(call_id="1", tool="edit_file", arguments={"path": "file"})
    host = box.surface._shell("box").host
    note = Foreseen(call_id="1", path=f"{host}:{path}" if host else str(path), before=mark(b"old"), after=mark(b"new"))
    assert box.surface.probe(box.target, broken_off, (note,), "") is found
    assert box.surface.probe(box.target, broken_off, (), "") is Probe.NOT_DONE


def test_a_search_counts_more_lines_than_it_shows(box, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.shell._file_tools._MATCHES", 2)
    for name, count in (("a", 1), ("b", 3)):
        (box.work / name).write_text("ERROR\n" * count + "fine\n", encoding="utf-8")
    found = box.do("search", text="ERROR")
    assert (found["lines"], found["files"], len(found["matches"]), found["more"]) == (4, {"b": 3, "a": 1}, 2, True)


def test_write_on_another_machine_foresees_no_file_of_this_one(remote, monkeypatch):
    paths = []
    monkeypatch.setattr("callboard.surfaces.shell._remote_files.foresee", lambda path, *_: paths.append(str(path)))
    remote.do("write_file", path="new.txt", text="x")
    assert paths == [f"{remote.surface._shell('box').host}:{remote.work}/new.txt"]


def test_find_with_too_many_results_gives_a_clear_error(remote, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.shell._remote_files._FOUND_BYTES", 10)
    (remote.work / "a_long_name").touch()
    with pytest.raises(ToolError, match="more than 10 bytes; search a smaller folder"):
        remote.do("find", pattern="*")


def test_a_search_tells_names_with_line_breaks(box):
    (box.work / "new\nline").write_text("ERROR\n")
    assert box.do("search", text="ERROR")["files"] == {"new\nline": 1}


def test_file_names_that_are_not_text_are_shown_and_do_no_harm(local):
    bad = local.work / os.fsdecode(b"bad\xff")
    bad.mkdir()
    (bad / "a.log").write_text("ERROR", encoding="utf-8")
    (local.work / "link").symlink_to(bad)
    local.run("cd bad*")
    assert local.look().model_dump_json()
    told = [
        local.do("list_dir")["entries"],
        local.do("find", pattern="a.*")["paths"],
        list(local.do("search", text="ERROR")["files"]),
    ]
    assert told == [["bad\ufffd/", "link -> " + f"{local.work}/bad\ufffd"], ["bad\ufffd/a.log"], ["bad\ufffd/a.log"]]
    with pytest.raises(ToolError, match="a name that is not UTF-8"):
        local.do("list_dir", path="link")


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "list_dir", "find", "search"])
@pytest.mark.parametrize("path", ["x" * 300, "~no-such-user/x", "none/x"])
def test_impossible_path_gives_a_plain_error(box, tool, path):
    further = {"write_file": {"text": ""}, "edit_file": {"old": "a", "new": "b"}}
    further |= {"find": {"pattern": "x"}, "search": {"text": "x"}}
    box.surface.hazards(box.target, tool, {"path": path}, ())
    with pytest.raises(ToolError, match=r"too long|is not there|No such file|there is no folder|can't be written"):
        box.do(tool, path=path, **further.get(tool, {}))
    assert not [*box.work.iterdir()]


def test_a_long_name_can_be_written(box):
    assert box.do("write_file", path="x" * 255, text="y")["bytes"] == 1


def test_lines_have_the_same_numbers_for_all_tools(box):
    (box.work / "a").write_bytes("one\x0c\u2028\r\n\rERROR\n\n".encode())
    assert box.do("search", text="ERROR")["matches"][0]["line"] == 2
    assert box.do("read_file", path="a") == {"text": "one\x0c\u2028\r\n\rERROR\n", "lines": 3}
    box.do("edit_file", path="a", old="\r\n\rE", new="\r\ne")


def test_a_long_line_is_searched_in_parts(local, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.shell._files._MOST_OF_LINE", 8)
    (local.work / "a").write_text("ERROR 1 ERROR 2 ERROR 3\nERROR", encoding="utf-8")
    assert [match["line"] for match in local.do("search", text="ERROR")["matches"]] == [1, 2]


def test_full_disk_gives_a_clear_error(local, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="a: No space left on device"):
        local.do("write_file", path="a", text="x")
    assert not [*local.work.iterdir()]
