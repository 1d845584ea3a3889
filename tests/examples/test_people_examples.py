"""The examples of people in the loop run as a reader would run them, and the page shows them as they are."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import httpx2
import pytest

import forks
from callboard import EventName, FunctionModel
from callboard.testing import MemoryServer
from support import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = ROOT / "examples" / "people"
PAGE = (ROOT / "docs" / "people.md").read_text(encoding="utf-8")


def run(name):
    command = [sys.executable, "-W", "error", str(PEOPLE / name)]
    done = forks.run(command, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def load(name):
    spec = importlib.util.spec_from_file_location(f"people_{name}", PEOPLE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(PEOPLE.glob("*.py")), ids=lambda path: path.name)
def test_the_page_shows_every_example_as_it_is(path):
    assert path.read_text(encoding="utf-8") in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert f"/examples/people/{path.name}" in PAGE


def test_the_callback_answers_and_approves():
    assert run("callback.py") == [
        "app/memo/one asks: Which greeting? hello or goodbye? I say hello.",
        "app/memo/one wants to append {'text': 'hello', 'control_id': 'field-1'}: appended text stays. I agree.",
        "The task finished.",
    ]


def test_the_queue_brings_what_waits_one_by_one():
    assert run("inbox.py") == [
        "sweep the kitchen: finished",
        "sweep the cellar: finished",
        "sweep the attic: rejected rejected by ada: the attic is locked",
    ]


class Browser:
    """Asks the web example."""

    def __init__(self, url):
        self.url = url

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as response:  # noqa: S310 - our own server
            return json.load(response)

    def post(self, path, **said):
        request = urllib.request.Request(self.url + path, json.dumps(said).encode())  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def waits(self, kind):
        """Ask until something waits; each answer is a round trip, not a pause."""
        while True:
            for ask in self.get("/waiting"):
                if ask["kind"] == kind:
                    return ask


@pytest.fixture
def browser():
    """Run the web example, and give a browser for it."""
    command = [sys.executable, str(PEOPLE / "web.py"), "0"]
    with forks.Program(command, stdout=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            yield Browser(process.stdout.readline().strip())
        finally:
            watchdog.cancel()
            process.terminate()
            process.wait(PATIENCE)


def test_the_web_handler_lists_what_waits_and_takes_answers(browser):
    _, submitted = browser.post("/tasks", request="hello")
    task = submitted["task"]
    question = browser.waits("question")
    assert question["questions"][0]["text"] == "Which greeting?"
    answer = {"task": task, "id": question["id"], "by": "ada", "answers": ["hello"]}
    assert browser.post("/waiting", **answer) == (200, {})
    approval = browser.waits("approval_request")
    assert approval["actions"][0]["arguments"] == {"control_id": "field-1", "text": "hello"}
    assert approval["observation"]["controls"][0]["id"] == "field-1"
    decision = {"task": task, "id": approval["id"], "by": "bob", "approve": True}
    assert browser.post("/waiting", **decision) == (200, {})
    assert browser.get(f"/tasks/{task}")["outcome"] == "finished"
    code, said = browser.post("/waiting", **decision)
    assert (code, "is not open" in said["error"]) == (409, True)


def test_the_web_handler_rejects_with_a_reason(browser):
    _, submitted = browser.post("/tasks", request="hello")
    task = submitted["task"]
    question = browser.waits("question")
    assert browser.post("/waiting", task=task, id=question["id"], by="ada", answers=[])[0] == 422
    browser.post("/waiting", task=task, id=question["id"], by="ada", answers=["hello"])
    approval = browser.waits("approval_request")
    browser.post("/waiting", task=task, id=approval["id"], by="bob", approve=False, reason="not today")
    result = browser.get(f"/tasks/{task}")
    assert (result["outcome"], result["causes"][0]["reason"]) == ("rejected", "rejected by bob: not today")


@pytest.fixture
def console_program(tmp_path):
    """Run the example with the console, and give its address."""
    command = [sys.executable, str(PEOPLE / "console.py"), "0"]
    with forks.Program(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            yield process.stdout.readline().strip()
        finally:
            watchdog.cancel()
            process.terminate()
            process.wait(PATIENCE)


def test_the_console_is_open_for_those_who_sign_in_to_its_program(console_program):
    with httpx2.Client(base_url=console_program, headers={"origin": console_program}) as client:
        assert client.get("/console/").status_code == 401
        assert client.post("/console/session", json={}).status_code == 401
        assert client.post("/", data={"name": "ada", "password": "wrong"}).status_code == 401
        assert client.post("/", data={"name": "ada", "password": "an example"}).headers["location"] == "/console/"
        assert 'data-root="/console"' in client.get("/console/").text
        token = {"x-callboard-token": client.post("/console/session", json={}).json()["token"]}
        while not (forms := re.findall('data-answer="(.*?)"', client.get("/console/waiting", headers=token).text)):
            pass  # each answer is a round trip, not a pause
        assert client.post(f"/console/{forms[0]}", json={"verdict": "approve"}, headers=token).status_code == 200
        while "finished" not in client.get("/console/", headers=token).text:
            pass
        client.post("/leave")
        assert client.get("/console/", headers=token).status_code == 401


async def test_the_web_handler_runs_inside_the_loop_of_a_host_program(start):
    web = load("web")
    window = MemoryServer.window()
    policy = [{"verdict": "approve", "tool": "append"}]
    supervisor = start(app=FunctionModel(web.work), servers=[MemoryServer(window)], policy=policy)
    counter = web.Counter(supervisor, window.id)
    transport = httpx2.ASGITransport(app=counter.application())
    async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
        task = (await client.post("/tasks", json={"request": "hello"})).json()["task"]
        asked = {EventName.QUESTION_ASKED: {"answers": ["hello"]}, EventName.APPROVAL_REQUESTED: {"approve": True}}
        async for event in counter.handles[task]:
            if event.name in asked:
                (ask,) = (await client.get("/waiting")).json()
                said = {"task": task, "id": ask["id"], "by": "ada", **asked[event.name]}
                assert (await client.post("/waiting", json=said)).status_code == 200
        assert (await client.get(f"/tasks/{task}")).json()["outcome"] == "finished"
