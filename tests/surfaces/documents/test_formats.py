"""PDFs, messages, calendars, CSV, texts, pictures, and tools for files."""

from __future__ import annotations

import csv
import importlib
import io
import os
import shutil
import zipfile
import zlib
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import quote
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from office_files import pdf_of

from callboard.messages import AgentKind, CommandType, Hazard, TargetKind
from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface, _file_reader, _formats, _save
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE, OfficeFailedError

if TYPE_CHECKING:
    from conftest import Call

pytest.importorskip("pdfplumber")
Image = pytest.importorskip("PIL.Image")
icalendar = pytest.importorskip("icalendar")


def window(surface: DocumentSurface, name: str):
    return next(target for target in surface.targets() if target.id == name)


def test_models_are_offered_few_tools(surface: DocumentSurface) -> None:
    offered = [each for each in surface.tools() if each.offered and each.type is CommandType.ACTION]
    assert len({each.name for each in offered}) <= 52
    for root in ("word", "excel", "powerpoint", "pdf", "mail", "calendar", "csv", "text", "picture"):
        names = [each for each in offered if AgentKind.APP in each.agents and (not each.roots or root in each.roots)]
        assert 2 <= len(names) <= (22 if root == "excel" else 20), root


# Files


def test_files_of_any_kind_are_listed(workspace: Path, call: Call) -> None:
    call("make_folder", path="old/2025")
    (workspace / "old" / "a.zip").write_bytes(b"12")
    (workspace / ".hidden").write_bytes(b"")
    listed = call("list_files")
    assert [(each["path"], each["kind"]) for each in listed["files"]] == [
        ("old", "folder"), ("old/2025", "folder"), ("old/a.zip", "other"),
    ]  # fmt: skip
    assert [each["bytes"] for each in call("list_files", folder="old", pattern="*.ZIP")["files"]] == [2]
    assert call("make_folder", path="old/2025") == {"folder": "old/2025", "made": False}


def test_a_file_is_renamed_moved_copied_and_deleted(workspace: Path, call: Call) -> None:
    (workspace / "a.bin").write_bytes(b"one")
    call("make_folder", path="sub")
    call("move_file", path="a.bin", new_path="sub/b.bin")
    call("move_file", path="sub/b.bin", new_path="c.bin", copy=True)
    assert not (workspace / "a.bin").exists()
    assert (workspace / "sub" / "b.bin").read_bytes() == (workspace / "c.bin").read_bytes() == b"one"
    with pytest.raises(ToolError, match="already a file"):
        call("move_file", path="c.bin", new_path="sub/b.bin")
    with pytest.raises(ToolError, match="holds 1 files"):
        call("delete_file", path="sub")
    call("delete_file", path="sub/b.bin")
    call("delete_file", path="sub")
    assert sorted(path.name for path in workspace.iterdir()) == ["c.bin"]
    with pytest.raises(ToolError, match="no file"):
        call("delete_file", path="sub")


def test_a_move_that_a_crash_interrupted_is_finished(workspace: Path, call: Call) -> None:
    (workspace / "a.bin").write_bytes(b"one")
    os.link(workspace / "a.bin", workspace / "b.bin")
    call("move_file", path="a.bin", new_path="b.bin")
    assert [(path.name, path.read_bytes()) for path in workspace.iterdir()] == [("b.bin", b"one")]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "sub/../../x", ".hidden", "link/x", "a\\b", "C:x", "con.txt", "a."])
def test_no_path_leads_out_of_the_workspace(workspace: Path, call: Call, path: str) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"secret")
    (workspace / "link").symlink_to(outside)
    (workspace / "a.bin").write_bytes(b"one")
    for name, arguments in (
        ("move_file", {"path": "a.bin", "new_path": path}),
        ("move_file", {"path": "a.bin", "new_path": path, "copy": True}),
        ("move_file", {"path": path, "new_path": "b.bin"}),
        ("delete_file", {"path": path}),
        ("make_folder", {"path": path}),
        ("list_files", {"folder": path}),
    ):
        with pytest.raises(ToolError):
            call(name, **arguments)
    assert (outside / "x").read_bytes() == b"secret"
    assert sorted(each.name for each in workspace.iterdir()) == ["a.bin", "link"]
    with pytest.raises(ToolError):
        call("delete_file", path="link")
    assert "secret" not in str(call("list_files"))


def test_another_file_never_takes_the_name_of_one_that_the_task_made(surface: DocumentSurface, workspace: Path) -> None:
    made = [str(workspace / "sub" / "Mine.docx")]
    move = {"path": "theirs.docx", "new_path": "sub/mine.docx"}
    assert surface.hazards(None, "move_file", move, made) == {Hazard.OVERWRITES}
    assert surface.hazards(None, "move_file", {**move, "new_path": "sub"}, made) == {Hazard.OVERWRITES}
    assert surface.hazards(None, "move_file", {**move, "new_path": "other.docx"}, made) == set()
    entries = {each.name: each for each in surface.tools()}
    assert entries["delete_file"].hazards == {Hazard.DELETES}


# PDF


