"""Messages as a person sees them: formatted texts, invitations, headers, letters."""

from __future__ import annotations

import email
from email import policy
from email.message import EmailMessage
from typing import TYPE_CHECKING

import pytest

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call


def message(plain: str | None = None, formatted: str | None = None, **headers: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in {"From": "a@example.org", "To": "b@example.org", **headers}.items():
        made[name.replace("_", "-")] = value
    if plain is not None:
        made.set_content(plain)
    if formatted is not None:
        (made.add_alternative if plain is not None else made.set_content)(formatted, subtype="html")
    return made


def read(workspace: Path, call: Call, data: EmailMessage | bytes) -> dict:
    (workspace / "a.eml").write_bytes(data if isinstance(data, bytes) else data.as_bytes())
    return call("read_text", "a.eml")


@pytest.mark.parametrize(
    ("plain", "formatted", "text"),
    [
        ("Your program can't show HTML.", "<p>Total: <b>250 EUR</b></p>", ["can't show", "250 EUR"]),
        ("Total", "<p>Total: <b>250 EUR</b></p>", ["250 EUR"]),
        ("", "<img alt='Sale 50 %' src='x.png'>", ["[picture: Sale 50 %]"]),
    ],
)
def test_a_formatted_text_is_read_beside_a_stub(
    workspace: Path, call: Call, plain: str, formatted: str, text: list[str]
) -> None:
    answer = read(workspace, call, message(plain, formatted))
    assert all(part in answer["text"] for part in text)


def test_a_text_that_has_both_forms_is_read_once(workspace: Path, call: Call) -> None:
    answer = read(workspace, call, message("Hello *Ada*\n", "<p>Hello <b>Ada</b></p>"))
    assert answer["text"] == "Hello *Ada*\n"


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_invitation_is_an_attachment(workspace: Path, surface: DocumentSurface, call: Call, wrapped: bool) -> None:
    pytest.importorskip("icalendar")
    event = "BEGIN:VEVENT\r\nUID:1\r\nDTSTART:20260105T090000Z\r\nSUMMARY:Review\r\nEND:VEVENT\r\n"
    data = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\n{event}END:VCALENDAR\r\n"
    invitation = message("You are invited.", Subject="Review")
    if wrapped:
        invitation.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="agenda.pdf")
        invitation.get_payload()[0].add_alternative(data, subtype="calendar", params={"method": "REQUEST"})
    else:
        invitation.add_alternative(data, subtype="calendar", params={"method": "REQUEST"})
    names = ["invite.ics", "agenda.pdf"] if wrapped else ["invite.ics"]
    assert read(workspace, call, invitation)["attachments"] == names
    window = next(target for target in surface.targets() if target.id == "a.eml")
    control = surface.observe(window).controls[0]
    assert (control.name, control.detail["type"]) == ("invite.ics", "text/calendar")
    call("save_as", "a.eml", path="invite.ics", control_id="attachment-1")
    assert call("read_table", "invite.ics")["rows"][0][2] == "2026-01-05T09:00:00+00:00"


def test_headers_for_an_answer_are_shown(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    headers = {"Reply_To": "support@example.org", "Bcc": "eve@example.org", "Message_ID": "<77@x>"}
    answer = read(workspace, call, message("Please answer.", **headers))
    assert (answer["reply-to"], answer["bcc"], answer["message-id"]) == (
        "support@example.org",
        "eve@example.org",
        "<77@x>",
    )
    window = next(target for target in surface.targets() if target.id == "a.eml")
    assert "reply-to: support@example.org" in surface.observe(window).text
    assert "reply-to" not in read(workspace, call, message("x"))


def test_each_text_of_a_message_is_read(workspace: Path, call: Call) -> None:
    part = b"--B\r\nContent-Type: text/plain\r\n\r\n%s\r\n"
    picture = b"--B\r\nContent-Type: image/png\r\nContent-Disposition: inline; filename=a.png\r\n\r\nPNG\r\n"
    head = b"From: a@b.c\r\nContent-Type: multipart/mixed; boundary=B\r\n\r\n"
    answer = read(workspace, call, head + part % b"above" + picture + part % b"below" + b"--B--\r\n")
    assert (answer["text"].split(), answer["attachments"]) == (["above", "below"], ["a.png"])


def test_a_message_that_is_a_file_has_an_attachment(workspace: Path, call: Call) -> None:
    data = b"From: a@b.c\r\nContent-Type: application/pdf; name=bill.pdf\r\n\r\n%PDF"
    assert read(workspace, call, data)["attachments"] == ["bill.pdf"]


HEAD = b"From: a@example.org\r\nMIME-Version: 1.0\r\nContent-Transfer-Encoding: 8bit\r\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\r\nSch\xf6ne Gr\xfc\xdfe", "Schöne Grüße"),
        ("\r\nŘehoř, Žďár".encode("cp1250"), "Řehoř, Žďár"),
        (b"Content-Type: text/html\r\n\r\n<meta charset='iso-8859-1'>Gr\xfc\xdfe", "Grüße"),
        (b"Content-Type: text/plain; charset=iso-8859-1\r\n\r\n5 \x80 \x93x\x94", "5 € “x”"),
        (b"Content-Type: text/plain; charset=utf-8\r\n\r\nGr\xfc\xdfe", "Grüße"),
        (b"Content-Type: text/plain; charset=x-unknown\r\n\r\nGr\xfc\xdfe", "Grüße"),
        ("Content-Type: text/plain; charset=gb2312\r\n\r\n朱镕基".encode("gb18030"), "朱镕基"),
    ],
)
def test_a_text_is_read_in_the_encoding_that_fits(workspace: Path, call: Call, data: bytes, text: str) -> None:
    pytest.importorskip("charset_normalizer")
    assert read(workspace, call, HEAD + data)["text"] == text


