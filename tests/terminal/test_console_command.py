"""`callboard console` and `callboard run --console`, as a person starts them."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from support import FINISH, PATIENCE, command_line, wait_for
from support import call as action_call

ASK_FIRST = [{"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}]
CREATE = action_call("create_document", path="new.xlsx")


@contextmanager
def started(*arguments, folder):
    """Start the command line, and give it with the lines that it wrote to its standard error."""
    command = [sys.executable, "-m", "callboard", *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def link_of(lines):
    """Read lines until the console's link comes."""
    return next(line.partition("the console: ")[2].strip() for line in lines if "the console: " in line)


class Visitor:
    """A person who is signed in."""

    def __init__(self, link):
        self.address = urlsplit(link)
        self.headers = {"origin": f"http://{self.address.netloc}"}
        _, body, headers = self.ask("/session", {"link": self.address.fragment})
        self.headers |= {
            "cookie": headers["set-cookie"].partition(";")[0],
            "x-callboard-token": json.loads(body)["token"],
        }

    def ask(self, path, fields=None):
        connection = http.client.HTTPConnection(self.address.netloc, timeout=PATIENCE)
        body = None if fields is None else json.dumps(fields)
        connection.request("GET" if fields is None else "POST", path, body, self.headers)
        response = connection.getresponse()
        answer = response.status, response.read().decode(), dict(response.headers)
        connection.close()
        return answer


@pytest.fixture
def job(folder):
    """Give a folder whose task makes a document, which needs an approval."""
    return folder(CREATE, FINISH, policy=ASK_FIRST, journal={"path": "journal.db"})


def test_journal_is_shown_until_ctrl_c(job, tmp_path):
    command_line("run", job, "--yes", "--output", tmp_path / "copy")
    with started("console", tmp_path / "copy", "--port", 0, folder=tmp_path) as process:
        visitor = Visitor(link_of(process.stdout))
        status, body, _ = visitor.ask("/")
        assert (status, "do it" in body) == (200, True)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_run_is_approved_in_the_console_and_stays_until_ctrl_c(job, tmp_path):
    with started("run", job, "--console", "--output", tmp_path / "copy", folder=tmp_path) as process:
        visitor = Visitor(link_of(process.stdout))
        waiting = wait_for(lambda: next(iter(_forms(visitor.ask("/waiting")[1])), None))
        assert visitor.ask(f"/{waiting}", {"verdict": "approve"})[0] == 200
        text = "".join(_until(process, "Ctrl-C ends it"))
        assert "new files need a nod" in text
        assert "finished in" in text
        assert visitor.ask("/")[0] == 200
        assert Visitor(link_of(text.splitlines())).ask("/")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert (tmp_path / "copy" / "workspace" / "new.xlsx").is_file()


def test_new_link_is_printed_for_a_console_that_is_open(job, tmp_path, call):
    with started("run", job, "--console", "--output", tmp_path / "copy", folder=tmp_path) as process:
        first = link_of(process.stdout)
        Visitor(first)
        port = str(urlsplit(first).port)
        again = call("console", str(tmp_path / "copy"), "--link", "--port", port)
        assert again.exit_code == 0, again.output
        visitor = Visitor(again.stdout.strip())
        (waiting,) = wait_for(lambda: _forms(visitor.ask("/waiting")[1]))
        assert visitor.ask(f"/{waiting}", {"verdict": "approve"})[0] == 200
        assert "finished in" in "".join(_until(process, "Ctrl-C ends it"))
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
    refused = call("console", str(tmp_path / "copy"), "--link", "--port", port)
    assert refused.exit_code == 2
    assert "no console is open on port" in " ".join(refused.output.split())


def test_unfinished_task_is_resumed_with_a_console(job, tmp_path):
    with started("run", job, "--console", "--output", tmp_path / "copy", folder=tmp_path) as process:
        visitor = Visitor(link_of(process.stdout))
        wait_for(lambda: _forms(visitor.ask("/waiting")[1]))
        process.kill()
    with started("resume", tmp_path / "copy", "--console", folder=tmp_path) as process:
        visitor = Visitor(link_of(process.stdout))
        (waiting,) = wait_for(lambda: _forms(visitor.ask("/waiting")[1]))
        assert visitor.ask(f"/{waiting}", {"verdict": "approve"})[0] == 200
        text = "".join(_until(process, "Ctrl-C ends it"))
        assert "finished in" in text
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert (tmp_path / "copy" / "workspace" / "new.xlsx").is_file()


def _until(process, end):
    """Read the lines of a process, up to one with a text."""
    for line in process.stdout:
        yield line
        if end in line:
            return


def _forms(html):
    return [part.partition('"')[0] for part in html.split('data-answer="')[1:]]


def test_metrics_of_a_run_take_the_token_of_the_environment(job, tmp_path, monkeypatch):
    monkeypatch.setenv("CALLBOARD_OBSERVE__METRICS", "true")
    monkeypatch.setenv("CALLBOARD_OBSERVE__METRICS_TOKEN", "a-token-of-a-monitor")
    with started("run", job, "--console", "--output", tmp_path / "copy", folder=tmp_path) as process:
        visitor = Visitor(link_of(process.stdout))
        assert visitor.ask("/metrics")[0] == 401
        visitor.headers = {"authorization": "Bearer a-token-of-a-monitor"}
        status, body, _ = visitor.ask("/metrics")
        assert (status, "callboard_tasks_total" in body) == (200, True)


def test_console_without_a_journal_is_refused_before_the_start(call, folder):
    job = folder()
    (job / "callboard.yaml").write_text("models: {host: 'scripted:script.yaml'}\ndocuments: {workspace: workspace}\n")
    result = call("run", str(job / "task.yaml"), "--settings", str(job), "--console")
    assert result.exit_code == 2
    assert "--console shows a journal, and none is named" in result.output


def test_missing_journal_is_told_before_a_link(call, tmp_path):
    result = call("console", str(tmp_path / "nothing.db"))
    assert result.exit_code == 2


def test_port_that_is_taken_is_told(job, tmp_path, call):
    command_line("run", job, "--yes", "--output", tmp_path / "copy")
    with started("console", tmp_path / "copy", "--port", 0, folder=tmp_path) as process:
        port = urlsplit(link_of(process.stdout)).port
        result = call("console", str(tmp_path / "copy"), "--port", str(port))
    assert result.exit_code == 2
    assert f"the console can't use port {port}" in " ".join(result.output.split())
