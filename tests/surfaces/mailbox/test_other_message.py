"""Messages that are sent on, or answered: nothing of them is dropped."""

from __future__ import annotations

import email
from email import policy
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.surfaces.documents.mail import BEFORE_HEADERS
from callboard.surfaces.mailbox._other_message import OtherMessage
from callboard.surfaces.mailbox._outgoing_mail import OutgoingMail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

HEAD = b"From: Bob <bob@example.org>\r\nTo: ada@example.org\r\nSubject: Figures\r\nMIME-Version: 1.0\r\n"
MIXED = HEAD + b'Content-Type: multipart/mixed; boundary="=b"\r\n\r\n'
TEXT = b"--=b\r\nContent-Type: text/plain\r\n\r\nSee the figures.\r\n"
END = b"--=b--\r\n"


def file_part(body: bytes, encoding: bytes = b"base64", kind: bytes = b"application/pdf") -> bytes:
    head = b"--=b\r\nContent-Type: " + kind + b"\r\nContent-Transfer-Encoding: " + encoding
    return head + b'\r\nContent-Disposition: attachment; filename="a.pdf"\r\n\r\n' + body + b"\r\n"


def container(kind: bytes, *parts: bytes) -> bytes:
    return HEAD + b"Content-Type: multipart/" + kind + b'; boundary="=b"\r\n\r\n' + b"".join(parts) + END


DEEP = b"".join(b'Content-Type: multipart/mixed; boundary="=%d"\r\n\r\n--=%d\r\n' % (n, n) for n in range(30))
UNREADABLE = {
    "encrypted": container(b"encrypted", file_part(b"Version: 1", b"7bit"), file_part(b"-----BEGIN PGP", b"7bit")),
    "signed": container(b"signed", TEXT, file_part(b"-----BEGIN PGP SIGNATURE", b"7bit")),
    "S/MIME": HEAD + b"Content-Type: application/pkcs7-mime; name=smime.p7m\r\n\r\nAAECAw==\r\n",
    "no boundary": HEAD + b"Content-Type: multipart/mixed\r\n\r\n" + TEXT + END,
    "other boundary": HEAD + b'Content-Type: multipart/mixed; boundary="=c"\r\n\r\n' + TEXT + END,
    "no end": MIXED + TEXT + file_part(b"AAECAw=="),
    "damaged base64": container(b"mixed", TEXT, file_part(b"AAE*CAw")),
    "unknown encoding": container(b"mixed", TEXT, file_part(b"AAECAw==", b"x-secret")),
    "encoded message": container(
        b"mixed", TEXT, file_part(b"U3ViamVjdDogSW5uZXINCg0KSGVsbG8=", kind=b"message/rfc822")
    ),
    "Outlook": container(b"mixed", TEXT, file_part(b"eJ8+Ig==", kind=b"application/ms-tnef")),
    "too deep": HEAD + DEEP + b"Content-Type: text/plain\r\n\r\nDeep down.\r\n",
    "too many": MIXED + TEXT * 1_200 + END,
    "long header": HEAD + b"Content-Type: text/plain; x=" + b"y " * 3_000 + b"\r\n\r\nSee the figures.\r\n",
}


def sent_on(data: bytes) -> tuple[Message, OutgoingMail]:
    quotation, files, unread = OtherMessage(data, "INBOX/7.4").forward()
    mail = OutgoingMail(
        to=(("", "eve@example.org"),), subject="Fwd", text="", files=files, quoted_text=quotation, unread=unread
    )
    return email.message_from_bytes(mail.encode(("", "ada@example.org"), "<1@example.org>")), mail


def leaves(message: Message) -> Iterator[tuple[Message, bytes]]:
    """Yield each part with its content.

    Parts of messages that are attached as files are included.
    """
    for part in message.walk():
        data = part.get_payload(decode=True)
        if isinstance(data, bytes) and not part.is_multipart():
            yield part, b"\n".join(data.splitlines()).strip()
            if (part.get_filename() or "").endswith(".eml"):
                yield from leaves(email.message_from_bytes(data))


