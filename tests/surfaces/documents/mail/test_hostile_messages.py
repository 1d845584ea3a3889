"""Messages whose headers and formats are made to hold up or break a parser."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from callboard.surfaces import ToolError
from callboard.surfaces.documents._html_text import html_to_text, links_in
from callboard.surfaces.documents.mail import headers_of, parse_message
from callboard.surfaces.documents.mail._bounded_policy import pieces_of

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

SECONDS = 20
"""Enough on a busy machine; without limits each of these takes minutes."""


def message(headers: bytes, body: bytes = b"body") -> bytes:
    return headers + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    ("headers", "name", "shown"),
    [
        (b"From: " + b"(" * 5_000, "from", "nested too deeply"),
        (b"From: " + b'"' * 100_000, "from", "has 100,000 characters; at most 5,000 are read"),
        (b"To: " + b'"\\' * 60_000, "to", "characters; at most 5,000 are read"),
        (b"To: " + b"a@b.c, " * 6_000, "to", "there are 6,000 of To; at most 5,000 are read"),
        (b"To: a@b.c\r\n" * 6_000 + b"X: y", "to", "there are 6,000 of To; at most 5,000 are read"),
        (b"Subject: " + b"x" * 200_000, "subject", "has 200,000 characters; at most 100,000 are read"),
        (b"Date: " + b"1" * 100_000, "date", "at most 5,000 are read"),
    ],
)
def test_header_that_would_hold_up_the_parser_is_named(
    workspace: Path, call: Call, headers: bytes, name: str, shown: str
) -> None:
    (workspace / "a.eml").write_bytes(message(headers))
    start = time.monotonic()
    answer = call("read_text", "a.eml")
    assert time.monotonic() - start < SECONDS
    assert answer["text"].strip() == "body"
    assert shown in answer[name]


@pytest.mark.parametrize("depth", [5_000, 50_000])
def test_text_behind_an_unreadable_header_is_counted(workspace: Path, call: Call, depth: int) -> None:
    (workspace / "a.eml").write_bytes(message(b"Content-Transfer-Encoding: " + b"(" * depth))
    assert call("read_text", "a.eml")["not_shown"] == "a text or files behind headers that can't be read"


def test_many_parts_are_refused_before_they_are_parsed(workspace: Path, call: Call) -> None:
    part = b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n"
    data = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + part * 50_000
    (workspace / "a.eml").write_bytes(data)
    start = time.monotonic()
    with pytest.raises(ToolError, match="more than 1000 parts"):
        call("read_text", "a.eml")
    assert time.monotonic() - start < SECONDS


def test_long_list_of_recipients_is_read_whole() -> None:
    people = ['"Lovelace, Ada" <ada@example.org>', *(f"p{number}@example.org" for number in range(1_500))]
    text = ",\r\n ".join(people)
    parsed = parse_message(message(f"To: {text}".encode()), "a.eml")
    found = [address.addr_spec for header in headers_of(parsed, "To") for address in header.addresses]
    assert found == ["ada@example.org", *people[1:]]


def test_long_list_is_split_outside_of_quotation_marks_alone() -> None:
    entries = [r'"a \" , b" <c@d.e>', "f@g.h"] * 400
    assert pieces_of("To", " , ".join(entries)) == entries
    assert pieces_of("Subject", ",".join(entries)) == [",".join(entries)]
    assert len(pieces_of("To", '"' + "a@b.c," * 2_000)) == 1, "the mark has no end"


@pytest.mark.parametrize(
    "unit", ["<div>", "<a href='x", "<!--", "<![", "<a b ", "</a", "<?", "<pre> ", "<td>", "<ol><li>", "<a =", "&#"]
)
def test_html_is_read_in_linear_time(unit: str) -> None:
    start = time.monotonic()
    html_to_text(f"<p>before</p>{unit * 100_000}")
    links_in(unit * 100_000)
    html_to_text(f"<pre>{' ' * 300_000}x{unit * 1_000}")
    assert time.monotonic() - start < SECONDS


def test_odd_html_keeps_its_words() -> None:
    assert html_to_text("<p>1 < 2 & 3</p><![if !x]>seen<![endif]><ol start='²'><li>one</ol>a\0b") == (
        "1 < 2 & 3\nseen\n1. one\na\ufffdb"
    )
    assert html_to_text("") == ""