def test_a_guessed_encoding_of_a_message_is_named(workspace: Path, call: Call) -> None:
    assert read(workspace, call, HEAD + b"\r\nGr\xfc\xdfe")["encoding"] == "cp1252 (a guess)"
    assert "encoding" not in read(workspace, call, message("Grüße"))


def test_headers_in_8_bit_are_read(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    name = b'Content-Type: application/pdf\r\nContent-Disposition: attachment; filename="Gr\xfc\xdfe.pdf"\r\n\r\n%PDF'
    answer = read(workspace, call, b"From: J\xf6rg <a@b.c>\r\nSubject: Angebot f\xfcr M\xfcller\r\n" + name)
    assert (answer["from"], answer["subject"]) == ("Jörg <a@b.c>", "Angebot für Müller")
    assert answer["attachments"] == ["Grüße.pdf"]
    window = next(target for target in surface.targets() if target.id == "a.eml")
    assert "Angebot für Müller" in surface.observe(window).text


LINES = "From: a@example.org\nTo: b@example.org\nSubject: S\nMIME-Version: 1.0\n"
FLOWED = "See https://example.org/a \nbc.\n From here\n> one \n> two\n-- \nAda\n"


def raw(kind: str, body: str | bytes, before: str = "") -> bytes:
    body = body.encode() if isinstance(body, str) else body
    head = f"{before}{LINES}Content-Type: {kind}\nContent-Transfer-Encoding: 8bit\n\n"
    return head.encode() + body


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/html", "<html><head><title>t</title><body><p>Pay 250", "Pay 250"),
        ("text/html", "<div>one</div>two<h4>Total</h4>250<ul><li>a<li>b</ul>c", "one\ntwo\nTotal\n250\na\nb\nc"),
        ("text/html", "<table><tr><td>a</td><td><p>b</p></td></tr><tr><td>c</td></tr></table>d", "a\tb\nc\n\nd"),
        ("text/html", "Was <s>100</s> 80<ol start=3><li>x</li><li>y</ol>", "Was ~~100~~ 80\n3. x\n4. y"),
        ("text/html", "<input type=checkbox checked> yes <input type=radio> no", "☒ yes ☐ no"),
        (
            "text/plain; format=flowed; delsp=yes",
            FLOWED,
            "See https://example.org/abc.\nFrom here\n> onetwo\n-- \nAda\n",
        ),
        ("text/plain; format=flowed", "One \nline.\nNext\n", "One line.\nNext\n"),
        ("text/plain; charset=iso-8859-1", "Grüße, 5 €", "Grüße, 5 €"),
        ("text/plain; charset=windows-874", "สวัสดี".encode("cp874"), "สวัสดี"),
        ("text/plain; charset=iso-8859-8-i", "שלום".encode("iso-8859-8"), "שלום"),
    ],
)
def test_a_text_is_read_as_a_person_sees_it(
    workspace: Path, call: Call, kind: str, body: str | bytes, text: str
) -> None:
    for before in ("", "\ufeff", "\n"):
        answer = read(workspace, call, raw(kind, body, before))
        assert (answer["from"], answer["text"]) == ("a@example.org", text)


@pytest.mark.parametrize(
    ("kind", "body", "unseen"),
    [
        ("application/pkcs7-mime; name=smime.p7m", "MIAG", "encrypted or signed message"),
        ("multipart/encrypted; boundary=b", "--b\nContent-Type: application/octet-stream\n\nx\n--b--\n", "encrypted"),
        ("application/ms-tnef; name=winmail.dat", "eJ8", "winmail.dat"),
        ("multipart/mixed; boundary=z", "--b\n\nPay 250\n--b--\n", "a damaged message"),
        ("multipart/mixed", "Pay 250\n", "a damaged message"),
    ],
)
def test_parts_that_cannot_be_read_are_named(workspace: Path, call: Call, kind: str, body: str, unseen: str) -> None:
    answer = read(workspace, call, raw(kind, body))
    assert unseen in answer["not_shown"]
    assert ("250" in answer["text"]) == ("250" in body)


