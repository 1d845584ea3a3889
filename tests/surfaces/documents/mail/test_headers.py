"""Headers of messages: whatever form a text has, it becomes no header of its own."""

from __future__ import annotations

import base64
import email
import re
import tempfile
import unicodedata
from email import policy
from email.header import decode_header, make_header
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.documents.mail._headers import header_text
from support import FINISH, PATIENCE, lone
from support import call as action

BCC = "\nBcc: eve@example.org"


def word(text, charset="utf-8", form="q"):
    """Write an encoded word."""
    data = text.encode(charset)
    coded = "".join(f"={byte:02X}" for byte in data) if form in "qQ" else base64.b64encode(data).decode()
    return f"=?{charset}?{form}?{coded}?="


HOSTILE = {
    "q": word(f"Invoice{BCC}"),
    "Q": word(f"Invoice{BCC}", form="Q"),
    "base64": word(f"Invoice{BCC}\n\nbody", form="b"),
    "CRLF": word(f"Invoice\r{BCC}"),
    "CR": word("Invoice\rBcc: eve@example.org"),
    "spaces as underscores": "=?utf-8?q?Invoice=0ABcc:_eve@example.org?=",
    "in the middle": f"Re: {word(BCC)} x",
    "without blanks": f"Re:{word(BCC)}x",
    "latin-1": word(f"caf\xe9{BCC}", "iso-8859-1"),
    "UTF-7": "=?utf-7?q?a+AAo-Bcc:_eve@example.org?=",
    "UTF-16": word(f"a{BCC}", "utf-16", "b"),
    "a language": "=?utf-8*en?q?a=0ABcc:_eve@example.org?=",
    "an unknown charset": "=?x-none?q?a=0ABcc:_eve@example.org?=",
    "an empty charset": "=??q?a=0ABcc:_eve@example.org?=",
    "an unknown form": "=?utf-8?x?a=0ABcc:_eve@example.org?=",
    "adjacent words": f"{word('a')} {word(BCC)}",
    "adjacent words of two charsets": f"{word('a', 'iso-8859-1')} {word(BCC)}",
    "folded words": f"{word('a')}\r\n {word(BCC)}",
    "a word in a word": word(word(BCC)),
    "a word in six words": word(word(word(word(word(word(BCC)))))),
    "a word of two words": f"{word('=?utf-8?q?a=0')}{word('ABcc:_eve@example.org?=')}",
    "blanks in a word": "=?utf-8?q?a b=0ABcc: eve@example.org?=",
    "a broken word": "=?utf-8?b?SW52b2ljZQpCY2M6?x?=",
    "a null": word("a\0b"),
    "an escape": word("a\x1b[2Jb"),
    "a vertical tab": word("a\x0bBcc: eve@example.org"),
    "the next line": word("a\x85Bcc: eve@example.org"),
    "a line separator": word("a\u2028Bcc: eve@example.org"),
}
WRITTEN = {"MIME-Version", "X-Unsent", "Content-Type", "Content-Transfer-Encoding", "Subject", "To", "Cc", "From"}


def names(data):
    """List the headers of a message, as they are read without decoding."""
    return set(email.message_from_bytes(data, policy=policy.compat32).keys())


def decoded(value):
    """Decode a header as a mail program does, more than once."""
    for _ in range(9):
        value = str(make_header(decode_header(value)))
    return value


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("field", ["subject", "to", "cc", "sender", "quoted", "address"])
def test_a_hostile_text_is_refused_in_every_header(workspace, call, field, text):
    call("create_document", path="a.eml")
    before = (workspace / "a.eml").read_bytes()
    arguments = {
        "subject": {"subject": text},
        "to": {"to": [f"{text} <a@example.org>"]},
        "cc": {"cc": ["b@example.org", f"{text} <a@example.org>"]},
        "sender": {"sender": f"{text} <a@example.org>"},
        "quoted": {"to": [f'"{text}" <a@example.org>']},
        "address": {"to": [f"Ada <{text}@example.org>"]},
    }
    with pytest.raises(ToolError, match=r"can't hold|encoded word|no e-mail address|letters other than"):
        call("write_message", "a.eml", **arguments[field])
    assert (workspace / "a.eml").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("=?utf-8?q?caf=C3=A9?=", "café"),
        ("Re: =?iso-8859-1?b?Y2Fm6Q==?= =?utf-8?q?_=26?= more", "Re: café & more"),
        (word("tab\there"), "tab here"),
        ("100 =? 5 ?", "100 =? 5 ?"),
        ("a=?b", "a=?b"),
        ("Grüße", "Grüße"),
    ],
)
def test_a_harmless_text_is_written_as_a_reader_sees_it(workspace, call, text, seen):
    call("create_document", path="a.eml")
    assert call("write_message", "a.eml", subject=text)["subject"] == seen
    message = email.message_from_bytes((workspace / "a.eml").read_bytes(), policy=policy.default)
    assert message["Subject"] == seen


@pytest.mark.parametrize("name", ["=?utf-8?q?a=0ABcc=3A_eve=40x.org?=.txt", "=?utf-8?q?a?=.txt"])
def test_file_with_an_rfc_2047_encoded_name_is_not_attached(workspace, call, name):
    call("create_document", path="a.eml")
    (workspace / name).write_text("x", encoding="utf-8")
    before = (workspace / "a.eml").read_bytes()
    with pytest.raises(ToolError, match=r"encoded word|can't hold"):
        call("write_message", "a.eml", attachments=[name])
    assert (workspace / "a.eml").read_bytes() == before


