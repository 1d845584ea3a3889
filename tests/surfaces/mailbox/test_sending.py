"""Messages are sent as they were approved: to these people, from this address, once."""

from __future__ import annotations

import email
import hashlib
import re
from email import policy
from typing import TYPE_CHECKING, Any

import pytest
from smtp_sink import SmtpSink, smtp_sink

from callboard.messages import Hazard, LeaseVoidError
from callboard.surfaces import InDoubtError, ToolError

if TYPE_CHECKING:
    from email.message import EmailMessage
    from pathlib import Path


NEW = {"to": ["bob@example.org"], "subject": "The report", "text": "It is done."}


def sent(sink: tuple[SmtpSink, int]) -> EmailMessage:
    (envelope,) = sink[0].mails
    return email.message_from_bytes(envelope.content.replace(b"\r\n", b"\n"), policy=policy.default)


def test_message_goes_to_all_recipients_and_hides_bcc(outbox, sink, workspace):
    (workspace / "report.pdf").write_bytes(b"%PDF-1.4 figures")
    answer = outbox(
        "send_message",
        to=["Bob Ünger <bob@example.org>"],
        cc=["carol@example.org"],
        bcc=["dan@example.org"],
        subject="Zahlen für März",
        text="Dear Bob,\n.a line with a dot\nGrüße",
        attachments=["report.pdf"],
    )
    message = sent(sink)
    assert sink[0].mails[0].rcpt_tos == ["bob@example.org", "carol@example.org", "dan@example.org"]
    assert sink[0].mails[0].mail_from == "ada@example.org"
    assert message["From"] == "Ada Lovelace <ada@example.org>"
    assert message["To"].addresses[0].display_name == "Bob Ünger"
    assert (message["Cc"], message["Subject"]) == ("carol@example.org", "Zahlen für März")
    assert b"dan@example.org" not in sink[0].mails[0].content
    assert message.get_body(("plain",)).get_content() == "Dear Bob,\n.a line with a dot\nGrüße\n"
    (part,) = message.iter_attachments()
    assert (part.get_filename(), part.get_content()) == ("report.pdf", b"%PDF-1.4 figures")
    assert answer["message_id"] == message["Message-ID"]
    assert answer["recipients"] == sink[0].mails[0].rcpt_tos


def test_html_is_sent_beside_the_text(outbox, sink):
    outbox("send_message", **NEW | {"html": "<p>It is <b>done</b>.</p>"})
    message = sent(sink)
    assert message.get_content_type() == "multipart/alternative"
    assert message.get_body(("html",)).get_content() == "<p>It is <b>done</b>.</p>\n"
    assert message.get_body(("plain",)).get_content() == "It is done.\n"


@pytest.mark.parametrize("line_break", ["\r\n", "\n", "\r", "\x85", "\u2028", "=?utf-8?q?=0ABcc:_eve=40example.org?= "])
@pytest.mark.parametrize("part", ["to", "cc", "bcc", "subject"])
def test_line_break_in_a_header_is_refused(outbox, sink, part, line_break):
    text = f"Bob{line_break}Bcc: eve@example.org"
    value: Any = text if part == "subject" else [f'"{text}" <bob@example.org>']
    with pytest.raises(ToolError):
        outbox("send_message", **NEW | {part: value})
    assert sink[0].mails == []


@pytest.mark.parametrize(
    "address", ["bob", "bob@example.org, eve@example.org", "bob@example.org> <eve@example.org", '"b@c"@example.org', ""]
)
def test_text_that_is_not_one_address_is_refused(outbox, sink, address):
    with pytest.raises(ToolError, match="address"):
        outbox("send_message", **NEW | {"to": [address]})
    assert sink[0].mails == []


def test_one_refused_recipient_stops_the_message(outbox, sink):
    with pytest.raises(ToolError, match=r"refuses refused@example.org \(550 .*it accepts: bob@example.org"):
        outbox("send_message", **NEW | {"to": ["bob@example.org", "refused@example.org"]})
    assert sink[0].mails == []