def test_targets_of_links_are_listed(workspace: Path, call: Call) -> None:
    body = "<a href='https://a.example/pay'>Pay <b>here</b></a> <a href='https://b.example'>https://b.example</a>"
    answer = read(workspace, call, raw("text/html", body))
    assert answer["links"] == ["Pay here: https://a.example/pay"]
    answer = read(workspace, call, message("Hi", List_Unsubscribe="<https://u.example>", Resent_To="c@example.org"))
    assert (answer["list-unsubscribe"], answer["resent-to"]) == ("<https://u.example>", "c@example.org")


# All that an edit does not concern stays

PARTS = (
    b"Received: from a\n by b;\n\tMon, 1 Jan 2024\nsubject:  =?utf-8?q?old?=\nFrom: a@example.org\nX-Odd:no space\n"
    b"To: b@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed;\n boundary=x\n\npreamble\n--x\n\ntext\n"
    b"--x\nContent-Type: application/octet-stream\nContent-Disposition:attachment; filename=a.bin\n"
    b"Content-Transfer-Encoding: binary\n\n\x00\xff\n\n--y\n--x--\nepilogue without an end"
)

ILLEGAL = b"Subject: old\nContent-Type: multipart/mixed; boundary=x y\n\n--x y\nA: b\n\ntext\n--x y--\n"
"""A boundary that Python's parsers take differently."""


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_new_headers_leave_all_other_bytes(workspace: Path, call: Call, end: bytes) -> None:
    path = workspace / "a.eml"
    before = PARTS.replace(b"\n", end)
    path.write_bytes(before)
    call("write_message", "a.eml", subject="new", cc=["c@example.org"])
    after = before.replace(b"subject:  =?utf-8?q?old?=", b"Subject: new")
    assert path.read_bytes() == after.replace(end * 2, end + b"Cc: c@example.org" + end * 2, 1)
    call("write_message", "a.eml", cc=[])
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"From: a@example.org", b"From: a@example.org\r\nSubject: new\r\n\r\n"),
        (b"From: a@example.org\n\n", b"From: a@example.org\nSubject: new\n\n"),
        (b"From: a@example.org\nno header\n", b"From: a@example.org\nSubject: new\nno header\n"),
        (ILLEGAL, ILLEGAL.replace(b"Subject: old", b"Subject: new")),
        (b"no header\nat all", b"Subject: new\n\nno header\nat all"),
        (b"Subject: a\nTo: b@c.de\nSubject: b\n\n", b"Subject: new\nTo: b@c.de\n\n"),
    ],
)
def test_headers_of_incomplete_messages_are_written(workspace: Path, call: Call, before: bytes, after: bytes) -> None:
    (workspace / "a.eml").write_bytes(before)
    call("write_message", "a.eml", subject="new")
    assert (workspace / "a.eml").read_bytes() == after


def test_new_text_leaves_the_bytes_of_a_binary_attachment(workspace: Path, call: Call) -> None:
    (workspace / "a.eml").write_bytes(PARTS)
    call("write_message", "a.eml", text="new")
    data = (workspace / "a.eml").read_bytes()
    assert b"\n\n\x00\xff\n\n--y\n--x--" in data
    assert (b"\r" in data, b"\nnew\n" in data) == (False, True)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"Content-Type: application/gzip\n\nH4sI", "holds only an attachment and no text"),
        (b"Content-Disposition: attachment; filename=a.txt\n\nkept", "holds only an attachment and no text"),
        (b"Content-Type: multipart/mixed; boundary=x\n\n", "several parts, but none can be read"),
        (b"Content-Type: multipart/mixed; boundary=x y\n\n--x y\n\ntext\n--x y--\n", "but none can be read"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), r"Outlook \(\.msg\), despite its name; save it as \.eml"),
    ],
)
def test_a_text_that_can_not_be_written_is_refused(workspace: Path, call: Call, data: bytes, reason: str) -> None:
    (workspace / "a.eml").write_bytes(data)
    with pytest.raises(ToolError, match=reason):
        call("write_message", "a.eml", text="new")
    assert (workspace / "a.eml").read_bytes() == data


def test_formatted_text_is_written_beside_the_plain_one(workspace: Path, call: Call) -> None:
    (workspace / "table.csv").write_text("1,2\n", encoding="utf-8")
    for name, before in {"a.eml": message("old"), "b.eml": message("old", "<p>old</p>")}.items():
        (workspace / name).write_bytes(before.as_bytes())
        call("write_message", name, text="Größe", html="<p><b>Größe</b></p>", attachments=["table.csv"])
        written = email.message_from_bytes((workspace / name).read_bytes(), policy=policy.default)
        assert written.get_content_type() == "multipart/mixed"
        assert written.get_body(("plain",)).get_content() == "Größe\n"
        assert written.get_body(("html",)).get_content() == "<p><b>Größe</b></p>\n"
        assert [part.get_filename() for part in written.iter_attachments()] == ["table.csv"]
    with pytest.raises(ToolError, match="has attachments"):
        call("write_message", "a.eml", text="new", html="<p>new</p>")
    with pytest.raises(ToolError, match="pass text"):
        call("write_message", "a.eml", html="<p>new</p>")
