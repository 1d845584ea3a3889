"""A task through all of the shop: list, form and confirmation, with all that makes pages hard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from callboard.config import NetworkSettings
from callboard.messages import EventName, Outcome, Task
from callboard.surfaces.browser import BrowserSurface
from shop import LOOPBACK
from support import FINISH, PATIENCE, call

RUNS = 20
IN_GATE = 1
SLOW_ANSWER_SECONDS = 0.1
TABLE = {"header": ["Item", "Price"], "rows": [["Kettle", "24.50"], ["Cup", "3.20"], ["Postage is free"] * 2]}


@pytest.fixture(scope="module")
def slow_shop(requires_browser, shop):
    """Let each answer take its time."""
    shop.seconds = SLOW_ANSWER_SECONDS
    yield shop
    shop.seconds = 0.0


def on(name, tool, kind="", **arguments):
    """Make a step: a call on a control as soon as it is there."""

    def step(observation):
        for control in observation.controls:
            if control.name == name or (not name and control.kind == kind):
                return call(tool, control_id=control.id, **arguments)
        return {"Status": "CONTINUE", "Function": "wait_for", "Args": {"control": name}}

    return step


LIST_STEPS = [
    on("In the shadow", "click"),
    on("Read the news", "click"),
    on("", "extract_table", "table"),
    on("Price list", "download"),
    on("Empty the cart", "click"),
    call("accept_dialog"),
    on("In a new tab", "click"),
]
FORM_STEPS = [
    on("Name", "fill", text="Ada"),
    on("Size", "select", options=["large"]),
    on("A gift", "check"),
    on("Send the order", "click"),
    call("wait_for", text="Thank you"),
]


class Customer:
    """The scripted models of one task.

    Args:
        url: The address of the shop.
    """

    def __init__(self, url):
        self._url = url
        self._steps = {"list": list(LIST_STEPS), "form": list(FORM_STEPS)}

    def host(self, request):
        """Open the list, and give each of the two tabs to an agent."""
        tabs = [target.id for target in request.observation.targets if target.kind.value == "window"]
        assigned = [entry for entry in request.memory if entry.decision.status == "ASSIGN"]
        if not tabs:
            return call("open_in_browser", application="browser", arguments={"address": self._url})
        if len(assigned) == 2:
            return {**FINISH, "Result": request.subtasks[0].output}
        subtask, tab = (("list", tabs[0]), ("form", tabs[-1]))[len(assigned)]
        return {"Status": "ASSIGN", "ControlText": tab, "Current Sub-Task": subtask}

    def app(self, request):
        """Take the next step; one whose control is not there yet is tried again."""
        steps = self._steps[request.request]
        if not steps:
            results = [result for record in request.memory for result in record.results]
            tables = [result.value for result in results if result.tool == "extract_table"]
            return {**FINISH, "Result": tables[0] if tables else None}
        answer = steps[0](request.observation) if callable(steps[0]) else steps[0]
        if answer["Function"] != "wait_for" or not callable(steps[0]):
            steps.pop(0)
        return answer


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=pytest.mark.slow if run >= IN_GATE else ()) for run in range(RUNS)]
)
def test_an_order_through_all_pages_is_verified(start, slow_shop, run):
    customer, count = Customer(slow_shop.url), len(slow_shop.orders)
    supervisor = start(
        host=customer.host,
        app=customer.app,
        servers=[BrowserSurface("chromium", sandbox=os.geteuid() != 0, network=NetworkSettings(allow=LOOPBACK))],
        policy=[{"verdict": "allow"}],
    )
    checks = [
        {"page": {"url": "*/confirm", "contains": f"Thank you Order {count + 1}"}},
        {"page": {"url": f"{slow_shop.url}/"}, "path": "/title", "equals": "empty"},
        {"control": {"target": f"{slow_shop.url}/", "name": "read", "kind": "button"}},
        {"downloaded": "prices.csv"},
    ]
    handle = supervisor.submit(Task(request="order a cup", checks=checks))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True), result
    assert slow_shop.orders[count:] == [{"name": "Ada", "size": "large", "gift": "on"}]
    assert result.output == TABLE
    assert [Path(path).name for path in result.artifacts] == ["prices.csv"]
    ended = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert [data["error"] for data in ended if data["error"]] == []
