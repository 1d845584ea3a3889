"""Attacks on the console: requests that come from elsewhere, and those without a session."""

from __future__ import annotations

import contextlib
import http.client
import json
import sqlite3

import pytest

from callboard.console import ConsoleServer
from callboard.console._pages import Pages
from callboard.console._sign_in import SignIn
from callboard.errors import SettingsError
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

SECRET_REQUEST = "pay the invoice of Ann"
READS = ["/", "/waiting", "/health", "/tasks/t-1", "/tasks/t-1/runs/t-1", "/pictures/" + "0" * 64, "/events"]
READS += ["/tasks/t-1/files/0/pages", "/tasks/t-1/replay"]
CHANGES = ["/tasks/t-1/cancel", "/tasks/t-1/pause", "/tasks/t-1/requests/r-1"]


def opened_by(start, app=lambda _: FINISH):
    """Start an office whose journal has one task."""
    started_office = start(app=app)
    started_office.supervisor.submit(lone(request=SECRET_REQUEST, id="t-1")).result(PATIENCE)
    return started_office


@pytest.fixture(scope="module")
def opened(shared_office):
    """Give the tests that only read an office with one task."""
    return opened_by(shared_office, lambda request: ASK if request.request == "ask" else FINISH)


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


def test_what_an_agents_browser_asks_for_is_refused(opened):
    via = {**opened.sign_in(), "via": "1.0 other, 1.1 callboard-agents"}
    for path in (*READS, "/static/console.js", "/healthz"):
        assert opened.ask(path, headers=via)[:2] == (403, "agents may not use the console")
    assert opened.ask("/session", method="POST", body={}, headers=via)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/?before=" + "9" * 30,
        "/?before=" + "9" * 5000,
        "/?q=%00%22%ff*&label=%00=&since=1e999&until=-1e308&outcome=%00",
        "/?q=" + "%22(" * 300,
        "/tasks/t-1?until=" + "9" * 5000,
        "/tasks/t-1/runs/a/b/../c",
        "/tasks/t-1/runs/%00",
    ],
)
def test_hostile_address_is_answered_without_a_failure(opened, path):
    status, body, _ = opened.ask(path, headers=opened.sign_in())
    assert (status, "Traceback" in body) == (404 if "/runs/" in path else 200, False)


def test_path_with_a_slash_more_leads_nowhere(opened):
    status, _, headers = opened.ask("//evil.example/", headers=opened.sign_in())
    assert (status, "location" in headers) == (404, False)
    assert opened.ask("/tasks/t-1/", headers=opened.sign_in())[0] == 404


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"])
def test_other_methods_are_refused(opened, method):
    assert opened.ask("/tasks/t-1", method=method)[0] == 403
    assert opened.ask("/tasks/t-1", method=method, headers=opened.sign_in())[0] == 405


def test_head_has_no_data_and_no_endless_answer(opened):
    for path in READS[:5]:
        assert opened.ask(path, method="HEAD")[:2] == (200, "")
    assert opened.ask("/events", method="HEAD", headers=opened.sign_in())[0] in {200, 405}


def test_body_of_deep_lists_is_refused(opened):
    body = b'{"texts": ' + b"[" * 90_000
    assert opened.ask("/tasks/t-1/requests/r", method="POST", body=body, headers=opened.sign_in())[0] == 400


def test_body_that_does_not_come_is_given_up(opened, monkeypatch):
    monkeypatch.setattr("callboard.console._application._BODY_SECONDS", 0.01)
    connection = http.client.HTTPConnection("127.0.0.1", opened.server.port, timeout=PATIENCE)
    connection.putrequest("POST", "/tasks/t-1/requests/r")
    for name, value in {**opened.sign_in(), "content-length": "10"}.items():
        connection.putheader(name, value)
    connection.endheaders(b"{")
    with contextlib.closing(connection), connection.getresponse() as response:
        assert response.status == 408


def test_cookies_of_other_programs_lock_no_person_out(opened):
    session = opened.sign_in()
    name = session["cookie"].partition("=")[0]
    for others in (
        'bad"cookie; {}',
        f"{name}=stolen; {{}}",
        f"{{}}; {name}=stolen",
        '@(),/:;<=>?={{}}; {}; a="',
        "{};",
    ):
        headers = {**session, "cookie": others.format(session["cookie"])}
        assert opened.ask("/tasks/t-1", headers=headers)[0] == 200


@pytest.mark.parametrize(
    "origin", ["null", "", "http://", "file://", "http://[", "http://127.0.0.1:{port}.evil.example"]
)
def test_malformed_origin_changes_nothing(opened, origin):
    headers = {**opened.sign_in(), "origin": origin.format(port=opened.server.port)}
    assert opened.ask("/tasks/t-1/cancel", method="POST", body={}, headers=headers)[0] == 403


def test_pages_that_follow_are_limited(opened, monkeypatch):
    monkeypatch.setattr("callboard.console._application._MOST_FEEDS", 2)
    session, feeds = opened.sign_in(), []
    for _ in range(2):
        connection = http.client.HTTPConnection("127.0.0.1", opened.server.port, timeout=PATIENCE)
        connection.request("GET", "/events", headers=session)
        feeds.append((connection, connection.getresponse()))
        assert feeds[-1][1].readline().startswith(b"id: ")
    assert opened.ask("/events", headers=session)[0] == 503
    for connection, response in feeds:
        response.close()
        connection.close()

    def opens_again():
        connection = http.client.HTTPConnection("127.0.0.1", opened.server.port, timeout=PATIENCE)
        connection.request("GET", "/events", headers=session)
        with contextlib.closing(connection), connection.getresponse() as response:
            return response.status == 200

    wait_for(opens_again)


