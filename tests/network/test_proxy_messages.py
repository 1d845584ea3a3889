"""Targets and headers of messages that pass the proxy."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.network._proxy_messages import (
    forwarded_request,
    forwarded_response,
    own_answer,
    request_target,
)

TOKENS = st.from_regex(r"[A-Za-z-]{1,12}", fullmatch=True)
HEADERS = st.lists(st.tuples(TOKENS, st.from_regex(r"[!-~]{0,12}", fullmatch=True)), max_size=6)


def request(target, method="GET", headers=()):
    return h11.Request(method=method, target=target, headers=[("Host", "ignored.test"), *headers])


@pytest.mark.parametrize(
    ("method", "target", "authority", "path"),
    [
        ("GET", "http://Example.org", "example.org", "/"),
        ("GET", "http://example.org:80/a?b=http://c/", "example.org", "/a?b=http://c/"),
        ("GET", "HTTP://example.org?b", "example.org", "/?b"),
        ("GET", "http://example.org/a#b", "example.org", "/a"),
        ("GET", "http://[::1]:8080//evil.test/", "[::1]:8080", "//evil.test/"),
        ("GET", "http://0x7f.1:8080/", "127.0.0.1:8080", "/"),
        ("CONNECT", "example.org:443", "example.org:443", ""),
        ("CONNECT", "[::1]:443", "[::1]:443", ""),
    ],
)
def test_target_is_read_in_one_form(method, target, authority, path):
    read = request_target(request(target, method))
    assert (read.authority, read.path) == (authority, path)


@given(st.from_regex(r"[!-~]{1,30}", fullmatch=True), st.sampled_from(["GET", "CONNECT"]))
def test_target_is_forwarded_as_it_was_checked(text, method):
    try:
        target = request_target(request(text if method == "CONNECT" else f"http://{text}", method))
    except ValueError:
        return
    again = request_target(request(target.authority if method == "CONNECT" else f"http://{target.authority}/", method))
    assert (again.host, again.port) == (target.host, target.port)
    assert target.path.startswith("/") or method == "CONNECT"


@given(HEADERS, st.lists(TOKENS, max_size=3))
def test_headers_of_a_connection_never_pass(headers, named):
    kept = [
        (name, value) for name, value in headers if name.lower() not in {"content-length", "transfer-encoding", "host"}
    ]
    own = [("Proxy-Authorization", "Basic x"), ("TE", "x"), ("Keep-Alive", "1"), ("Connection", ", ".join(named))]
    asked = request("http://example.org/", headers=[*kept, *own])
    sent = forwarded_request(asked, request_target(asked))
    names = [name for name, _ in sent.headers]
    dropped = {name.lower().encode() for name in named} - {b"content-length", b"host", b"connection"}
    assert not dropped & set(names)
    assert not {b"proxy-authorization", b"te", b"keep-alive"} & set(names)
    assert [value for name, value in sent.headers if name == b"host"] == [b"example.org"]
    assert names.count(b"connection") == 1


def test_response_keeps_its_length_and_loses_headers_of_the_connection():
    headers = [("Content-Length", "5"), ("Connection", "close, X-Own"), ("X-Own", "1"), ("Set-Cookie", "a"),
               ("Set-Cookie", "b"), ("Proxy-Authenticate", "Basic"), ("Upgrade", "h2c")]  # fmt: skip
    response = forwarded_response(h11.Response(status_code=200, reason="Fine", headers=headers))
    assert response.headers.raw_items() == [(b"Content-Length", b"5"), (b"Set-Cookie", b"a"), (b"Set-Cookie", b"b")]
    assert response.reason == b"Fine"


@given(st.text(max_size=40))
def test_own_answer_is_text_of_its_length(text):
    response, body, end = own_answer(403, "Forbidden", text)
    headers = dict(response.headers)
    assert headers[b"content-type"].startswith(b"text/plain")
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert int(headers[b"content-length"]) == len(body.data)
    assert isinstance(end, h11.EndOfMessage)
