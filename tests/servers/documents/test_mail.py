"""Messages as a person sees them: formatted texts, invitations, headers, letters."""

from __future__ import annotations

from email.message import EmailMessage
from typing import TYPE_CHECKING

import pytest

from callboard.actors.servers import DocumentServer

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
def test_an_invitation_is_an_attachment(workspace: Path, server: DocumentServer, call: Call, wrapped: bool) -> None:
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
    window = next(target for target in server.targets() if target.id == "a.eml")
    control = server.observe(window).controls[0]
    assert (control.name, control.detail["type"]) == ("invite.ics", "text/calendar")
    call("save_as", "a.eml", path="invite.ics", control_id="attachment-1")
    assert call("read_table", "invite.ics")["rows"][0][2] == "2026-01-05T09:00:00+00:00"


def test_headers_for_an_answer_are_shown(workspace: Path, server: DocumentServer, call: Call) -> None:
    headers = {"Reply_To": "support@example.org", "Bcc": "eve@example.org", "Message_ID": "<77@x>"}
    answer = read(workspace, call, message("Please answer.", **headers))
    assert (answer["reply-to"], answer["bcc"], answer["message-id"]) == (
        "support@example.org",
        "eve@example.org",
        "<77@x>",
    )
    window = next(target for target in server.targets() if target.id == "a.eml")
    assert "reply-to: support@example.org" in server.observe(window).text
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


def test_headers_in_8_bit_are_read(workspace: Path, server: DocumentServer, call: Call) -> None:
    name = b'Content-Type: application/pdf\r\nContent-Disposition: attachment; filename="Gr\xfc\xdfe.pdf"\r\n\r\n%PDF'
    answer = read(workspace, call, b"From: J\xf6rg <a@b.c>\r\nSubject: Angebot f\xfcr M\xfcller\r\n" + name)
    assert (answer["from"], answer["subject"]) == ("Jörg <a@b.c>", "Angebot für Müller")
    assert answer["attachments"] == ["Grüße.pdf"]
    window = next(target for target in server.targets() if target.id == "a.eml")
    assert "Angebot für Müller" in server.observe(window).text