RECEIVED = (
    b"From: =?utf-8?q?Eve=0ABcc:_eve@example.org?= <eve@example.org>\r\n"
    b"Subject: =?utf-8?q?Hi=0D=0ABcc:_eve@example.org?=\r\n"
    b"X-Long: " + b"=?utf-8?q?a=0ABcc:_eve@example.org?= " * 9 + b"\r\n"
    b"Content-Type: text/plain; name*=utf-8''a%0D%0ABcc:%20eve@example.org\r\n"
    b'Content-Disposition: inline; filename="=?utf-8?q?b=0ABcc:_eve@example.org?="\r\n\r\nhello\r\n'
)


@pytest.mark.parametrize(
    "change", [{"text": "other"}, {"attachments": ["b.txt"]}, {"to": ["ada@example.org"]}, {"attachments": ["c.eml"]}]
)
def test_headers_of_a_received_message_become_no_others(workspace, call, change):
    for name in ("a.eml", "c.eml"):
        (workspace / name).write_bytes(RECEIVED)
    (workspace / "b.txt").write_text("x", encoding="utf-8")
    call("write_message", "a.eml", **change)
    data = (workspace / "a.eml").read_bytes()
    for part in email.message_from_bytes(data, policy=policy.compat32).walk():
        assert "Bcc" not in part
    assert re.search(rb"^Bcc:", data, re.MULTILINE | re.IGNORECASE) is None


SIGNS = st.sampled_from(
    ["a", "é", " ", "\n", "\r\n", "\t", "\0", "\x85", "\u2028", ":", "=?", "?=", "=", "?", "_", ","]
)
CHARSETS = st.sampled_from(["utf-8", "iso-8859-1", "utf-16", "utf-7", "cp1252"])


def encoded(inner):
    """Make encoded words of texts, also some that hold what their charset lacks."""

    def write(text, charset, form):
        try:
            return word(text, charset, form)
        except UnicodeEncodeError:
            return word(text, "utf-8", form)

    return st.builds(write, inner, CHARSETS, st.sampled_from("qQbB"))


PLAIN = st.lists(SIGNS, max_size=6).map("".join)
TEXTS = st.lists(st.recursive(PLAIN, encoded, max_leaves=3), min_size=1, max_size=4).map("".join)


@given(TEXTS)
@example(HOSTILE["a word of two words"])
def test_a_random_text_is_refused_or_stays_in_its_header(text):
    try:
        seen = header_text(text, "the subject")
    except ToolError:
        return
    assert {unicodedata.category(sign) for sign in seen}.isdisjoint({"Cc", "Zl", "Zp", "Cs"})
    assert decoded(seen) == seen or "=?" not in text


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_a_message_with_random_texts_has_the_expected_headers(texts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.eml")
        path.write_bytes(b"X-Unsent: 1\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n")
        surface = DocumentSurface(Path(folder))
        write = next(entry for entry in surface.tools() if entry.name == "write_message").tool.fn
        before = path.read_bytes()
        try:
            write(document="a.eml", subject=texts[0], to=[f"{text} <a@example.org>" for text in texts])
        except ToolError:
            assert path.read_bytes() == before
            return
        assert names(path.read_bytes()) <= WRITTEN
        for value in email.message_from_bytes(path.read_bytes(), policy=policy.compat32).values():
            assert "\n" not in decoded(re.sub(r"\r?\n(?=[ \t])", "", value))


def test_a_task_writes_no_hidden_header(start, workspace):
    (workspace / "a.eml").write_bytes(b"X-Unsent: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n")
    answers = [action("write_message", subject=HOSTILE["q"]), action("write_message", subject="Invoice"), FINISH]
    settings = {"servers": [], "documents": {"workspace": workspace}}
    assert start(app=answers, **settings).submit(lone("a.eml")).result(PATIENCE).ok
    assert "Bcc" not in names((workspace / "a.eml").read_bytes())
    assert b"Subject: Invoice\r\n" in (workspace / "a.eml").read_bytes()


# Calendars

PROPERTIES = {b"UID", b"SUMMARY", b"DTSTART", b"DTEND", b"DTSTAMP", b"LOCATION", b"DESCRIPTION", b"SEQUENCE"}


@settings(max_examples=60)
@given(st.tuples(TEXTS, TEXTS, TEXTS))
@example((f"a{BCC}\nATTENDEE:mailto:eve@example.org", "x\r\nEND:VEVENT\r\nBEGIN:VALARM", "\\nRRULE:FREQ=DAILY"))
@example(("a\rATTACH:file:///etc/passwd", "a\x85ATTACH:x", "a\u2028ATTACH:x"))
def test_a_text_of_an_event_becomes_no_property(given_texts):
    pytest.importorskip("icalendar")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.ics")
        path.write_bytes(b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nEND:VCALENDAR\r\n")
        write = next(entry for entry in DocumentSurface(Path(folder)).tools() if entry.name == "write_event").tool.fn
        summary, location, description = given_texts
        try:
            write(
                document="a.ics", summary=f"s{summary}", start="2026-05-31", location=location, description=description
            )
        except ToolError:
            return
        unfolded = re.sub(rb"\r?\n[ \t]", b"", path.read_bytes())
        lines = re.split(rb"\r\n|\r|\n", unfolded.partition(b"BEGIN:VEVENT")[2].partition(b"END:VEVENT")[0])
        assert {re.split(rb"[;:]", line)[0] for line in lines if line} <= PROPERTIES