def test_a_pdf_is_read_page_by_page(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    (workspace / "a.pdf").write_bytes(pdf_of(["Invoice 17", "Total 12.50"]))
    assert call("read_text", "a.pdf") == {"text": "[page 1]\nInvoice 17\nTotal 12.50", "pages": 1, "next": None}
    assert call("read_text", "a.pdf", limit=7)["next"] == {"page": 1, "offset": 7}
    seen = surface.observe(window(surface, "a.pdf"))
    assert (seen.window["pages"], seen.window["writable"]) == (1, False)
    assert seen.text.startswith("Invoice 17")
    with pytest.raises(ToolError, match="no page 3"):
        call("read_text", "a.pdf", page=3)


def test_lines_without_text_are_not_a_table(workspace: Path, call: Call) -> None:
    grid = "".join(f"50 {y} m 250 {y} l S\n" for y in (100, 150, 200))
    grid += "".join(f"{x} 100 m {x} 200 l S\n" for x in (50, 150, 250))
    (workspace / "a.pdf").write_bytes(pdf_of([], zlib.compress(grid.encode())))
    with pytest.raises(ToolError, match="has 0 tables"):
        call("read_table", "a.pdf")


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", b"\0" * 1000, b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj"])
def test_damaged_pdf_gives_a_clear_error(workspace: Path, call: Call, data: bytes) -> None:
    (workspace / "a.pdf").write_bytes(data)
    with pytest.raises(ToolError, match=r"can't be read: .*unchanged"):
        call("read_text", "a.pdf")


def test_a_pdf_is_read_within_a_time_limit(workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "a.pdf").write_bytes(pdf_of(["Invoice 17"]))
    monkeypatch.setattr(_formats, "READER_SECONDS", 0.001)
    with pytest.raises(ToolError, match=r"can't be read: it takes longer than 0.001 seconds"):
        call("read_text", "a.pdf")


def test_a_bomb_in_a_pdf_ends_its_reader_alone(
    workspace: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Path(_file_reader.__file__).read_text(encoding="utf-8")  # with a limit that is reached soon
    (tmp_path / "_file_reader.py").write_text(reader.replace("MEMORY = 3_000_000_000", "MEMORY = 500_000_000"))
    shutil.copy(Path(_file_reader.__file__).with_name("_scanned_pages.py"), tmp_path)
    monkeypatch.setattr(_formats, "__file__", str(tmp_path / "_formats.py"))
    (workspace / "a.pdf").write_bytes(pdf_of(["Invoice 17"]))
    assert "Invoice 17" in call("read_text", "a.pdf")["text"]
    bomb = zlib.compressobj()
    head = bomb.compress(b" " * 10_000_000) + bomb.flush(zlib.Z_FULL_FLUSH)
    again = bomb.compress(b" " * 10_000_000) + bomb.flush(zlib.Z_FULL_FLUSH)  # refers to nothing before it
    (workspace / "a.pdf").write_bytes(pdf_of([], head + again * 60))
    with pytest.raises(ToolError, match="it needs too much memory"):
        call("read_text", "a.pdf")


@pytest.fixture
def soffice() -> None:
    """Need LibreOffice."""
    if shutil.which("soffice") is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)("soffice is not installed")


def test_pdfs_saved_from_docx_and_xlsx_have_readable_tables(soffice: None, call: Call, workspace: Path) -> None:
    call("create_document", path="a.docx")
    call("insert_table", "a.docx", header=["Region", "Revenue"], rows=[["North", "1,234.50"], ["South", "987.25"]])
    call("save_as", "a.docx", path="a.pdf")
    found = call("read_table", "a.pdf")
    assert (found["header"], found["tables_on_page"]) == (["Region", "Revenue"], 1)
    assert found["rows"] == [["North", 1234.5], ["South", 987.25]]
    call("create_document", path="b.xlsx")
    call("insert_table", "b.xlsx", header=["Region"], rows=[["West"]])
    call("save_as", "b.xlsx", path="b.pdf")
    assert "West" in call("read_text", "b.pdf")["text"]
    with pytest.raises(ToolError, match="already a file"):
        call("save_as", "a.docx", path="b.pdf")


def test_pdf_shows_the_results_that_a_workbook_holds(soffice: None, call: Call, workspace: Path) -> None:
    call("create_document", path="b.xlsx")
    call("write_range", "b.xlsx", sheet="Sheet1", cell="A1", values=[[7], ["text"]])
    call("set_formula", "b.xlsx", sheet="Sheet1", cells="A3", formula="=A1+1")
    source = zipfile.ZipFile(workspace / "b.xlsx")
    with zipfile.ZipFile(workspace / "c.xlsx", "w") as stored:
        for name in source.namelist():
            stored.writestr(name, source.read(name).replace(b"<v>8</v>", b"<v>4711</v>"))
    call("save_as", "c.xlsx", path="c.pdf")
    assert "4711" in call("read_text", "c.pdf")["text"]


