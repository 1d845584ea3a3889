"""Agents in a browser: tabs of tasks, approvals, secrets, files, checks, and the time between tasks."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

import forks
from callboard.config import NetworkSettings
from callboard.messages import EventName, Outcome, Secret, Task
from callboard.surfaces.browser import BrowserSurface
from shop import LOOPBACK
from support import FINISH, PATIENCE, call

SANDBOX = os.geteuid() != 0
"""Root runs these without it, since Chromium's does not work as root; test_browser.py has pages in a sandbox."""
NETWORK = NetworkSettings(allow=LOOPBACK)
ALLOW = [{"verdict": "allow"}]


@pytest.fixture(scope="module", autouse=True)
def programs(requires_browser):
    pass


@pytest.fixture
def work(start, debugging_port):
    """Start a supervisor with a browser: a HostAgent opens an address, and gives the tab to an agent with a script."""

    def started(url, steps, policy=ALLOW, surface=None, **sections):
        def host(request):
            tabs = [target for target in request.observation.targets if target.kind.value == "window"]
            if request.memory and request.memory[-1].decision.status == "ASSIGN":
                return FINISH
            if not tabs:
                return call("open_in_browser", application="browser", arguments={"address": url})
            return {"Status": "ASSIGN", "ControlText": tabs[0].id, "Current Sub-Task": "shop"}

        def app(request):
            step = steps[len(request.memory)] if len(request.memory) < len(steps) else FINISH
            return step(request.observation) if callable(step) else step

        surface = surface or BrowserSurface(cdp_url=debugging_port, network=NETWORK)
        return start(host=host, app=app, servers=[surface], policy=policy, **sections)

    return started


def on(name, tool, kind="", **arguments):
    """Make a step: a call on the control with a name."""

    def step(observation):
        found = [each for each in observation.controls if each.name == name and kind in {"", each.kind}]
        assert found, [(each.kind, each.name) for each in observation.controls]
        return call(tool, control_id=found[0].id, **arguments)

    return step


def results_of(handle):
    """List the calls of agents, with their errors."""
    events = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    return [(data["tool"], data["error"]) for data in events]


def test_a_task_orders_in_its_own_tab_and_the_page_is_checked(work, shop):
    count = len(shop.orders)
    steps = [
        on("Order the kettle", "click"),
        on("Name", "fill", text="Ada"),
        on("Size", "select", options=["large"]),
        on("Send the order", "click"),
        call("wait_for", text="Thank you"),
    ]
    checks = [
        {"page": {"url": "*/confirm", "contains": "Thank  you"}},
        {"page": {"url": "*/confirm"}, "path": "/title", "equals": "Thanks"},
    ]
    handle = work(shop.url, steps).submit(Task(request="order", checks=checks))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True), result
    assert shop.orders[count:] == [{"name": "Ada", "size": "large"}]
    assert [error for _, error in results_of(handle) if error] == []


