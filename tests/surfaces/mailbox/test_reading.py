"""A mailbox is read without a trace, and answered in its threads."""

from __future__ import annotations

import email
import itertools
from email import policy
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

import pytest

from callboard.messages import Hazard
from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dovecot import Dovecot
    from smtp_sink import SmtpSink

NUMBERS = itertools.count()


def mail(subject: str = "Figures", text: str = "Please send the report.", **headers: str) -> EmailMessage:
    message = EmailMessage(policy=policy.SMTP)
    fields = {"From": "Bob <bob@example.org>", "To": "ada@example.org, Carol <carol@example.org>", "Subject": subject,
              "Date": "Mon, 02 Nov 2026 10:00:00 +0000", "Message-ID": "<first@example.org>"}  # fmt: skip
    for name, value in (fields | {key.replace("_", "-"): value for key, value in headers.items()}).items():
        message[name] = value
    message.set_content(text)
    return message


class Inbox:
    """A mailbox of a user of its own on the server."""

    def __init__(self, server: Dovecot, make: Callable[..., Any], sink: tuple[SmtpSink, int]) -> None:
        self.server, self._make, self._port = server, make, sink[1]
        self.user = f"user{next(NUMBERS)}"
        self.box = self.opened()

    def opened(self, smtp: Mapping[str, Any] = {}, **imap: Any) -> Any:
        section = {"host": "127.0.0.1", "port": self.server.port, "tls": "none", "user": self.user, "secret": "mail"}
        return self._make(
            smtp={"host": "127.0.0.1", "port": self._port, "tls": "none", **smtp}, imap={**section, **imap}
        )

    def deliver(self, *messages: EmailMessage | bytes, folder: str = "") -> None:
        for message in messages:
            data = message if isinstance(message, bytes) else message.as_bytes()
            self.server.deliver(self.user, data, folder=folder)

    def find(self, **criteria: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.box("find_messages", **criteria)["messages"]
        return rows

    def subjects(self, **criteria: Any) -> list[str]:
        return [row["subject"] for row in self.find(**criteria)]

    @property
    def newest(self) -> str:
        name: str = self.find()[0]["message"]
        return name


@pytest.fixture
def inbox(imap_server, mailbox, sink) -> Inbox:
    return Inbox(imap_server, mailbox, sink)


def test_messages_are_found_by_sender_subject_text_and_day(inbox):
    inbox.deliver(
        mail("Figures"),
        mail("Größe", "über alles", From="Zoë <zoe@example.org>"),
        mail('A "quoted" word \\', "nothing", Date="Fri, 06 Nov 2026 10:00:00 +0000"),
    )
    assert len(inbox.find()) == 3
    assert inbox.subjects(sender="bob@example.org") == ['A "quoted" word \\', "Figures"]
    assert inbox.subjects(sender="zoe", subject="größe", text="ÜBER") == ["Größe"]
    assert inbox.subjects(subject='"quoted" word \\') == ['A "quoted" word \\']
    assert inbox.subjects(text="report") == ["Figures"]
    assert inbox.subjects(subject="größe", sender="bob") == []
    assert inbox.subjects(recipient="carol", limit=1, skip=1) == ["Größe"]
    assert len(inbox.find(since="2026-01-01")) == 3
    assert inbox.find(before="2020-01-01") == []


def test_search_text_is_no_command(inbox):
    inbox.deliver(mail())
    for criterion in ("sender", "subject", "text"):
        assert inbox.find(**{criterion: 'x" OR ALL "'}) == inbox.find(**{criterion: "\\"}) == []
        with pytest.raises(ToolError, match="control character"):
            inbox.find(**{criterion: "x\r\nA1 DELETE INBOX"})
    for folder in ('x" "INBOX', "x\r\nA1 DELETE INBOX", "\\"):
        with pytest.raises(ToolError, match="no folder"):
            inbox.find(folder=folder)
    assert inbox.subjects() == ["Figures"]


def test_message_is_read_and_stays_unread(inbox, workspace):
    message = mail(text="Plain words.")
    message.add_alternative("<p>Plain words, and <a href='https://example.org/x'>a link</a></p>", subtype="html")
    message.add_attachment(b"a;b\r\n1;2\r\n", maintype="text", subtype="csv", filename="table.csv")
    inbox.deliver(message)
    name = inbox.newest
    answer = inbox.box("read_message", message=name)
    assert answer["from"] == "Bob <bob@example.org>"
    assert answer["text"] == "Plain words, and a link"
    assert answer["attachments"] == [{"name": "table.csv", "bytes": 10}]
    assert answer["links"] == ["a link: https://example.org/x"]
    saved = inbox.box("save_message", message=name, path="table.csv", attachment="table.csv")
    assert saved.id == "table.csv"
    assert (workspace / "table.csv").read_bytes() == b"a;b\r\n1;2\r\n"
    inbox.box("save_message", message=name, path="bob.eml")
    assert email.message_from_bytes((workspace / "bob.eml").read_bytes())["Subject"] == "Figures"
    assert inbox.find(unread=True)[0]["unread"]


def test_html_alone_is_read_as_text(inbox):
    message = mail()
    message.set_content("<p>Hello <b>Ada</b></p><script>alert(1)</script>", subtype="html")
    inbox.deliver(message)
    assert inbox.box("read_message", message=inbox.newest)["text"] == "Hello Ada"


def test_long_text_is_read_in_parts(inbox):
    inbox.deliver(mail(text="0123456789" * 100))
    part = inbox.box("read_message", message=inbox.newest, offset=985, limit=10)
    assert (part["text"], part["left_out"] > 0, part["characters"] >= 1000) == ("5678901234", True, True)


def test_folders_have_names_in_any_script(inbox):
    inbox.deliver(mail("In the folder"), folder=".Entw&APw-rfe &- mehr")
    assert {"INBOX", "Sent", "Entwürfe & mehr"} <= set(inbox.box("list_folders"))
    assert inbox.subjects(folder="Entwürfe & mehr") == ["In the folder"]
    with pytest.raises(ToolError, match="no folder 'Nothing'"):
        inbox.find(folder="Nothing")


def test_marks_are_refused_unless_the_settings_allow_them(inbox):
    inbox.deliver(mail())
    name = inbox.newest
    with pytest.raises(ToolError, match="may_mark"):
        inbox.box("mark_message", message=name, read=True)
    assert inbox.find()[0]["unread"]
    marking = inbox.opened(may_mark=True)
    row = marking("mark_message", message=name, read=True, flagged=True)
    assert (row["unread"], row["flagged"], row["message"]) == (False, True, name)
    assert marking("mark_message", message=name, read=False)["unread"]
    assert inbox.find()[0]["flagged"]


def test_reply_keeps_the_thread_and_quotes(inbox, sink):
    inbox.deliver(
        mail(text="One\n\nTwo", Message_ID="<second@example.org>", References="<zero@example.org> <first@example.org>")
    )
    inbox.box("reply_to_message", message=inbox.newest, text="Here it is.")
    (envelope,) = sink[0].mails
    sent = email.message_from_bytes(envelope.content.replace(b"\r\n", b"\n"), policy=policy.default)
    assert (envelope.rcpt_tos, sent["To"], sent["Cc"]) == (["bob@example.org"], "bob@example.org", None)
    assert (sent["Subject"], sent["In-Reply-To"]) == ("Re: Figures", "<second@example.org>")
    assert sent["References"].split() == ["<zero@example.org>", "<first@example.org>", "<second@example.org>"]
    expected = "Here it is.\n\nOn Mon, 02 Nov 2026 10:00:00 +0000, Bob <bob@example.org> wrote:\n> One\n>\n> Two\n"
    assert sent.get_content() == expected


def test_reply_to_a_message_without_a_sender_is_refused(inbox, sink):
    message = mail()
    del message["From"]
    inbox.deliver(message)
    with pytest.raises(ToolError, match="names no one to reply to; use send_message with the addresses"):
        inbox.box("reply_to_message", message=inbox.newest, text="Yes.", to_all=True)
    assert not sink[0].mails


def test_reply_to_all_goes_to_the_others_but_not_to_oneself(inbox, sink):
    inbox.deliver(mail(Cc="Dan <dan@example.org>, bob@example.org", Reply_To="desk@example.org"))
    arguments = inbox.box.arguments("reply_to_message", message=inbox.newest, text="Yes.", to_all=True)
    description = inbox.box.surface.recipient(inbox.box.target, "reply_to_message", arguments)
    assert description.startswith("desk@example.org; cc carol@example.org, dan@example.org, bob@example.org; subject")
    inbox.box("reply_to_message", message=inbox.newest, text="Yes.", to_all=True)
    people = ["desk@example.org", "carol@example.org", "dan@example.org", "bob@example.org"]
    assert sink[0].mails[0].rcpt_tos == people


def test_forwarded_message_has_its_text_and_attachments(inbox, sink):
    message = mail()
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="größe.png")
    message.add_attachment(mail("Inner"), filename="inner.eml")
    inbox.deliver(message)
    inbox.box("forward_message", message=inbox.newest, to=["eve@example.org"], text="For you.")
    sent = email.message_from_bytes(sink[0].mails[0].content.replace(b"\r\n", b"\n"), policy=policy.default)
    assert (sent["Subject"], sent["References"]) == ("Fwd: Figures", "<first@example.org>")
    text = sent.get_body(("plain",)).get_content()
    assert text.startswith("For you.\n\n---------- Forwarded message ----------\nFrom: Bob <bob@example.org>")
    assert "Please send the report." in text
    assert [part.get_filename() for part in sent.iter_attachments()] == ["größe.png", "inner.eml"]