def test_pdf_of_a_text_is_made_by_the_kept_libreoffice(
    soffice: None, call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if _save.lacking_office(".docx"):
        pytest.skip(_save.lacking_office(".docx"))
    call("create_document", path="a.docx")
    converted = []
    convert = LIBRE_OFFICE.convert
    monkeypatch.setattr(
        LIBRE_OFFICE, "convert", lambda *args, **options: converted.append(args[1:]) or convert(*args, **options)
    )
    call("save_as", "a.docx", path="a.pdf")
    assert converted == [(".docx", "pdf")]
    assert (workspace / "a.pdf").read_bytes().startswith(b"%PDF-")


def test_failure_of_the_kept_libreoffice_makes_no_file(
    soffice: None, call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if _save.lacking_office(".docx"):
        pytest.skip(_save.lacking_office(".docx"))
    call("create_document", path="a.docx")
    monkeypatch.setattr(LIBRE_OFFICE, "convert", lambda *_, **__: [None])
    with pytest.raises(ToolError, match=r"made no PDF of 'a\.docx': LibreOffice can't read it"):
        call("save_as", "a.docx", path="a.pdf")
    monkeypatch.undo()
    monkeypatch.setattr(LIBRE_OFFICE, "_convert_files", Mock(side_effect=OfficeFailedError))
    with pytest.raises(ToolError, match=r"made no PDF of 'a\.docx': LibreOffice did not start, crashed"):
        call("save_as", "a.docx", path="a.pdf")
    assert [path.name for path in workspace.iterdir()] == ["a.docx"]


def test_a_conversion_gets_no_variables_and_ends_in_time(
    call: Call, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("create_document", path="a.docx")
    program = tmp_path / "soffice"
    program.write_text(f'#!/bin/sh\nenv > {tmp_path}/seen\nprintf "%s\\n" "$@" >> {tmp_path}/seen\nsleep 60\n')
    program.chmod(0o755)
    monkeypatch.setenv("API_KEY", "hush")
    monkeypatch.setattr(_save, "lacking_office", lambda _: "LibreOffice is used on Linux only")
    monkeypatch.setattr(_save.shutil, "which", lambda _: str(program))
    monkeypatch.setattr(_save, "PDF_SECONDS", 1)
    with pytest.raises(ToolError, match="longer than 1 seconds"):
        call("save_as", "a.docx", path="a.pdf")
    seen = (tmp_path / "seen").read_text()
    assert "hush" not in seen
    assert "-env:UserInstallation=file:///" in seen
    assert sorted(path.name for path in workspace.iterdir()) == ["a.docx"]


# Mail


def test_a_message_is_written_and_read(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    call("create_document", path="a.eml")
    call("create_document", path="note.txt")
    call("write_text", "note.txt", text="inside")
    call(
        "write_message",
        "a.eml",
        to=["Ada <ada@example.org>"],
        subject="Größe",
        text="Hello\nAda",
        attachments=["note.txt"],
    )
    message = BytesParser(policy=policy.default).parsebytes((workspace / "a.eml").read_bytes())
    assert (message["To"], message["Subject"], message["X-Unsent"]) == ("Ada <ada@example.org>", "Größe", "1")
    read = call("read_text", "a.eml")
    assert (read["subject"], read["text"]) == ("Größe", "Hello\nAda\n")
    seen = surface.observe(window(surface, "a.eml"))
    assert [(each.id, each.name, each.detail["bytes"]) for each in seen.controls] == [("attachment-1", "note.txt", 6)]
    call("save_as", "a.eml", path="copy.txt", control_id="attachment-1")
    assert (workspace / "copy.txt").read_bytes() == b"inside"
    assert surface.hazards(window(surface, "a.eml"), "write_message", {"subject": "x"}, []) == {Hazard.OVERWRITES}
    assert surface.hazards(window(surface, "a.eml"), "write_message", {"cc": ["a@b.c"]}, []) == set()


@pytest.mark.parametrize(
    "given",
    [
        {"to": ["ada@example.org\r\nBcc: eve@example.org"]},
        {"to": ['"Ada\r\nBcc: eve@example.org" <ada@example.org>']},
        {"to": ['"Ada, <ada@example.org>']},
        {"to": ["jürgen@example.org"]},
        {"to": ["a@b.c(", ")d@e.f"]},
        {"to": ["nobody"]},
        {"cc": ["a@b.c, d@e.f"]},
        {"cc": ["a@b.c, Eve <d@e.f>"]},
        {},
    ],
)
def test_a_header_can_not_be_smuggled_into_a_message(workspace: Path, call: Call, given: dict) -> None:
    call("create_document", path="a.eml")
    before = (workspace / "a.eml").read_bytes()
    with pytest.raises(ToolError):
        call("write_message", "a.eml", **given)
    assert (workspace / "a.eml").read_bytes() == before
    call("write_message", "a.eml", subject="one\r\nBcc: eve@example.org")
    assert BytesParser(policy=policy.default).parsebytes((workspace / "a.eml").read_bytes())["Bcc"] is None


def test_names_with_commas_stay_names(workspace: Path, call: Call) -> None:
    names = ["Lovelace, Ada", "Müller, Ada", "Dr. Jörg Müller, Lovelace,", 'A "B", C; <x@y.z> (D', "E \\, F"]
    given = [f'"{quote(name)}" <user{number}@example.org>' for number, name in enumerate(names)]
    call("create_document", path="a.eml")
    call("write_message", "a.eml", to=[*given, "=?utf-8?q?x=40y=2Ez=2C?= <x@example.org>"], sender=given[1])
    message = BytesParser(policy=policy.default).parsebytes((workspace / "a.eml").read_bytes())
    found = [(each.display_name, each.addr_spec) for each in message["To"].addresses]
    assert found[:-1] == [(name, f"user{number}@example.org") for number, name in enumerate(names)]
    assert found[-1] == ("x@y.z,", "x@example.org")
    assert [each.display_name for each in message["From"].addresses] == ["Müller, Ada"]


def test_an_attachment_can_not_choose_where_it_is_saved(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    message = EmailMessage()
    message.set_content("x")
    for name in ("../../evil.txt", "run.sh"):
        message.add_attachment(b"x", maintype="text", subtype="plain", filename=name)
    (workspace / "a.eml").write_bytes(message.as_bytes())
    assert [each.name for each in surface.observe(window(surface, "a.eml")).controls] == ["evil.txt", "run.sh"]
    for control, path in (("attachment-1", "../evil.txt"), ("attachment-1", "evil.docx"), ("attachment-2", "run.sh")):
        with pytest.raises(ToolError, match="refused"):
            call("save_as", "a.eml", path=path, control_id=control)


@pytest.mark.parametrize(
    "data",
    [
        b"To: Bob\r\n <b@c.d>\r\nSubject: " + b"long " * 40 + b"\r\nX-Odd: two  spaces \r\n\r\nHi\r\n.\r\nFrom x\r\n",
        b"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\nsch\xf6n",
        b"Content-Type: multipart/signed; boundary=B\r\n\r\n1\r\n--B\r\nContent-Type: a/b\r\n\r\n2\r\n--B--\r\n3\r\n",
    ],
)
def test_an_attached_message_stays_a_message(
    workspace: Path, surface: DocumentSurface, call: Call, data: bytes
) -> None:
    (workspace / "inner.eml").write_bytes(data)
    call("create_document", path="a.eml")
    call("write_message", "a.eml", text="see below", attachments=["inner.eml"])
    call("write_message", "a.eml", subject="Fwd")
    message = BytesParser(policy=policy.default).parsebytes((workspace / "a.eml").read_bytes())
    (attached,) = message.iter_attachments()
    assert (attached.get_content_type(), attached["Content-Transfer-Encoding"]) == ("message/rfc822", "8bit")
    (control,) = surface.observe(window(surface, "a.eml")).controls
    assert (control.name, control.detail["bytes"]) == ("inner.eml", len(data))
    call("save_as", "a.eml", path="saved.eml", control_id="attachment-1")
    assert (workspace / "saved.eml").read_bytes() == data


def test_a_formatted_text_keeps_its_cells_apart(workspace: Path, call: Call) -> None:
    rows = "<table>\n <tr><th>Item</th>\n\t<th>Price</th></tr><tr><td>A 12</td><td>34.5</td></tr></table>"
    text = f"<p>Two\nlines</p>{rows}<pre>a\n\tb</pre>"
    (workspace / "a.eml").write_text(f"Subject: x\nContent-Type: text/html\n\n{text}\n")
    assert call("read_text", "a.eml")["text"].splitlines() == [
        "Two lines", "", "Item\tPrice", "A 12\t34.5", "", "a", "b",
    ]  # fmt: skip


def test_messages_are_not_nested_more_deeply_than_is_read(workspace: Path, call: Call) -> None:
    for number in range(11):
        call("create_document", path=f"a{number}.eml")
    for number in range(9):
        call("write_message", f"a{number + 1}.eml", attachments=[f"a{number}.eml"])
    with pytest.raises(ToolError, match=r"'a10\.eml' is refused: its parts are nested too deeply"):
        call("write_message", "a10.eml", attachments=["a9.eml"])
    assert [call("read_text", f"a{number}.eml")["text"] for number in (9, 10)] == ["", ""]


def test_malformed_messages_are_read_or_refused(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    (workspace / "a.eml").write_bytes(b"To: <\r\n\r\nhello")
    assert surface.hazards(window(surface, "a.eml"), "write_message", {"to": ["a@b.c"]}, []) == {Hazard.OVERWRITES}
    deep = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(400))
    odd = [b"", b"\0\xff\xfe", b"Content-Type: text/plain; charset=nope\r\n\r\n\xff", b"To: =?x?q?=FF?=\r\n\r\nhello",
           b"Content-Type: multipart/mixed\r\n\r\nx", b"Content-Type: a/b/c; x\r\n\r\n", deep]  # fmt: skip
    for data in odd:
        (workspace / "a.eml").write_bytes(data)
        if data is deep:
            with pytest.raises(ToolError, match=r"nested|damaged"):
                call("read_text", "a.eml")
        else:
            assert set(call("read_text", "a.eml")) >= {"from", "text"}
            surface.observe(window(surface, "a.eml"))


# Calendars


def test_events_are_added_changed_and_deleted(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    pytest.importorskip("zoneinfo")
    call("create_document", path="a.ics")
    call("write_event", "a.ics", summary="Fair", start="2026-05-31", location="Hall 4")
    answer = call(
        "write_event",
        "a.ics",
        summary="Call",
        start="2026-06-01T09:00",
        end="2026-06-01T10:00",
        timezone="Europe/Berlin",
    )
    assert answer == {"control_id": "event-2", "summary": "Call"}
    rows = call("read_table", "a.ics")["rows"]
    assert [row[1:4] for row in rows] == [
        ["Fair", "2026-05-31", ""],
        ["Call", "2026-06-01T07:00:00+00:00", "2026-06-01T08:00:00+00:00"],
    ]
    before = (workspace / "a.ics").read_bytes()
    call("write_event", "a.ics", control_id="event-2", summary="Longer call")
    after = (workspace / "a.ics").read_bytes()
    assert after[: before.index(b"BEGIN:VEVENT", 100)] == before[: before.index(b"BEGIN:VEVENT", 100)]
    assert [each.name for each in surface.observe(window(surface, "a.ics")).controls] == ["Fair", "Longer call"]
    with pytest.raises(ToolError, match="not after the start"):
        call("write_event", "a.ics", control_id="event-2", end="2026-05-01T09:00Z")
    with pytest.raises(ToolError, match="no time zone"):
        call("write_event", "a.ics", summary="x", start="2026-06-01T09:00", timezone="../../etc/passwd")
    call("delete_control", "a.ics", control_id="event-1")
    assert [row[1] for row in call("read_table", "a.ics")["rows"]] == ["Longer call"]
    assert len(icalendar.Calendar.from_ical((workspace / "a.ics").read_bytes()).events) == 1


@pytest.mark.parametrize(
    ("start", "end", "moved", "ends"),
    [
        ("2026-07-01", "2026-07-03", "2026-08-31", "2026-09-02"),
        ("2026-07-01T09:00", "2026-07-02T10:30", "2026-07-05T23:00", "2026-07-07T00:30:00"),
        ("2026-07-01T09:00Z", "2026-07-01T10:00Z", "2026-06-01T09:00+02:00", "2026-06-01T08:00:00+00:00"),
        ("2026-07-01", None, "2026-07-02", ""),
    ],
)
def test_an_event_that_is_moved_keeps_its_duration(
    call: Call, start: str, end: str | None, moved: str, ends: str
) -> None:
    call("create_document", path="a.ics")
    call("write_event", "a.ics", summary="x", start=start, end=end)
    call("write_event", "a.ics", control_id="event-1", start=moved)
    assert call("read_table", "a.ics")["rows"][0][3] == ends


def test_the_duration_is_measured_across_summer_time(workspace: Path, call: Call) -> None:
    zone = "TZID=Europe/Berlin:2026"
    event = f"BEGIN:VEVENT\r\nUID:1\r\nDTSTART;{zone}0329T010000\r\nDTEND;{zone}0329T040000\r\nEND:VEVENT\r\n"
    (workspace / "a.ics").write_text(f"BEGIN:VCALENDAR\r\n{event}END:VCALENDAR\r\n", newline="")
    call("write_event", "a.ics", control_id="event-1", start="2026-07-01T10:00Z")
    assert call("read_table", "a.ics")["rows"][0][3] == "2026-07-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"end": "2026-07-01"},
            "the end 2026-07-01 is not after the start 2026-07-01; the end of whole days is the day",
        ),
        ({"start": "2026-07-05", "end": "2026-07-04"}, "is not after the start 2026-07-05"),
        ({"start": "2026-07-01T09:00"}, "must both be days, or both times"),
        ({"start": "9999-12-31"}, "would end outside of the years 1 to 9999; give an end, too"),
    ],
)
def test_an_event_that_would_not_end_after_its_start_is_refused(
    workspace: Path, call: Call, given: dict, why: str
) -> None:
    call("create_document", path="a.ics")
    call("write_event", "a.ics", summary="x", start="2026-07-01", end="2026-07-03")
    before = (workspace / "a.ics").read_bytes()
    with pytest.raises(ToolError, match=why):
        call("write_event", "a.ics", control_id="event-1", **given)
    assert (workspace / "a.ics").read_bytes() == before


def test_the_end_of_an_event_with_a_duration_is_shown(workspace: Path, call: Call) -> None:
    zone = "DTSTART;TZID=Europe/Berlin:20260328T220000\r\nDURATION:PT6H\r\n"  # summer time begins in that night
    days = "DTSTART;VALUE=DATE:20260701\r\nDURATION:P2D\r\n"
    events = "".join(f"BEGIN:VEVENT\r\nUID:{each[8]}\r\n{each}END:VEVENT\r\n" for each in (zone, days))
    (workspace / "a.ics").write_text(f"BEGIN:VCALENDAR\r\n{events}END:VCALENDAR\r\n", newline="")
    ends = [row[3] for row in call("read_table", "a.ics")["rows"]]
    assert ends == ["2026-03-29T05:00:00+02:00 Europe/Berlin", "2026-07-03"]


def test_a_time_without_a_zone_is_refused_for_an_event_that_has_one(call: Call) -> None:
    call("create_document", path="a.ics")
    call("write_event", "a.ics", summary="x", start="2026-07-01T09:00", timezone="Europe/Berlin")
    with pytest.raises(ToolError, match="give the timezone of the new ones"):
        call("write_event", "a.ics", control_id="event-1", start="2026-07-01T10:00")


def test_the_text_of_an_event_without_a_duration_is_changed(workspace: Path, call: Call) -> None:
    call("create_document", path="a.ics")
    call("write_event", "a.ics", summary="x", start="2026-07-01", end="2026-07-02")
    data = (workspace / "a.ics").read_bytes().replace(b"20260702", b"20260701")
    (workspace / "b.ics").write_bytes(data)
    call("write_event", "b.ics", control_id="event-1", summary="y")
    assert call("read_table", "b.ics")["rows"][0][1:4] == ["y", "2026-07-01", "2026-07-01"]


@pytest.mark.parametrize(("start", "zone"), [("9999-12-31T23:59", "-05:00"), ("0001-01-01T00:00", "+09:00")])
def test_a_time_that_utc_can_not_express_is_refused(call: Call, start: str, zone: str) -> None:
    call("create_document", path="a.ics")
    with pytest.raises(ToolError, match="outside of the years 1 to 9999"):
        call("write_event", "a.ics", summary="x", start=start + zone)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n", b"BEGIN:VEVENT\r\nEND:VEVENT\r\n" * 3]
)
def test_a_malformed_calendar_is_never_written(workspace: Path, call: Call, data: bytes) -> None:
    (workspace / "a.ics").write_bytes(data)
    with pytest.raises(ToolError):
        call("write_event", "a.ics", summary="x", start="2026-06-01")
    assert (workspace / "a.ics").read_bytes() == data


# CSV and text


def test_a_csv_is_read_and_all_other_rows_stay_as_they_are(
    workspace: Path, surface: DocumentSurface, call: Call
) -> None:
    data = 'Region;"Umsatz"\r\n"Köln";1.234,50\r\n"two\r\nlines";7\r\n'.encode("cp1252")
    (workspace / "a.csv").write_bytes(data)
    found = call("read_table", "a.csv")
    assert (found["header"], found["rows"]) == (["Region", "Umsatz"], [["Köln", 1234.5], ["two\r\nlines", 7]])
    call("write_cell", "a.csv", row=2, column=2, value=8)
    call("append_rows", "a.csv", rows=[["Süd", -3]])
    expected = 'Region;"Umsatz"\r\nKöln;8\r\n"two\r\nlines";7\r\nSüd;-3\r\n'.encode("cp1252")
    assert (workspace / "a.csv").read_bytes() == expected
    assert surface.observe(window(surface, "a.csv")).window["rows"] == 4
    with pytest.raises(ToolError, match="has no"):
        call("append_rows", "a.csv", rows=[["\u4e2d", 1]])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Name;Preis\na;1,50\n", "Name;Preis\na;2,25\nc;3,1\n"),
        ("Name,Preis\na,1.50\n", "Name,Preis\na,2.25\nc,3.1\n"),
        ('Name,Preis\na,"1,50"\n', 'Name,Preis\na,"2,25"\nc,"3,1"\n'),
        ("Satz;Preis\n7,5 %;\n", "Satz;Preis\n7,5 %;2,25\nc;3,1\n"),
        ("1,5;Preis\na;7\nb;1.5\n", "1,5;Preis\na;2.25\nb;1.5\nc;3.1\n"),
        ("1,5;Preis\n2.5;7\n", "1,5;Preis\n2.5;2.25\nc;3.1\n"),
        ("Name;Preis\na;7\n", "Name;Preis\na;2.25\nc;3.1\n"),
    ],
)
def test_a_number_has_the_decimal_separator_of_its_column(workspace: Path, call: Call, before: str, after: str) -> None:
    (workspace / "a.csv").write_text(before)
    call("write_cell", "a.csv", row=2, column=2, value=2.25)
    call("append_rows", "a.csv", rows=[["c", 3.1]])
    assert (workspace / "a.csv").read_text() == after


