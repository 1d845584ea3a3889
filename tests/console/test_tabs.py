"""Sign-ins in several tabs of one browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support import FINISH, PATIENCE, lone

expect.set_options(timeout=PATIENCE * 1000)


@pytest.fixture
def opened(office, page):
    """Start an office with a task, and open its console by a link."""
    started = office(app=lambda _: FINISH)
    started.supervisor.submit(lone(request="sum the sales")).result(PATIENCE)
    page.goto(started.server.link())
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    return started


def test_newer_link_signs_in_in_the_same_tab(opened, page):
    page.evaluate("sessionStorage.clear()")
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("You are not signed in here")
    page.goto(opened.server.link())
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    assert page.url == f"{opened.origin}/"


def test_second_link_leaves_the_first_tab_signed_in(opened, page):
    other = page.context.new_page()
    other.goto(opened.server.link())
    expect(other.get_by_role("heading", name="Tasks")).to_be_visible()
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("heading", name="Health")).to_be_visible()


@pytest.mark.parametrize("click", [{"modifiers": ["Control"]}, {"button": "middle"}])
def test_link_opened_in_a_new_tab_is_signed_in(opened, page, click):
    with page.context.expect_page() as tab:
        page.get_by_role("link", name="sum the sales").click(**click)
    expect(tab.value.get_by_role("heading", name="sum the sales")).to_be_visible()
    assert page.url == f"{opened.origin}/"


def test_end_of_a_sign_in_is_shown_in_place_of_live(opened, page):
    expect(page.locator("#connection")).to_have_text("live")
    page.context.clear_cookies()
    opened.supervisor.submit(lone(request="later")).result(PATIENCE)
    expect(page.locator("#connection")).to_contain_text("Your sign-in has ended")