def test_copy_of_a_sent_message_is_saved(inbox, sink):
    box = inbox.opened(save_sent=True)
    new = {"to": ["bob@example.org"], "subject": "Copy", "text": "It is done."}
    answer = box("send_message", **new)
    assert answer["copy"] == "saved in Sent"
    assert inbox.subjects(folder="Sent") == ["Copy"]
    assert box.surface._account("office").has_sent(answer["message_id"])
    assert not box.surface._account("office").has_sent("<other@example.org>")
    broken = inbox.opened(save_sent=True, sent="Missing")
    assert "not saved" in broken("send_message", **new | {"text": "again"})["copy"]
    assert len(sink[0].mails) == 2


def test_message_of_a_folder_that_was_renumbered_is_refused(inbox):
    inbox.deliver(mail())
    folder, _, numbers = inbox.newest.rpartition("/")
    validity, _, uid = numbers.partition(".")
    with pytest.raises(ToolError, match="numbered its messages again"):
        inbox.box("read_message", message=f"{folder}/{int(validity) + 1}.{uid}")
    with pytest.raises(ToolError, match="no such message"):
        inbox.box("read_message", message=f"{folder}/{validity}.999")
    with pytest.raises(ToolError, match="is no message"):
        inbox.box("read_message", message="12")


def test_too_large_message_is_not_fetched(inbox):
    inbox.deliver(mail(text="x" * 5_000))
    small = inbox.opened(max_bytes=2_000)
    with pytest.raises(ToolError, match=r"imap.max_bytes"):
        small("read_message", message=inbox.newest)