def is_quoted(part: Message, data: bytes, body: str) -> bool:
    letters = "".join(body.split())
    for charset in (str(part.get_content_charset() or "utf-8"), "utf-8"):
        try:
            text = data.decode(charset)
        except (LookupError, ValueError):
            continue
        if part.get_content_type() == "text/plain" and "".join(text.split()) in letters:
            return True
    return False


def check_nothing_dropped(data: bytes) -> OutgoingMail:
    sent, mail = sent_on(data)
    sent_data = [content for _, content in leaves(sent)]
    body = sent_data[0].decode()
    for part, content in leaves(email.message_from_bytes(BEFORE_HEADERS.sub(b"", data))):
        assert not content or content in sent_data or is_quoted(part, content, body), (part.items(), content[:200])
    return mail


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_message_with_a_part_that_cannot_be_read_goes_along_whole(data: bytes) -> None:
    mail = check_nothing_dropped(data)
    (file,) = mail.files
    assert (file.name, file.kind, file.data) == ("Figures.eml", "message/rfc822", data)
    shown = mail.described()
    assert "attached: Figures.eml (the whole other message" in shown
    assert f"{len(data):,} bytes, SHA-256" in shown
    assert "not read or quoted of the other message: " in shown


def test_approval_lists_what_the_whole_message_holds() -> None:
    shown = check_nothing_dropped(UNREADABLE["damaged base64"]).described()
    assert "the whole other message with a.pdf, 4 bytes" in shown
    assert shown.endswith("the file 'a.pdf', whose transfer encoding is damaged or unknown")


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_hidden_recipients_of_a_sent_message_do_not_go_along(end: bytes) -> None:
    data = UNREADABLE["damaged base64"].replace(b"\r\n", end)
    hidden = b"Bcc: boss@example.org," + end + b" eve@example.org" + end + b"Resent-BCC : x@example.org" + end
    (file,) = sent_on(hidden + data + end + b"Bcc: a line of the text" + end)[1].files
    assert file.data == data + end + b"Bcc: a line of the text" + end


def test_message_beyond_ascii_goes_along_with_the_same_bytes() -> None:
    data = HEAD + b"Content-Transfer-Encoding: x-odd\r\n\r\nGr\xfc\xdfe\0\n\r" + b"x" * 2_000
    part = list(leaves(sent_on(data)[0]))[1][0]
    assert (part.get_content_type(), part.get_payload(decode=True)) == ("application/octet-stream", data)


@pytest.mark.parametrize(
    ("kind", "text", "charset"),
    [
        (b"text/html; charset=windows-1252", b"<a href='https://example.org/x'>Gr\xfc\xdfe</a>", "windows-1252"),
        (b"text/plain; charset=x-none", b"Gr\xfc\xdfe an alle, sch\xf6nen Tag", "x-none"),
        (b"text/plain", b"word " * 20_000, ""),
    ],
    ids=["formatted", "unknown charset", "long"],
)
def test_text_that_is_not_quoted_as_it_is_goes_along_as_a_file(kind: bytes, text: bytes, charset: str) -> None:
    mail = check_nothing_dropped(HEAD + b"Content-Type: " + kind + b"\r\n\r\n" + text)
    (file,) = mail.files
    assert (file.data, file.charset) == (text, charset)
    assert file.name == ("formatted text.html" if b"html" in kind else "text.txt")


def test_file_of_a_damaged_type_goes_along_as_bytes() -> None:
    part = b"Content-Type: t\x0bext/html\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\ntext\r\n"
    data = HEAD + b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n" + part + b"--x--\r\n"
    check_nothing_dropped(data)
    assert "application/octet-stream" in {part.get_content_type() for part, _ in leaves(sent_on(data)[0])}


def test_empty_file_goes_along() -> None:
    mail = check_nothing_dropped(container(b"mixed", TEXT, file_part(b"")))
    assert [(file.name, file.data) for file in mail.files] == [("a.pdf", b"")]


