"""Each page of the console, judged by axe-core in both themes and at two widths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from support import FINISH, PATIENCE, append, lone, wait_for

AXE = os.environ.get("AXE_CORE", "")
"""The file axe.min.js of axe-core; `.ci/run` installs it."""
NOD = [{"verdict": "approve", "tool": "append", "reason": "appended text stays"}]
RUN = "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"

pytestmark = pytest.mark.skipif(not AXE, reason="AXE_CORE names no axe.min.js")


def model(request):
    """Append, ask and finish."""
    if request.request == "ask":
        return {"Status": "PENDING", "Questions": ["Which greeting?", {"text": "Which one?", "choices": ["a", "b"]}]}
    return append(request.request) if request.step == 1 else FINISH


@pytest.fixture(scope="module")
def full(shared_office, shared_page):
    """Start an office with an ended task, an approval and a question, and sign in."""
    started_office = shared_office(app=model, windows=("one", "two"), policy=[*NOD, {"verdict": "allow"}])
    ended = started_office.supervisor.submit(lone(id="ended", request="hello", labels={"team": "east"}))
    shared_page.goto(started_office.server.link())
    expect(shared_page.get_by_role("link", name="hello")).to_be_visible()
    (approval,) = wait_for(ended.approvals)
    ended.approve(approval.id)
    assert ended.result(PATIENCE).ok
    question = started_office.supervisor.submit(lone(request="ask"))
    approval = started_office.supervisor.submit(lone("memo:two", request="wait"))
    wait_for(question.questions)
    wait_for(approval.approvals)
    return started_office


def serious(page):
    """Return the serious and critical findings on a page."""
    return [
        (violation["id"], node["html"][:200], node["failureSummary"])
        for violation in page.evaluate(RUN)
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]


def open_all(page, office, path):
    """Open a page of the console with all of its parts, and load axe-core into it."""
    page.goto(f"{office.origin}{path}")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("live")
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    if path.startswith("/tasks"):
        page.locator("a[data-run]").first.click()
        expect(page.locator(".machine")).to_be_visible()
        page.get_by_role("textbox").fill("- {verdict: deny, tool: append, reason: no texts}")
        page.get_by_role("button", name="Show their verdicts").click()
        expect(page.locator(".rulings tbody tr").first).to_be_visible()
    for button in page.locator("[data-settles]").all():
        expect(button).to_be_enabled()
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", ["/", "/waiting", "/health", "/tasks/ended"])
def test_page_has_no_serious_findings_in_both_themes_and_widths(full, shared_page, path):
    page = shared_page
    open_all(page, full, path)
    assert page.title().endswith(" \N{MIDDLE DOT} Callboard")  # desktops refuse such windows
    for width in (400, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for button in page.locator("[data-settles]").all():
                expect(button).to_be_enabled()
            assert serious(page) == [], (width, scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (width, scheme)


def test_finding_is_seen(full, shared_page):
    open_all(shared_page, full, "/")
    shared_page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [finding[0] for finding in serious(shared_page)] == ["button-name"]