@pytest.mark.parametrize(
    ("cells", "numbers", "kept"),
    [
        (["1\u00a0234,50", "12\u202f000,00", "5,25", "2 000,75"], [1234.5, 12000, 5.25, 2000.75], []),
        (["1,234.56", "(1,200.00)", "300-", "1E5"], [1234.56, -1200, -300, 100000], []),
        (["1E5", "2E7"], ["1E5", "2E7"], ["1E5", "2E7"]),
        (["5.5", "1,23,456.00", "007", "n/a"], [5.5, "1,23,456.00", "007", "n/a"], ["1,23,456.00", "007"]),
        (["12 345 678", "170 123 456"], ["12 345 678", "170 123 456"], ["12 345 678", "170 123 456"]),
    ],
)
def test_numbers_of_all_forms_are_read_or_listed(
    workspace: Path, call: Call, cells: list[str], numbers: list, kept: list[str]
) -> None:
    (workspace / "a.csv").write_text("Name;Amount\n" + "".join(f"x;{cell}\n" for cell in cells))
    answer = call("read_table", "a.csv")
    assert [row[1] for row in answer["rows"]] == numbers
    assert [cell["text"] for cell in answer["kept_as_text"]] == kept


@pytest.mark.parametrize("named", ["sep=;", '"sep=;"', "SEP=;"])
def test_a_line_that_names_the_delimiter_is_no_row(
    workspace: Path, surface: DocumentSurface, call: Call, named: str
) -> None:
    (workspace / "a.csv").write_bytes(f"{named}\r\nA;B,C\r\n1,5;2,5\r\n".encode())
    found = call("read_table", "a.csv")
    assert (found["header"], found["rows"]) == (["A", "B,C"], [[1.5, 2.5]])
    call("append_rows", "a.csv", rows=[["x", 3.5]])
    call("write_cell", "a.csv", row=1, column=1, value="Z")
    assert (workspace / "a.csv").read_bytes() == f"{named}\r\nZ;B,C\r\n1,5;2,5\r\nx;3,5\r\n".encode()
    seen = surface.observe(window(surface, "a.csv"))
    assert (seen.window["rows"], seen.window["delimiter"], seen.text.splitlines()[0]) == (3, ";", "Z | B,C")
    assert call("read_table", "a.csv", delimiter=",")["header"] == ["Z;B", "C", ""]