def test_reply_takes_the_whole_message_if_none_of_it_can_be_quoted() -> None:
    _, files, unread = OtherMessage(UNREADABLE["S/MIME"], "INBOX/7.4").reply()
    assert [file.data for file in files] == [UNREADABLE["S/MIME"]]
    assert unread == ("the content of an encrypted or signed message (S/MIME)",)
    quotation, files, unread = OtherMessage(UNREADABLE["Outlook"], "INBOX/7.4").reply()
    assert (files, unread) == ((), ("what Outlook packed into winmail.dat",))
    assert "> See the figures." in quotation
    _, files, unread = OtherMessage(HEAD + b"\r\n" + b"word " * 20_000, "INBOX/7.4").reply()
    assert (files, unread) == ((), ("all of its text but 50,000 of 100,000 characters",))


@pytest.mark.parametrize(
    ("headers", "introduction"),
    [
        (b"From: bob@example.org\r\nDate: Mon, 02 Nov 2026 10:00:00 +0000\r\n", "On Mon, 02 Nov 2026 10:00:00 +0000, "),
        (b"From: bob@example.org\r\n", ""),
    ],
)
def test_quotation_names_the_sender_and_the_date_if_known(headers: bytes, introduction: str) -> None:
    quotation, _, _ = OtherMessage(headers + b"\r\nHello\r\n", "INBOX/7.4").reply()
    assert quotation == f"\n\n{introduction}bob@example.org wrote:\n> Hello"
    quotation, _, _ = OtherMessage(b"Subject: x\r\n\r\nHello\r\n", "INBOX/7.4").reply()
    assert quotation == "\n\nthe sender wrote:\n> Hello"


def test_messages_that_quote_different_texts_differ() -> None:
    one, other = (sent_on(HEAD + b"\r\n" + text)[1] for text in (b"One\r\n", b"Two\r\n"))
    assert one.digest != other.digest
    assert one.digest == sent_on(HEAD + b"\r\nOne\r\n")[1].digest


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60)


@st.composite
def messages(draw: Callable[[Any], Any], depth: int = 0) -> bytes:
    """Generate a message as programs write it."""
    message = EmailMessage(policy=policy.SMTP)
    message["From"], message["Subject"] = "Bob <bob@example.org>", "Figures"
    message.set_content(draw(TEXTS), cte=draw(st.sampled_from(["base64", "quoted-printable", "8bit"])))
    if draw(st.booleans()):
        message.add_alternative(f"<p>{draw(TEXTS)}</p>", subtype="html")
    for number in range(draw(st.integers(0, 2))):
        if depth < 2 and draw(st.booleans()):
            inner = email.message_from_bytes(draw(messages(depth + 1)), policy=policy.SMTP)
            message.add_attachment(inner, filename=f"{number}.eml")
        else:
            kind = draw(st.sampled_from(["pdf", "octet-stream", "ms-tnef", "pkcs7-mime"]))
            data = draw(st.binary(max_size=200))
            message.add_attachment(data, maintype="application", subtype=kind, filename=f"{number}.bin")
    for number, part in enumerate(message.walk()):
        if part.get_content_maintype() == "multipart" and part.get_boundary() is None:
            part.set_boundary(f"={depth}.{number}")
    kind = draw(st.sampled_from([b"mixed", b"mixed", b"signed", b"encrypted", b"related", b"report"]))
    return message.as_bytes().replace(b"multipart/mixed", b"multipart/" + kind, 1)


@st.composite
def damaged(draw: Callable[[Any], Any]) -> bytes:
    """Generate a message that lost or changed some bytes."""
    data = bytearray(draw(messages()))
    head = data.find(b"\r\n\r\n") if draw(st.booleans()) else 0
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(head, len(data)))
        end = draw(st.integers(start, min(len(data), start + 80)))
        data[start:end] = draw(st.binary(max_size=10) | st.sampled_from([b"\r\n", b"\n", b"\r\n\r\n"]))
    return bytes(data)


@given(damaged())
def test_every_part_of_a_message_is_sent_on(data: bytes) -> None:
    check_nothing_dropped(data)
