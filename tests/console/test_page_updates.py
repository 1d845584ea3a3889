"""Pages that change while a person looks at them."""

from __future__ import annotations

import threading

import pytest
from playwright.sync_api import expect

from support import FINISH, PATIENCE, append, lone

expect.set_options(timeout=PATIENCE * 1000)


@pytest.fixture
def working(office, page):
    """Open the page of a task that works: ``handle, end = working``."""
    gate = threading.Event()

    def model(request):
        if request.step == 1:
            return append("x")
        gate.wait(PATIENCE)
        return FINISH

    started = office(app=model)
    handle = started.supervisor.submit(lone(id="t-1"))
    page.goto(started.server.link().replace("/#", "/tasks/t-1#"))
    expect(page.locator(".history li")).to_have_count(2)

    def end():
        gate.set()
        handle.result(PATIENCE)
        expect(page.get_by_role("heading", name="Result")).to_be_visible()

    yield end
    gate.set()


def test_state_machine_follows_the_run(working, page):
    page.locator("a[data-run]").click()
    present = page.locator(".state.present text")
    expect(present).to_have_text("CONTINUE")
    working()
    expect(present).to_have_text("FINISH")


def test_opened_entry_stays_open_when_the_result_comes(working, page):
    first = page.locator(".history details").first
    first.locator("summary").click()
    page.evaluate("window.firstEntry = document.querySelector('.history details')")
    working()
    assert page.evaluate("window.firstEntry === document.querySelector('.history details') && window.firstEntry.open")


def test_answer_that_comes_late_does_not_replace_a_newer_one(office, page):
    started = office(app=lambda _: FINISH)
    page.goto(started.server.link())
    expect(page.get_by_text("No task fits")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("live")
    late = []

    def keep(route):
        if route.request.resource_type == "fetch" and not late:
            late.append((route, route.fetch()))
        else:
            route.continue_()

    page.route(f"{started.origin}/", keep)
    started.supervisor.submit(lone()).result(PATIENCE)
    while not late:
        page.wait_for_timeout(10)
    started.supervisor.submit(lone()).result(PATIENCE)
    page.get_by_role("link", name="Health").click()
    page.get_by_role("link", name="Tasks").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    ((route, response),) = late
    with page.expect_response(f"{started.origin}/"):
        route.fulfill(response=response)
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_long_arguments_of_an_approval_are_all_in_sight(office, page):
    text = "\n".join(f"line {number}" for number in range(200))
    started = office(app=lambda _: append(text), policy=[{"verdict": "approve", "tool": "append", "reason": "a nod"}])
    handle = started.supervisor.submit(lone())
    page.goto(started.server.link().replace("/#", "/waiting#"))
    arguments = page.locator(".ask pre")
    expect(arguments).to_contain_text("line 199")
    assert arguments.evaluate("part => part.scrollHeight <= part.clientHeight + 2")
    handle.cancel("enough")


def test_page_in_the_dark_theme_is_printed_in_the_light_one(office, page):
    started = office(app=lambda _: FINISH)
    page.goto(started.server.link())
    page.evaluate("document.documentElement.classList.add('dark')")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_page_is_not_loaded_again_before_it_has_come(office, page):
    started = office(app=lambda _: FINISH)
    page.goto(started.server.link())
    expect(page.locator("#connection")).to_have_text("live")
    loads = []

    def keep(route):
        loads.append(route)

    page.route(f"{started.origin}/", keep)
    for _ in range(2):
        started.supervisor.submit(lone()).result(PATIENCE)
        while not loads:
            page.wait_for_timeout(10)
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 1000))")
    assert len(loads) == 1
    loads[0].continue_()
    while len(loads) < 2:
        page.wait_for_timeout(10)
    loads[1].continue_()
    expect(page.locator("tbody tr")).to_have_count(2)
