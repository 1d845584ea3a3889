"""Each page of the console, judged by axe-core in both themes and at two widths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from support import FINISH, PATIENCE, append, lone

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


@pytest.fixture
def full(office, page):
    """Start an office with an ended task, an approval and a question, and sign in."""
    started_office = office(app=model, policy=[*NOD, {"verdict": "allow"}])
    ended = started_office.supervisor.submit(lone(request="hello", labels={"team": "east"}))
    page.goto(started_office.server.link())
    expect(page.get_by_role("link", name="hello")).to_be_visible()
    page.goto(f"{started_office.origin}/waiting")
    page.get_by_role("button", name="Approve").click()
    assert ended.result(PATIENCE).ok
    started_office.supervisor.submit(lone(request="ask"))
    expect(page.get_by_text("Which greeting?")).to_be_visible()
    started_office.ended = ended.task_id
    return started_office


def serious(page):
    """Return the serious and critical findings on a page."""
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    return [
        (violation["id"], node["html"][:200], node["failureSummary"])
        for violation in page.evaluate(RUN)
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_no_page_has_serious_findings(full, page, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    for path in ("/", "/waiting", "/health", f"/tasks/{full.ended}"):
        page.goto(f"{full.origin}{path}")
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator("#connection")).to_have_text("live")
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        if path.startswith("/tasks"):
            page.locator("a[data-run]").first.click()
            expect(page.locator(".machine")).to_be_visible()
        for button in page.locator("[data-settles]").all():
            expect(button).to_be_enabled()
        assert serious(page) == [], path
        assert page.title().endswith(" \N{MIDDLE DOT} Callboard")  # desktops refuse such windows
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_finding_is_seen(full, page):
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [finding[0] for finding in serious(page)] == ["button-name"]