def test_a_first_line_that_names_no_delimiter_is_a_row(workspace: Path, call: Call) -> None:
    (workspace / "a.csv").write_text("sep=b;c\n1;2\n")
    assert call("read_table", "a.csv")["header"] == ["sep=b", "c"]


def test_write_cell_uses_the_given_delimiter(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    (workspace / "a.csv").write_text("a;b;c,d\n1;;2,3\n")
    cell = {"row": 2, "column": 2, "value": "x"}
    assert surface.hazards(window(surface, "a.csv"), "write_cell", cell, []) == set()
    cell["delimiter"] = ","
    assert surface.hazards(window(surface, "a.csv"), "write_cell", cell, []) == {Hazard.OVERWRITES}
    call("write_cell", "a.csv", **cell)
    assert (workspace / "a.csv").read_text() == "a;b;c,d\n1;;2,x\n"


FORMULAS = ["=1+1", "@SUM(A1)", "+cmd|'/C calc'!A0", "-2+3+cmd", "\t=1", "=HYPERLINK(1)"]
HIDDEN_FORMULAS = ["\ufeff=1+1", "\u200b\u2060@SUM(A1)", "\uff1d1+1", "\u200b\uff0bcmd", "\ufe63cmd", "\uff20SUM(A1)"]


@pytest.mark.parametrize("value", [*FORMULAS, *HIDDEN_FORMULAS])
def test_no_formula_is_written_into_a_csv(call: Call, workspace: Path, value: str) -> None:
    call("create_document", path="a.csv")
    with pytest.raises(ToolError, match="formula"):
        call("append_rows", "a.csv", rows=[[value]])
    call("append_rows", "a.csv", rows=[["-5,3 %"], ["+49 (0)170 123"]])
    assert (workspace / "a.csv").read_bytes().count(b"\n") == 2


def test_rows_are_not_appended_to_a_cell_that_is_left_open(workspace: Path, call: Call) -> None:
    (workspace / "a.csv").write_bytes(b'a,b\nc,"d\n')
    with pytest.raises(ToolError, match="row 2 lacks a closing quotation mark: write its last cell again"):
        call("append_rows", "a.csv", rows=[["e", "f"]])
    call("write_cell", "a.csv", row=2, column=2, value="d")
    call("append_rows", "a.csv", rows=[["e", "f"]])
    assert (workspace / "a.csv").read_bytes() == b"a,b\nc,d\ne,f\n"
    (workspace / "b.csv").write_bytes(b'a,b\nc,"d\ng,h\ni,j\n')
    with pytest.raises(ToolError, match="holds all lines from 2 to 4; a person has to repair the file"):
        call("append_rows", "b.csv", rows=[["e", "f"]])


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inside", ["\n", "\r\n", "\r"])
def test_a_cell_of_several_lines_is_quoted(workspace: Path, call: Call, ends: str, inside: str) -> None:
    (workspace / "a.csv").write_bytes(f'a,b{ends}"c{inside}d",e{ends}'.encode())
    call("write_cell", "a.csv", row=2, column=2, value="f")
    call("append_rows", "a.csv", rows=[["g\nh", "i"]])
    with (workspace / "a.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], [f"c{inside}d", "f"], ["g\nh", "i"]]
    written = f'a,b{ends}"c{inside}d",f{ends}"g\nh",i{ends}'
    assert (workspace / "a.csv").read_bytes() == written.encode()


def test_each_row_of_a_csv_keeps_its_line_break(workspace: Path, call: Call) -> None:
    (workspace / "a.csv").write_bytes(b"a\nb\r\nc\nd")
    for row in (2, 3, 4):
        call("write_cell", "a.csv", row=row, column=1, value=row)
    assert (workspace / "a.csv").read_bytes() == b"a\n2\r\n3\n4"
    call("append_rows", "a.csv", rows=[["e"]])
    assert (workspace / "a.csv").read_bytes() == b"a\n2\r\n3\n4\ne\n"


def test_new_csv_starts_with_a_utf_8_mark(workspace: Path, call: Call) -> None:
    call("create_document", path="a.csv")
    call("append_rows", "a.csv", rows=[["Jörg"]])
    assert (workspace / "a.csv").read_bytes() == "Jörg\n".encode("utf-8-sig")
    assert call("read_table", "a.csv")["header"] == ["Jörg"]


def test_an_appended_text_leaves_mixed_line_breaks_as_they_are(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_bytes(b"a\nb\r\nc\r\rd\re")
    assert call("write_text", "a.txt", text="f\ng") == {"characters": 14}
    assert (workspace / "a.txt").read_bytes() == b"a\nb\r\nc\r\rd\re\rf\rg"
    assert call("replace_text", "a.txt", find_text="a\nb\nc\n\nd", new_text="g") == {"replaced": 1}
    assert (workspace / "a.txt").read_bytes() == b"g\re\rf\rg"
    with pytest.raises(ToolError, match="does not occur"):
        call("replace_text", "a.txt", find_text="g\n\ne", new_text="g")
    (workspace / "b.txt").write_bytes(b"a\rb")
    call("write_text", "b.txt", text="c")
    assert (workspace / "b.txt").read_bytes() == b"a\rb\rc"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_text_keeps_its_encoding_and_line_breaks(workspace: Path, call: Call, encoding: str) -> None:
    (workspace / "a.txt").write_bytes("Grüße\r\nAda".encode(encoding))
    assert call("read_text", "a.txt")["text"] == "Grüße\nAda"
    call("write_text", "a.txt", text="more\nlines")
    call("replace_text", "a.txt", find_text="ada", new_text=r"Bob\1", match_case=False)
    assert (workspace / "a.txt").read_bytes() == "Grüße\r\nBob\\1\r\nmore\r\nlines".encode(encoding)
    call("write_text", "a.txt", text="new", append=False)
    assert call("read_text", "a.txt")["text"] == "new"


def test_write_text_refuses_binary_files_and_replacing_is_a_hazard(
    workspace: Path, surface: DocumentSurface, call: Call
) -> None:
    (workspace / "a.txt").write_bytes(b"\0\1")
    with pytest.raises(ToolError, match="not a text"):
        call("write_text", "a.txt", text="x")
    target = window(surface, "a.txt")
    assert surface.hazards(target, "write_text", {"text": "x", "append": False}, []) == {Hazard.OVERWRITES}
    assert surface.hazards(target, "write_text", {"text": "x"}, []) == set()


# Pictures


def test_a_picture_has_a_size_and_is_converted(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    Image.new("RGBA", (40, 20), (255, 0, 0, 0)).save(workspace / "a.png")
    assert surface.observe(window(surface, "a.png")).window["width"] == 40
    call("save_as", "a.png", path="b.jpg", width=20)
    with Image.open(workspace / "b.jpg") as made:
        assert (made.size, made.format) == ((20, 10), "JPEG")
        assert min(made.getpixel((3, 3))) > 250  # transparent parts are white
    for suffix in ("gif", "bmp", "tiff", "webp", "png"):
        call("save_as", "b.jpg", path=f"c.{suffix}")
        with Image.open(workspace / f"c.{suffix}") as made:
            assert made.size == (20, 10)
    with pytest.raises(ToolError, match="too many"):
        call("save_as", "a.png", path="huge.png", width=20_000, height=20_000)


@pytest.mark.parametrize(
    ("suffix", "orientation"), [("jpg", 1), ("jpg", 3), ("jpg", 5), ("jpg", 8), ("png", 6), ("tif", 6), ("webp", 6)]
)
def test_a_turned_photo_keeps_its_proportions(
    workspace: Path, surface: DocumentSurface, call: Call, suffix: str, orientation: int
) -> None:
    name, mark = f"a.{suffix}", Image.Exif()
    mark[0x0112] = orientation
    Image.new("RGB", (40, 20), "blue").save(workspace / name, exif=mark)
    upright = (40, 20) if orientation < 5 else (20, 40)
    seen = surface.observe(window(surface, name)).window
    assert (seen["width"], seen["height"]) == upright
    call("save_as", name, path="b.bmp", width=10)
    with Image.open(workspace / "b.bmp") as made:
        assert made.size == ((10, 5) if orientation < 5 else (10, 20))


@pytest.mark.parametrize("mode", ["I;16", "I"])
@pytest.mark.parametrize("path", ["b.jpg", "b.png", "b.webp"])
def test_a_picture_with_16_bits_keeps_its_levels(workspace: Path, call: Call, mode: str, path: str) -> None:
    Image.new(mode, (40, 20), 0x8080).save(workspace / "a.tif")
    call("save_as", "a.tif", path=path, width=20)
    with Image.open(workspace / path) as made:
        assert made.convert("L").getpixel((3, 3)) in range(127, 130)


def test_a_picture_without_a_fixed_white_is_not_converted(workspace: Path, call: Call) -> None:
    Image.new("F", (40, 20), 0.5).save(workspace / "a.tif")
    with pytest.raises(ToolError, match="no fixed black and white"):
        call("save_as", "a.tif", path="b.png")


def test_a_huge_or_false_picture_is_refused(workspace: Path, surface: DocumentSurface) -> None:
    made = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(made, "PNG")
    false = r"damaged, or not what its name says \(no picture in PNG, .*, WEBP\)"
    for data, why in ((made.getvalue(), "more than"), (b"%!PS-Adobe-3.0 EPSF-3.0\n", false), (b"", false)):
        (workspace / "a.png").write_bytes(data)
        with pytest.raises(ToolError, match=why):
            surface.observe(window(surface, "a.png"))


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_text_in_a_picture_is_read(workspace: Path, call: Call) -> None:
    picture = Image.new("RGB", (600, 120), "white")
    pytest.importorskip("PIL.ImageDraw").Draw(picture).text((20, 20), "Invoice 4711", fill="black", font_size=60)
    picture.save(workspace / "a.png")
    assert "4711" in call("read_text", "a.png")["text"]
    with pytest.raises(ToolError, match="tesseract failed"):
        call("read_text", "a.png", language="xxx")


def test_each_kind_of_file_is_a_window(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    for name in ("a.csv", "b.eml", "c.ics", "d.txt", "e.md"):
        call("create_document", path=name)
    windows = {each.id: each.address for each in surface.targets() if each.kind is TargetKind.WINDOW}
    assert list(windows.values()) == [
        "app/csv/a.csv", "app/mail/b.eml", "app/calendar/c.ics", "app/text/d.txt", "app/text/e.md",
    ]  # fmt: skip
    for name in windows:
        surface.observe(window(surface, name))
    with pytest.raises(ToolError, match="can't be made empty"):
        call("create_document", path="f.pdf")


@pytest.mark.parametrize(
    ("name", "parser"),
    [
        ("a.csv", "_csv.check_cells"),
        ("a.eml", "mail._mail_tools._parse_message"),
        ("a.ics", "calendar._calendar_tools._rows"),
    ],
)
def test_an_observation_parses_a_file_once(
    surface: DocumentSurface, call: Call, monkeypatch, name: str, parser: str
) -> None:
    call("create_document", path=name)
    place, parsed = f"callboard.surfaces.documents.{parser}", []
    module, function = place.rsplit(".", 1)
    real = getattr(importlib.import_module(module), function)
    monkeypatch.setattr(place, lambda *arguments: parsed.append(arguments) or real(*arguments))
    surface.observe(window(surface, name))
    assert len(parsed) == 1
