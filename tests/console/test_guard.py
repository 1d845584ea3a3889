"""Attacks on the console: requests that come from elsewhere, and those without a session."""

from __future__ import annotations

import json

import pytest

from support import FINISH, lone

SECRET_REQUEST = "pay the invoice of Ann"
READS = ["/", "/waiting", "/health", "/tasks/t-1", "/tasks/t-1/runs/t-1", "/pictures/" + "0" * 64, "/events"]
CHANGES = ["/tasks/t-1/cancel", "/tasks/t-1/pause", "/tasks/t-1/requests/r-1"]


@pytest.fixture
def opened(office):
    """Give an office whose journal has one task."""
    place = office(app=lambda _: FINISH)
    place.supervisor.submit(lone(request=SECRET_REQUEST, id="t-1")).result(60)
    return place


def test_frame_of_a_page_has_no_data(opened):
    for path in READS[:5]:
        status, body, headers = opened.ask(path)
        assert (status, SECRET_REQUEST in body, headers["content-type"]) == (200, False, "text/html; charset=utf-8")


@pytest.mark.parametrize("path", READS)
def test_nothing_is_read_without_a_session(opened, path):
    session = opened.sign_in()
    for lacking in ("cookie", "x-callboard-token"):
        headers = {**session, "x-callboard-token": "wrong"} if lacking != "cookie" else dict(session)
        headers.pop("cookie") if lacking == "cookie" else None
        status, body, _ = opened.ask(path, headers=headers)
        assert (status, body) == (401, "sign in first")


def test_a_session_reads(opened):
    status, body, _ = opened.ask("/tasks/t-1", headers=opened.sign_in())
    assert status == 200
    assert SECRET_REQUEST in body


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"origin": "http://evil.example"}, id="another-origin"),
        pytest.param({"origin": None}, id="no-origin"),
        pytest.param({"origin": "http://127.0.0.1:1"}, id="another-port"),
        pytest.param({"sec-fetch-site": "same-site"}, id="same-site"),
        pytest.param({"sec-fetch-site": "cross-site"}, id="cross-site"),
    ],
)
def test_a_page_of_another_origin_changes_nothing(opened, path, change):
    headers = {name: value for name, value in {**opened.sign_in(), **change}.items() if value is not None}
    status, body, _ = opened.ask(path, method="POST", body={"verdict": "approve"}, headers=headers)
    assert (status, body) == (403, "only a page of the console may do this")


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_without_a_session_is_refused(opened, path):
    session = opened.sign_in()
    for lacking in ("cookie", "x-callboard-token"):
        headers = {name: value for name, value in session.items() if name != lacking}
        assert opened.ask(path, method="POST", body={}, headers=headers)[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}"])
def test_another_name_for_this_address_is_refused(opened, host):
    headers = {**opened.sign_in(), "host": host.format(port=opened.server.port)}
    for path in ("/", "/static/console.js", "/session", "/tasks/t-1"):
        assert opened.ask(path, headers=headers)[0] == 421


@pytest.mark.parametrize(
    "path",
    [
        "/pictures/../journal.db",
        "/pictures/..%2fjournal.db",
        "/pictures/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/static/../_sign_in.py",
        "/static/..%2f_sign_in.py",
        "/static/%2e%2e/%2e%2e/pyproject.toml",
        "/pictures/" + "g" * 64,
        "/tasks/..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_path_leads_out_of_the_journals_folder(opened, path):
    status, body, _ = opened.ask(path, headers=opened.sign_in())
    assert status == 404, body


def test_a_link_signs_in_once_and_its_answer_is_for_its_page_alone(opened):
    link = opened.server.link().partition("#")[2]
    same = {"origin": opened.origin}
    status, body, headers = opened.ask("/session", method="POST", body={"link": link}, headers=same)
    assert (status, list(json.loads(body))) == (200, ["token"])
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"callboard-{opened.server.port}=")
    assert {part.strip().lower() for part in cookie.split(";")[1:]} >= {"httponly", "samesite=strict", "path=/"}
    for wrong in ({"link": link}, {"link": ""}, {}, {"link": None}):
        assert opened.ask("/session", method="POST", body=wrong, headers=same)[0] == 401
    assert opened.ask("/session", method="POST", body={"link": link}, headers={})[0] == 403


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"{", b"1"])
def test_a_body_that_is_no_object_is_refused(opened, body):
    status, _, _ = opened.ask("/tasks/t-1/requests/r", method="POST", body=body, headers=opened.sign_in())
    assert status == 400


def test_a_large_body_is_refused(opened):
    text = b'{"texts": ["' + b"x" * 200_000 + b'"]}'
    assert opened.ask("/tasks/t-1/requests/r", method="POST", body=text, headers=opened.sign_in())[0] == 413


def test_headers_forbid_frames_inline_scripts_and_guesses(opened):
    for path in ("/", "/static/console.js", "/healthz", "/nothing"):
        _, _, headers = opened.ask(path)
        policy = headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store" or path.startswith("/static/")


def test_health_of_the_process_is_open_and_empty(opened):
    assert opened.ask("/healthz")[:2] == (204, "")