def test_feed_ends_and_continues_by_its_number(opened, monkeypatch):
    monkeypatch.setattr("callboard.console._event_feed._MOST_LOOKS", 1)
    session = opened.sign_in()
    status, body, _ = opened.ask("/events", headers={**session, "last-event-id": "0"})
    assert status == 200
    assert '"task": "t-1"' in body
    for number in ("9" * 5000, "-1", "x", "1e3"):
        assert opened.ask("/events", headers={**session, "last-event-id": number})[1].endswith(
            "event: ready\ndata: {}\n\n"
        )


def test_facts_that_no_version_writes_are_told_and_not_shown(office):
    opened = opened_by(office, lambda request: append("x") if request.step == 1 else FINISH)
    opened.server.stop()
    opened.supervisor.stop()
    with contextlib.closing(sqlite3.connect(opened.journal)) as database, database:
        changed = database.execute(
            "UPDATE rows SET body = replace(replace(body, '\"source\"', '\"s\"'), '\"verdict\"', '\"v\"') "
            "WHERE body LIKE '%\"source\"%' OR body LIKE '%\"verdict\"%'"
        )
        assert changed.rowcount
    opened.server = ConsoleServer(opened.journal)
    opened.server.start()
    session = opened.sign_in()
    results = {
        opened.ask(path, headers=session)[0] for path in ("/", "/tasks/t-1", "/tasks/t-1/runs/t-1~1", "/waiting")
    }
    assert results <= {200, 404, 409}
    rules = {"rules": "[{verdict: deny, reason: never}]"}
    answer = opened.ask("/tasks/t-1/policy", method="POST", body=rules, headers=session)[:2]
    assert answer == (409, "This journal has facts that can't be shown. The log of this program says which.")


def test_journal_without_room_for_a_key_is_shown_and_not_worked_on(office):
    opened = opened_by(office)
    opened.server.stop()
    key = opened.journal.with_name("journal.db.console-key")
    key.unlink()
    key.mkdir()
    with pytest.raises(SettingsError, match="the key of the console's sign-ins can't be kept"):
        ConsoleServer(opened.journal, opened.supervisor, port=0)
    opened.server = ConsoleServer(opened.journal, port=0)
    opened.server.start()
    assert opened.ask("/tasks/t-1", headers=opened.sign_in())[0] == 200
    assert list(key.iterdir()) == []


def test_damaged_journal_is_told(office):
    opened = opened_by(office)
    opened.server.stop()
    opened.supervisor.stop()
    with contextlib.closing(sqlite3.connect(opened.journal)) as database, database:
        database.execute("UPDATE rows SET body = '{'")
    opened.server = ConsoleServer(opened.journal)
    opened.server.start()
    status, body, _ = opened.ask("/tasks/t-1", headers=opened.sign_in())
    assert status == 409
    assert "Traceback" not in body
    assert "journal" in body


def test_copied_command_names_the_journal(opened):
    body = opened.ask("/tasks/t-1", headers=opened.sign_in())[1]
    assert f'data-copy="callboard show t-1 {opened.journal.resolve()}"' in body


def test_waiting_page_names_its_limit_of_unfinished_tasks(opened, monkeypatch):
    pages = Pages(opened.journal, None)
    handles = opened.supervisor.submit_all(lone(request="ask", id=f"u-{number}") for number in range(2))
    person = SignIn("id", "ann", 0)
    try:
        assert "Older ones may wait" not in pages.waiting(person)
        monkeypatch.setattr("callboard.console._pages._MOST_READ", 1)
        assert "Older ones may wait" in pages.waiting(person)
    finally:
        for handle in handles:
            handle.cancel("enough")


def test_secret_in_a_request_is_redacted_where_it_waits(office):
    opened = office(app=lambda _: ASK, secrets={"password": {"value": "hunter2-4711"}})
    handle = opened.supervisor.submit(lone(request="log in with hunter2-4711"))
    wait_for(handle.questions)
    body = opened.ask("/waiting", headers=opened.sign_in())[1]
    assert ("log in with" in body, "hunter2" in body) == (True, False)


def test_copied_text_has_one_line(tmp_path):
    pages = Pages(tmp_path / "journal.db", None)
    template = pages._templates.from_string('{% import "parts.html" as parts %}{{ parts.copied(name) }}')  # noqa: SLF001
    html = template.render(name='a\nrm -rf .\r\x1b[2J"><script>')
    assert 'data-copy="a\\nrm -rf .\\r\\x1b[2J&#34;&gt;&lt;script&gt;"' in html


def test_page_of_a_huge_output_is_bounded(office):
    opened = opened_by(office, lambda _: {**FINISH, "Result": "x" * 3_000_000})
    body = opened.ask("/tasks/t-1", headers=opened.sign_in())[1]
    assert "(3000000 characters)" in body
    assert len(body) < 300_000