def test_sending_needs_an_approval_and_nothing_is_sent_without(work, shop):
    count = len(shop.orders)
    policy = [{"tool": "open_in_browser", "verdict": "allow"}]
    handle = work(f"{shop.url}/order", [on("Send the order", "click")], policy).submit(Task(request="order"))
    event = next(event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    assert "sends" in str(event.data)
    assert "spends" in str(event.data)
    handle.reject(handle.approvals()[0].id, "not today")
    handle.result(PATIENCE)
    assert len(shop.orders) == count


@pytest.mark.parametrize("remember", [False, True])
def test_form_that_changes_while_a_person_decides_is_asked_about_again(work, shop, watch, remember):
    count = len(shop.orders)
    policy = [{"tool": "open_in_browser", "verdict": "allow"}]
    handle = work(f"{shop.url}/order", [on("Send the order", "click")], policy).submit(Task(request="order"))
    requests = (event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    next(requests)
    (first,) = handle.approvals()
    assert f"it would send to {shop.url}" in first.reason
    watch(first.target.id).script(f"() => {{ document.forms[0].action = '{shop.other_url}/confirm' }}")
    handle.approve(first.id, remember=remember)
    next(requests)
    (second,) = handle.approvals()
    assert f"it would send to {shop.other_url}" in second.reason
    assert len(shop.orders) == count
    handle.approve(second.id)
    assert handle.result(PATIENCE).ok
    assert len(shop.orders) == count + 1


def test_a_secret_is_typed_only_into_pages_of_its_origin(work, shop):
    pages = Secret(value="correct horse battery", parameters=["text"], origins=[shop.url])
    steps = [
        on("Password", "fill", text="${secret:pw}"),
        call("open", address=f"{shop.other_url}/login"),
        on("Password", "fill", text="${secret:pw}"),
    ]
    handle = work(f"{shop.url}/login", steps).submit(Task(request="log in", secrets={"pw": pages}))
    handle.result(PATIENCE)
    errors = [error for tool, error in results_of(handle) if tool == "fill"]
    assert errors[0] == ""
    assert "is not for http://localhost" in errors[1]


def test_a_download_and_a_pdf_become_results_of_the_task(work, shop):
    steps = [on("Price list", "download"), call("save_as_pdf")]
    checks = [{"downloaded": "prices.csv"}, {"downloaded": "*.pdf"}, {"downloaded": "absent.csv"}]
    # A browser of another user can't give its files to this one.
    surface = BrowserSurface("chromium", sandbox=SANDBOX, network=NETWORK)
    supervisor = work(shop.url, steps, surface=surface, limits={"check_retries": 0})
    handle = supervisor.submit(Task(request="save", checks=checks))
    result = handle.result(PATIENCE)
    assert [check.held for check in result.checks] == [True, True, False]
    files = {Path(path).name: Path(path).read_bytes() for path in result.artifacts}
    assert files["prices.csv"] == b"item,price\nkettle,24.50\n"
    assert files["page.pdf"].startswith(b"%PDF")


KILLED = """
import os, sys
from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.config import NetworkSettings
from callboard.surfaces.browser import BrowserSurface

def host(request):
    tabs = [target for target in request.observation.targets if target.kind.value == "window"]
    if tabs:
        return {"Status": "ASSIGN", "ControlText": tabs[0].id, "Current Sub-Task": "send"}
    opening = {"application": "browser", "arguments": {"address": sys.argv[2]}}
    return {"Status": "CONTINUE", "Function": "open_in_browser", "Args": opening}

def app(request):
    button = next(control for control in request.observation.controls if control.name == "Send")
    return {"Status": "CONTINUE", "Function": "click", "Args": {"control_id": button.id}}

Supervisor.start(
    Settings.load(journal={"path": sys.argv[1], "durability": "process"}, policy=[{"verdict": "allow"}]),
    models={"host": FunctionModel(host), "app": FunctionModel(app)},
    servers=[BrowserSurface("chromium", sandbox=os.geteuid() != 0, network=NetworkSettings(allow=["127.0.0.1:*"]))],
).submit(Task(id="order", request="order")).result()
"""


def test_a_form_in_doubt_is_asked_about_and_not_sent_again(start, shop, tmp_path):
    shop.pages["/once"] = """<button>Send</button><script>document.querySelector('button').onclick = () => {
        const request = new XMLHttpRequest(); request.open('POST', '/slow', false); request.send('x=1') }</script>"""
    count, journal = len(shop.orders), tmp_path / "journal.db"
    shop.received.clear()
    shop.released.clear()
    program = forks.Program([sys.executable, "-c", KILLED, journal, f"{shop.url}/once"])
    assert shop.received.wait(PATIENCE), "the form is not sent"
    holder = json.loads((tmp_path / "journal.db.surfaces" / "browser" / "browser.json").read_text())["pid"]
    for pid in (program.pid, holder):
        os.kill(pid, signal.SIGKILL)
    program.wait(PATIENCE)
    shop.released.set()

    supervisor = start(
        host=lambda request: FINISH,
        app=lambda request: FINISH,
        servers=[BrowserSurface("chromium", sandbox=SANDBOX, network=NETWORK)],
        policy=ALLOW,
        journal={"path": journal, "durability": "process"},
    )
    handle = supervisor.submit(Task(id="order", request="order"))
    for event in handle.events():
        if event.name is EventName.QUESTION_ASKED:
            handle.answer(handle.questions()[0].id, "it was done")
    probes = [event.data["probe"] for event in handle.events() if event.name is EventName.COMMAND_IN_DOUBT]
    assert probes == ["unknown", "done"]  # the second is the person's answer
    assert len(shop.orders) == count + 1


@pytest.mark.slow
def test_a_second_task_works_after_a_pause(work, shop):
    supervisor = work(shop.url, [call("read")])
    assert supervisor.submit(Task(request="first")).result(PATIENCE).ok
    time.sleep(10)  # threads of lanes end meanwhile
    assert supervisor.submit(Task(request="second")).result(PATIENCE).ok


def test_page_check_of_a_follow_up_finds_a_tab_of_the_earlier_task(work, shop):
    supervisor = work(shop.url, [])
    first = supervisor.submit(Task(request="open the shop"))
    assert first.result(PATIENCE).ok
    checks = [{"page": {"url": f"{shop.url}/", "contains": "Kettle"}}]
    second = supervisor.submit(Task(request="is it open?", session=first.session, checks=checks))
    assert second.result(PATIENCE).verified
    assert results_of(second) == []