@pytest.mark.parametrize("tls", ["implicit", "starttls"])
def test_mailbox_is_read_over_tls_with_a_checked_certificate(inbox, mailbox, authority, tls):
    inbox.deliver(mail())
    port = inbox.server.tls_port if tls == "implicit" else inbox.server.port
    server = {"host": "localhost", "port": port, "tls": tls, "user": inbox.user, "secret": "mail"}
    answer = mailbox(imap=server, ca=authority.path)("find_messages")
    assert answer["found"] == 1
    with pytest.raises(ToolError, match="no valid certificate"):
        mailbox(imap=server)("find_messages")
    with pytest.raises(ToolError, match=f"refuses the login of {inbox.user}") as caught:
        mailbox(imap={**server, "secret": "token"}, ca=authority.path)("find_messages")
    assert "a-token" not in str(caught.value)


def test_resources_name_folders_recipients_and_files(inbox, workspace):
    inbox.deliver(mail())
    surface, target, name = inbox.box.surface, inbox.box.target, inbox.newest
    reading = inbox.box.arguments("save_message", message=name, path="a.csv", attachment="a.csv")
    assert surface.resources(target, "save_message", reading) == ("folder:office/INBOX", f"file:{workspace / 'a.csv'}")
    replying = inbox.box.arguments("reply_to_message", message=name, text="x")
    assert surface.resources(target, "reply_to_message", replying) == ("mailto:bob@example.org", "folder:office/INBOX")
    finding = inbox.box.arguments("find_messages", folder="Sent")
    assert surface.resources(target, "find_messages", finding) == ("folder:office/Sent",)
    tools = {entry.name: entry.hazards for entry in surface.tools()}
    assert tools["save_message"] == {Hazard.DOWNLOADS}
    assert tools["read_message"] == tools["find_messages"] == tools["mark_message"] == frozenset()


def test_other_answer_of_the_same_call_is_progress(inbox):
    marks = []
    for subject in ("", "First", "Second"):
        inbox.deliver(*([mail(subject)] if subject else []))
        for _ in range(2):
            inbox.find()
            marks.append(inbox.box.surface.fingerprint(inbox.box.target))
    assert marks[0] == marks[1] != marks[2] == marks[3] != marks[4] == marks[5]


def test_encrypted_message_is_forwarded_whole_and_the_approval_tells_it(inbox, sink):
    data = (
        b"From: Bob <bob@example.org>\r\nSubject: Secret: figures\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/encrypted; boundary="=b"\r\n\r\n'
        b"--=b\r\nContent-Type: application/octet-stream\r\n\r\n"
        b"-----BEGIN PGP MESSAGE-----\r\n--=b--\r\n"
    )
    inbox.deliver(data)
    arguments = inbox.box.arguments("forward_message", message=inbox.newest, to=["eve@example.org"])
    shown = inbox.box.surface.recipient(inbox.box.target, "forward_message", arguments)
    assert "attached: Secret figures.eml (the whole other message with attachment-1.bin, 27 bytes" in shown
    assert "not read or quoted of the other message: an encrypted text" in shown
    answer = inbox.box("forward_message", message=inbox.newest, to=["eve@example.org"])
    assert answer["attached"] == ["Secret figures.eml"]
    assert "an encrypted text" in answer["not_read"]
    assert b"-----BEGIN PGP MESSAGE-----" in sink[0].mails[0].content
    inbox.deliver(data.replace(b"-----BEGIN", b"x" * 2_000))
    small = inbox.opened(smtp={"max_bytes": 1_000})
    with pytest.raises(ToolError, match=r"with Secret figures.eml \([\d,]+ bytes\); 1,000 are allowed"):
        small("forward_message", message=inbox.newest, to=["eve@example.org"])