def test_message_that_the_server_refuses_is_not_in_doubt(outbox, sink):
    sink[0].ends = "refuse"
    with pytest.raises(ToolError, match=r"nothing was sent.*spam") as caught:
        outbox("send_message", **NEW)
    assert not isinstance(caught.value, InDoubtError)


def test_lost_connection_after_the_message_is_in_doubt(outbox, sink):
    sink[0].ends = "drop"
    with pytest.raises(InDoubtError, match="in doubt"):
        outbox("send_message", **NEW)
    assert len(sink[0].mails) == 1


def test_call_that_is_void_before_the_end_is_known_not_to_have_sent(outbox, sink, monkeypatch):
    def refuse() -> None:
        raise LeaseVoidError

    monkeypatch.setattr("callboard.surfaces.mailbox._send_tools.committing", refuse)
    with pytest.raises(LeaseVoidError):
        outbox("send_message", **NEW)
    (message,) = outbox.surface._account("office").record._messages.values()
    assert message["state"] == "refused"
    assert sink[0].mails == []


def test_server_that_does_not_answer_ends_in_doubt(mailbox, sink):
    sink[0].ends = "wait"
    slow = mailbox(smtp={"host": "127.0.0.1", "port": sink[1], "tls": "none"}, timeout=0.2)
    with pytest.raises(InDoubtError, match="in doubt"):
        slow("send_message", **NEW)
    assert len(sink[0].mails) == 1


def test_size_limits_of_settings_and_server_hold(mailbox, sink, workspace):
    (workspace / "big.txt").write_bytes(b"x" * 5_000)
    small = mailbox(smtp={"host": "127.0.0.1", "port": sink[1], "tls": "none", "max_bytes": 4_000})
    with pytest.raises(ToolError, match="max_bytes"):
        small("send_message", **NEW | {"attachments": ["big.txt"]})
    with pytest.raises(ToolError, match="max_bytes"):
        small("send_message", **NEW | {"text": "y" * 5_000})
    with smtp_sink(data_size_limit=3_000) as (other, port):
        box = mailbox(smtp={"host": "127.0.0.1", "port": port, "tls": "none"})
        with pytest.raises(ToolError, match="takes 3,000"):
            box("send_message", **NEW | {"text": "y" * 5_000})
    assert sink[0].mails == other.mails == []


def test_number_of_recipients_is_limited(mailbox, sink):
    box = mailbox(smtp={"host": "127.0.0.1", "port": sink[1], "tls": "none", "max_recipients": 2})
    with pytest.raises(ToolError, match="3 recipients; 1 to 2"):
        box("send_message", **NEW | {"to": [f"{n}@example.org" for n in range(3)]})


def unsafe(folder: Path) -> dict[str, str]:
    """Make files that must not be sent; return their names."""
    secret = folder.parent / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    (folder / "link.txt").symlink_to(secret)
    (folder / "hard.txt").hardlink_to(secret)
    (folder / "folder.txt").mkdir()
    (folder / ".hidden.txt").write_text("hidden", encoding="utf-8")
    return {
        "up": "../secret.txt",
        "absolute": str(secret),
        "link": "link.txt",
        "hard link": "hard.txt",
        "folder": "folder.txt",
        "hidden": ".hidden.txt",
        "missing": "none.txt",
    }


@pytest.mark.parametrize("kind", ["up", "absolute", "link", "hard link", "folder", "hidden", "missing"])
def test_attachments_come_from_the_workspace_alone(outbox, sink, workspace, kind):
    with pytest.raises(ToolError):
        outbox("send_message", **NEW | {"attachments": [unsafe(workspace)[kind]]})
    assert sink[0].mails == []


def test_approval_shows_recipients_subject_and_files(outbox, workspace):
    (workspace / "a.bin").write_bytes(b"12345")
    arguments = outbox.arguments("send_message", **NEW | {"cc": ["C <Carol@Example.org>"], "attachments": ["a.bin"]})
    digest = hashlib.sha256(b"12345").hexdigest()[:16]
    shown = outbox.surface.recipient(outbox.target, "send_message", arguments)
    assert shown == (
        f"bob@example.org; cc Carol@Example.org; subject 'The report'; attached: a.bin (5 bytes, SHA-256 {digest})"
    )
    names = outbox.surface.resources(outbox.target, "send_message", arguments)
    assert names == ("mailto:bob@example.org", "mailto:carol@example.org", f"file:{workspace / 'a.bin'}")
    tool = next(entry for entry in outbox.surface.tools() if entry.name == "send_message")
    assert tool.hazards == {Hazard.SENDS}


def test_changed_attachment_changes_what_was_approved(outbox, workspace):
    arguments = outbox.arguments("send_message", **NEW | {"attachments": ["a.bin"]})
    shown = []
    for data in (b"12345", b"54321"):
        (workspace / "a.bin").write_bytes(data)
        shown.append(outbox.surface.recipient(outbox.target, "send_message", arguments))
    assert shown[0] != shown[1]


def test_call_that_would_be_refused_names_no_recipients(outbox):
    arguments = outbox.arguments("send_message", **NEW | {"to": ["nobody"]})
    assert "unknown recipients" in outbox.surface.recipient(outbox.target, "send_message", arguments)


@pytest.mark.parametrize("implicit", [True, False], ids=["implicit", "starttls"])
def test_login_over_tls_with_a_checked_certificate(mailbox, certificate, authority, implicit):
    with smtp_sink(certificate=certificate, implicit=implicit, login=True) as (sink, port):
        tls = "implicit" if implicit else "starttls"
        server = {"host": "localhost", "port": port, "tls": tls, "secret": "mail"}
        mailbox(smtp=server, ca=authority.path)("send_message", **NEW)
        assert (len(sink.mails), sink.logins) == (1, ["PLAIN"])
        with pytest.raises(ToolError, match="no valid certificate"):
            mailbox(smtp=server)("send_message", **NEW | {"text": "again"})
        wrong_name = mailbox(smtp={**server, "host": "127.0.0.2"}, ca=authority.path)
        with pytest.raises(ToolError, match=r"certificate|can't be used"):
            wrong_name("send_message", **NEW | {"text": "again"})
        with pytest.raises(ToolError, match=r"refuses the login of ada@example.org.*535") as caught:
            mailbox(smtp={**server, "secret": "token"}, ca=authority.path)("send_message", **NEW | {"text": "again"})
        assert "a-token" not in str(caught.value)
        assert len(sink.mails) == 1


def test_login_with_a_token(mailbox, certificate, authority):
    with smtp_sink(certificate=certificate, implicit=True, login=True) as (sink, port):
        server = {"host": "localhost", "port": port, "secret": "token", "auth": "xoauth2"}
        mailbox(smtp=server, ca=authority.path)("send_message", **NEW)
        assert (len(sink.mails), sink.logins) == (1, ["XOAUTH2"])
        with pytest.raises(ToolError, match="refuses the login"):
            mailbox(smtp={**server, "secret": "mail"}, ca=authority.path)("send_message", **NEW | {"text": "again"})


def test_starttls_can_not_be_stripped(mailbox, sink):
    server = {"host": "localhost", "port": sink[1], "tls": "starttls", "secret": "mail"}
    with pytest.raises(ToolError, match="STARTTLS"):
        mailbox(smtp=server)("send_message", **NEW)
    assert sink[0].mails == []
    assert sink[0].logins == []


def test_message_id_is_that_of_the_call_and_the_journal(mailbox, tmp_path):
    box = mailbox(smtp={"host": "localhost", "tls": "none"})
    account = box.surface._account("office")
    again = mailbox(smtp={"host": "localhost", "tls": "none"}).surface._account("office")
    assert re.fullmatch(r"<[0-9a-f]{40}@example\.org>", account.message_id("t.1.1"))
    assert account.message_id("t.1.1") == again.message_id("t.1.1") != account.message_id("t.1.2")
    again.salt = "another journal"
    assert account.message_id("t.1.1") != again.message_id("t.1.1")
