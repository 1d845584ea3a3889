"""The browser surface: tabs as targets, looks, and tools, in a browser in its sandbox."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import io
import json
import os
import socket
import time
from pathlib import Path

import pytest

from callboard.messages import Intent, Look, LookBudget, Probe
from callboard.surfaces import InDoubtError, ToolError
from chromium import HOME
from support import PATIENCE


def test_a_page_has_controls_of_its_frames_and_shadow_roots(visit, shop):
    tab = visit(shop.url)
    names = {control.name: control.kind for control in tab.look().controls}
    assert names["Search"] in {"textbox", "button"}
    assert names["Order the kettle"] == "link"
    assert names["In the shadow"] == "button"
    tab.control("Read the news", "button")
    tab.do("click", "In the shadow")
    assert tab.look().window["title"] == "shadowed"
    tab.do("click", "Read the news")
    assert tab.control("read", "button")


def test_boxes_are_places_in_the_picture(visit, shop):
    from PIL import Image

    tab = visit(shop.url)
    tab.control("Read the news")
    tab.script("() => { const frame = document.querySelector('iframe').contentDocument;"
               "frame.body.style.background = 'white'; frame.querySelector('button').style.cssText ="
               "'background: red; border: 0; color: red'; }")  # fmt: skip
    look = tab.look(picture=True)
    box = next(control.box for control in look.controls if control.name == "Read the news")
    image = Image.open(io.BytesIO(look.picture)).convert("RGB")
    inside = image.crop((box.x + 1, box.y + 1, box.x + box.width - 1, box.y + box.height - 1))
    assert inside.getcolors() == [(inside.width * inside.height, (255, 0, 0))]
    assert image.getpixel((box.x - 2, box.y + 2)) == (255, 255, 255)


def test_readable_text_is_cut_with_a_note(visit, shop):
    shop.pages["/long"] = "".join(f"<p>Paragraph {number}</p>" for number in range(2_000))
    tab = visit(f"{shop.url}/long")
    look = tab.look()
    assert look.text.startswith("Paragraph 0\nParagraph 1\n")
    assert any("more characters" in note for note in look.notes)
    first = tab.do("read")
    second = tab.do("read", start=first["next"])
    assert (first["text"] + second["text"]).splitlines()[-1] == "Paragraph 1999"
    small = tab.run(tab.surface.observe(tab.target, Look(picture=False, budget=LookBudget(text=10))))
    assert (len(small.text), len(small.notes)) == (10, 1)


def test_a_password_is_shown_nowhere(visit, shop):
    tab = visit(f"{shop.url}/login")
    before = tab.look().fingerprint
    tab.do("fill", "Password", text="correct horse")
    look = tab.look()
    assert "correct" not in repr(look)
    assert tab.control("Password").states == ("focused", "password")
    assert "correct" not in tab.do("read")["text"]
    assert look.fingerprint == before


def test_the_fingerprint_is_of_structure_and_text(visit, shop):
    tab = visit(shop.url)
    tab.control("Read the news")
    first = tab.look(picture=True).fingerprint
    tab.script("() => { document.body.style.background = 'green'; document.body.style.paddingTop = '50px' }")
    assert tab.run(tab.surface.fingerprint(tab.target)) == first
    tab.script("() => { late.textContent = 'here' }")
    assert tab.run(tab.surface.fingerprint(tab.target)) != first


def test_controls_of_another_document_have_other_ids(visit, shop):
    shop.pages["/twin"] = shop.page("/login", {})
    tab = visit(f"{shop.url}/login")
    button = tab.control("Enter")
    tab.do("open", address=f"{shop.url}/twin")
    assert tab.surface.resolve(tab.look(), button) is None
    with pytest.raises(ToolError, match="gone, or was replaced"):
        tab.do("click", button)


def test_a_replaced_control_is_not_clicked(visit, shop):
    tab = visit(shop.url)
    button = tab.control("Empty the cart")
    tab.script(
        "() => { const old = [...document.querySelectorAll('button')].at(-1);"
        "old.replaceWith(Object.assign(old.cloneNode(true), {onclick: () => document.title = 'hit'})) }"
    )
    with pytest.raises(ToolError, match="gone, or was replaced"):
        tab.do("click", button)
    assert tab.look().window["title"] == "Shop"


PROBLEMS = {
    "covered": ("b.insertAdjacentHTML('afterend', '<div style=\"position:fixed;inset:0\">x</div>')", "is covered"),
    "off the screen": ("b.style.cssText = 'position:absolute;left:-9999px'", "off the screen|has moved"),
    "disabled": ("b.disabled = true", "is disabled"),
    "moved": ("b.style.cssText = 'position:absolute;left:600px;top:300px'", "has moved since the look"),
    "moving": (
        """b.style.position = 'relative'; let i = 0;
        (function move() { b.style.left = (i++ % 9) + 'px'; requestAnimationFrame(move) })()""",
        "keeps moving",
    ),
}


@pytest.mark.parametrize(("script", "reason"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_control_that_is_not_ready_is_not_clicked(visit, shop, quick_checks, script, reason):
    shop.pages["/b"] = "<title>b</title><button id=b onclick=\"document.title = 'hit'\">Go</button>"
    tab = visit(f"{shop.url}/b")
    button = tab.control("Go")
    tab.script(f"() => {{ {script} }}")
    with pytest.raises(ToolError, match=reason):
        tab.do("click", button)
    assert tab.look().window["title"] == "b"


def test_a_form_is_filled_in_and_sent(visit, shop):
    tab = visit(f"{shop.url}/order")
    tab.do("fill", "Name", text="Ada")
    tab.do("type", "Name", text=" L")
    tab.do("select", "Size", options=["large"])
    tab.do("check", "A gift")
    tab.do("click", "Send the order")
    tab.wait_for(text="Thank you", address="*/confirm")
    assert shop.orders[-1] == {"name": "Ada L", "size": "large", "gift": "on"}
    tab.do("back")
    tab.wait_for(control="Send the order")


def test_a_key_presses_the_focused_control(visit, shop):
    tab = visit(shop.url)
    field = tab.control("Search", "textbox")
    tab.do("fill", field, text="cups")
    tab.do("press", keys="Enter")
    tab.wait_for(text="You searched for cups")


def test_a_table_is_extracted_with_its_header(visit, shop):
    tab = visit(shop.url)
    table = next(control for control in tab.look().controls if control.kind == "table")
    assert tab.do("extract_table", table) == {
        "header": ["Item", "Price"],
        "rows": [["Kettle", "24.50"], ["Cup", "3.20"], ["Postage is free", "Postage is free"]],
    }


def test_a_dialog_is_all_that_is_seen_until_it_is_answered(visit, shop):
    tab = visit(shop.url)
    tab.do("click", "Empty the cart")
    look = tab.look(picture=True)
    assert look.window["dialog"] == {"kind": "confirm", "message": "Delete the cart?"}
    assert [(control.kind, control.name) for control in look.controls] == [("page dialog", "Delete the cart?")]
    assert look.picture is None
    with pytest.raises(ToolError, match="shows a dialog"):
        tab.do("read")
    assert tab.hazards("accept_dialog") == {"deletes"}
    tab.do("dismiss_dialog")
    assert tab.look().window["title"] == "Shop"
    tab.do("click", "Empty the cart")
    tab.do("accept_dialog")
    assert tab.look().window["title"] == "empty"


def test_nothing_is_done_behind_an_open_dialog(visit, shop):
    tab = visit(shop.url)
    tab.do("click", "Empty the cart")
    for tool, arguments in (("open", {"address": f"{shop.url}/order"}), ("back", {}), ("scroll", {})):
        with pytest.raises(ToolError, match="shows a dialog"):
            tab.do(tool, **arguments)
    tab.do("dismiss_dialog")
    assert tab.look().window == {"url": f"{shop.url}/", "title": "Shop"}


def test_a_tab_is_closed_while_its_page_shows_a_dialog(visit, shop, run):
    tab = visit(shop.url)
    tab.do("click", "Empty the cart")
    run(tab.surface.stop(tab.target))
    assert [target.id for target in run(tab.surface.targets())] == ["browser"]


def test_a_page_that_shows_dialogs_forever_is_closed(surface, shop, run, tabs_of):
    shop.pages["/again"] = "<button onclick=\"for (;;) alert('again')\">Go</button>"
    tab = run(surface._browser.new_tab("one"))
    opened = next(opened for opened in tabs_of(surface) if opened.target.id == tab.id)
    opened.do("open", address=f"{shop.url}/again")
    opened.do("click", "Go")
    while not tab.page.is_closed():
        with contextlib.suppress(ToolError):  # between two dialogs there is none
            opened.do("dismiss_dialog")
    assert 10 <= tab.dialogs <= 12


def test_a_new_tab_is_a_target(visit, shop, run):
    tab = visit(shop.url)
    before = {target.id for target in run(tab.surface.targets())}
    tab.do("click", "In a new tab")
    while not (news := [target for target in run(tab.surface.targets()) if target.id not in before]):
        pass
    assert (news[0].owner, news[0].address) == (tab.target.owner, f"app/browser/{news[0].id}")


def test_a_page_behind_its_window_is_still_seen(visit, shop):
    shop.pages["/opener"] = "<button onclick=\"window.open('/order')\">Go</button>"
    tab = visit(f"{shop.url}/opener")
    before = tab.run(tab.surface.targets())
    tab.do("click", "Go")
    while len(tab.run(tab.surface.targets())) == len(before):
        pass
    assert tab.look(picture=True).picture


def test_conversations_have_contexts_of_their_own(surface, shop, run):
    tabs = {owner: run(surface._browser.new_tab(owner)) for owner in ("one", "other")}
    for owner, tab in tabs.items():
        run(tab.page.goto(shop.url))
        run(tab.page.evaluate(f"() => {{ document.cookie += 'owner={owner}' }}"))
    assert {owner: run(tab.page.evaluate("() => document.cookie")) for owner, tab in tabs.items()} == {
        "one": "owner=one",
        "other": "owner=other",
    }
    run(tabs["one"].page.evaluate("() => { window.open('/order') }"))
    while len(owners := [target.owner for target in run(surface.targets()) if target.binds]) < 3:
        pass
    assert sorted(owners) == ["one", "one", "other"]
    for target in run(surface.targets()):
        if target.binds:
            run(surface.stop(target))
    assert not surface._browser._contexts.keys() & {"one", "other"}


def test_a_page_is_busy_until_a_slow_answer_is_there(visit, shop, run, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.browser._tab._STALL_SECONDS", 0.2)
    tab = visit(shop.url)
    tab.control("Read the news")
    shop.hanging.clear()
    shop.released.clear()
    tab.script("() => { location.href = '/hang' }")
    assert shop.hanging.wait(PATIENCE)
    assert run(tab.surface.busy(tab.target)) is True
    look = tab.look(picture=True)
    assert look.window == {"url": f"{shop.url}/", "loading": f"{shop.url}/hang"}
    assert look.fingerprint == run(tab.surface.fingerprint(tab.target))
    assert "still loads" in look.notes[0]
    with pytest.raises(ToolError, match="still loads"):
        tab.do("read")
    shop.released.set()
    tab.wait_for(text="The page /hang")
    while run(tab.surface.busy(tab.target)):
        pass


def test_a_download_is_refused_unless_it_is_the_call(visit, shop):
    tab = visit(shop.url)
    tab.do("click", "Price list")
    while not any("prices.csv" in note for note in tab.look().notes):
        pass


def test_uploads_are_from_the_workspace_only(visit, shop, workspace, tmp_path):
    tab = visit(f"{shop.url}/order?enctype=multipart/form-data")
    (workspace / "note.txt").write_text("hello")
    (workspace / "link.txt").symlink_to("/etc/passwd")
    (workspace / "folder").symlink_to("/etc")
    os.mkfifo(workspace / "pipe")
    (tmp_path / "outside.txt").write_text("outside")
    (workspace / "second.txt").hardlink_to(tmp_path / "outside.txt")
    outside = ("../x", "/etc/passwd", "link.txt", "folder/passwd", "second.txt")
    for name in (*outside, "absent.txt", ".hidden", "a\0b", "pipe"):
        with pytest.raises(ToolError):
            tab.do("upload", "Note", files=[name])
    assert tab.control("Note").kind == "file field"
    tab.do("upload", "Note", files=["note.txt"])
    tab.do("click", "Send the order")
    tab.wait_for(text="Thank you")
    assert b"hello" in shop.orders[-1]["body"]


def test_a_button_may_stand_for_a_field_for_files(visit, shop, workspace):
    (workspace / "picture.txt").write_text("hello")
    shop.pages["/styled"] = (
        "<title>x</title><input type='file' id='f' hidden onchange='document.title = f.files[0].name'>"
        "<button onclick='f.click()'>Choose</button><button>Other</button>"
    )
    tab = visit(f"{shop.url}/styled")
    tab.do("upload", "Choose", files=["picture.txt"])
    assert tab.look().window["title"] == "picture.txt"


def test_hazards_follow_from_the_form(visit, shop):
    tab = visit(f"{shop.url}/order")
    assert tab.hazards("click", "Send the order") == {"sends", "spends"}
    assert tab.hazards("press", "Name", keys="Enter") == {"sends", "spends"}
    assert tab.hazards("press", "Name", keys="Tab") == set()
    assert tab.hazards("fill", "Name", text="x") == set()
    tab.do("open", address=f"{shop.url}/login")
    assert tab.hazards("click", "Enter") == {"sends", "logs_in"}
    tab.do("open", address=shop.url)
    search = tab.control("Search", "button")
    assert tab.hazards("click", search) == set()


FORMS = {
    "by its button": ("<form action='/x'><button formmethod='POST'>Go</button></form>", {"sends"}),
    "from elsewhere": ("<form id='f' method='Post' action='/x'></form><p><button form='f'>Go</button>", {"sends"}),
    "by a part of its button": (
        "<form method='post'><button><b role='button' style='cursor: pointer'>Go</b></button></form>",
        {"sends"},
    ),
    "with a clobbered method": (
        "<form method='post'><input name='method' value='get'><button>Go</button></form>",
        {"sends"},
    ),
    "in a shadow root": (
        """<div id='h'></div><script>h.attachShadow({mode: 'open'}).innerHTML =
        "<form method='post'><button>Go</button></form>"</script>""",
        {"sends"},
    ),
    "not at all": ("<form method='post'><button type='button'>Go</button></form>", set()),
    "as a link that stores": ("<a href='/prices.csv' download>Go</a>", {"downloads"}),
    "by its words": ("<button>Go</button><script>document.querySelector('button').textContent = 'Delete all'</script>",
                     {"deletes"}),
    "by words behind a label": ("<button aria-label='Go'>Buy now</button>", {"spends"}),
}  # fmt: skip


@pytest.mark.parametrize(("page", "hazards"), FORMS.values(), ids=FORMS.keys())
def test_a_press_has_the_hazards_of_its_form(visit, shop, page, hazards):
    shop.pages["/form"] = page
    tab = visit(f"{shop.url}/form")
    control = tab.control("Delete all" if "Delete" in page else "Go")
    assert tab.hazards("click", control) == hazards


def test_a_form_that_changes_after_the_ruling_is_not_sent(visit, shop):
    shop.pages["/bait"] = "<form action='/confirm' method='get'><input name='x'><button>Next</button></form>"
    tab, count = visit(f"{shop.url}/bait"), len(shop.orders)
    button = tab.control("Next")
    assert tab.hazards("click", button) == set()
    tab.script("() => { document.forms[0].method = 'post' }")
    with pytest.raises(ToolError, match="changed since the policy ruled"):
        tab.do("click", button)
    tab.script("() => { document.forms[0].method = 'get'; document.forms[0].onsubmit = () => "
               "{ document.forms[0].method = 'post' } }")  # fmt: skip
    assert tab.hazards("click", button) == set()
    tab.do("click", button)
    while not (notes := tab.look().notes):
        pass
    assert "tried to send a form" in notes[0]
    assert len(shop.orders) == count


def test_a_form_that_opens_a_tab_is_stopped_too(visit, shop):
    shop.pages["/bait"] = "<form action='/confirm' method='get' target='_blank'><button>Next</button></form>"
    tab, count = visit(f"{shop.url}/bait"), len(shop.orders)
    button = tab.control("Next")
    assert tab.hazards("click", button) == set()
    tab.script("() => { document.forms[0].onsubmit = () => { document.forms[0].method = 'post' } }")
    tab.do("click", button)
    while not (notes := tab.look().notes):
        pass
    assert "tried to send a form" in notes[0]
    assert len(shop.orders) == count


def test_a_form_that_asks_first_is_sent_after_the_answer(visit, shop):
    shop.pages["/ask"] = (
        "<form action='/confirm' method='post' onsubmit=\"return confirm('Really?')\"><button>Go</button></form>"
    )
    tab = visit(f"{shop.url}/ask")
    button = tab.control("Go")
    assert tab.hazards("click", button) == {"sends"}
    tab.do("click", button)
    assert tab.hazards("accept_dialog") == set()
    tab.do("accept_dialog")
    tab.wait_for(text="Thank you")


def test_a_page_that_an_action_with_a_hazard_made_is_not_repeatable(visit, shop):
    shop.pages["/ask"] = """<title>ask</title><button onclick="if (confirm('Pay 30 EUR?')) location = '/asked?c=1'">
        Go</button><button onclick="history.pushState(0, '', '/ask?q=1')">Push</button>"""
    shop.pages["/asked"] = "<title>asked</title><a href=/ask>Ask again</a>"
    tab = visit(f"{shop.url}/ask")
    tab.hazards("click", "Go")
    tab.do("click", "Go")
    assert tab.hazards("accept_dialog")
    tab.do("accept_dialog")
    tab.wait_for(address="*/asked?c=1")
    assert not tab.tab.is_repeatable
    tab.hazards("click", "Ask again")
    tab.do("click", "Ask again")
    tab.wait_for(address="*/ask")
    assert tab.tab.is_repeatable
    tab.hazards("click", "Push")
    tab.do("click", "Push")
    tab.wait_for(address="*/ask?q=1")
    assert tab.tab.is_repeatable
    tab.do("back")
    tab.do("back")
    tab.wait_for(address="*/asked?c=1")
    assert not tab.tab.is_repeatable


CARD = (
    "<form id='f' action='/paid'><input name='card' autocomplete='cc-number' value='4111'><button>Pay</button></form>"
)
DELAYED = {
    "by a script": ("<button onclick='f.submit()'>Next</button>", ["Next"]),
    "by its address": ("<button onclick=\"location = '/paid?card=4111'\">Next</button>", ["Next"]),
    "after the next action": ("<a href='javascript:f.requestSubmit()'>Next</a>", ["Wait", "Next"]),
    "without its field": (
        """<script>f.onsubmit = () => { f.remove(); return false }</script>
        <button onclick="location = '/paid?card=4111'">Next</button>""",
        ["Pay", "Wait", "Next"],
    ),
}
"""Pages that pay by GET, and their buttons in the order in which they are pressed."""


@pytest.mark.parametrize(("text", "names"), DELAYED.values(), ids=DELAYED)
def test_a_payment_by_get_that_a_script_sends_is_not_repeatable(visit, shop, text, names):
    shop.pages["/checkout"] = f"{CARD}<button>Wait</button>{text}"
    tab = visit(f"{shop.url}/checkout")
    assert tab.tab.is_repeatable
    for name in names:
        tab.hazards("click", name)
        tab.do("click", name)
    tab.wait_for(address="*/paid?card=4111")
    assert not tab.tab.is_repeatable


@pytest.mark.parametrize(("repeatable", "query"), [(True, "?item=cup"), (False, "")])
def test_a_tab_whose_page_crashes_is_empty_and_usable(surface, shop, run, tabs_of, repeatable, query):
    tab_id = run(surface._browser.new_tab("one")).id
    opened = next(opened for opened in tabs_of(surface) if opened.target.id == tab_id)
    opened.do("open", address=f"{shop.url}/order?item=cup")
    opened.look()  # the page's own record of its address has come by then
    opened.tab.is_repeatable = repeatable
    page = opened.tab.page
    page.once("crash", lambda _: crash.cancel())
    crash = asyncio.run_coroutine_threadsafe(crashing(page), page._loop)
    with pytest.raises(concurrent.futures.CancelledError):
        crash.result(PATIENCE)
    look = opened.look()
    assert (look.window["url"], len(look.notes)) == ("about:blank", 1)
    assert f"The page {shop.url}/order{query} has crashed" in look.notes[0]
    opened.do("open", address=f"{shop.url}/order?item=cup")
    assert opened.control("Send the order")
    assert opened.target.id == tab_id
    run(surface.stop(opened.target))


async def crashing(page):
    """Crash a page; the command itself gets no answer."""
    session = await page.context.new_cdp_session(page)
    await session.send("Page.crash")


def test_back_does_not_open_a_page_that_a_form_made(visit, shop):
    count, tab = len(shop.orders), visit(f"{shop.url}/order?item=cup")
    tab.hazards("click", "Send the order")
    tab.do("click", "Send the order")
    tab.wait_for(text="Thank you")
    tab.do("open", address=shop.url)
    with pytest.raises(ToolError, match="made by a form, which would be sent again"):
        tab.do("back")
    assert tab.look().window["title"] == "Shop"
    assert len(shop.orders) == count + 1


@pytest.fixture
def asking_tab(visit, shop):
    """Give a tab with a page that asks before it is left."""
    shop.pages["/draft"] = """<title>Draft</title><input aria-label="Text">
        <script>onbeforeunload = event => event.preventDefault()</script>"""
    tab = visit(shop.url)
    tab.do("open", address=f"{shop.url}/draft")
    tab.do("fill", "Text", text="unsaved")
    tab.do("press", "Text", keys="x")  # browsers let a page ask only after a key or a click
    return tab


def test_back_goes_on_when_the_dialog_of_the_page_is_accepted(asking_tab, shop):
    answer = asking_tab.do("back")
    assert answer["url"] == f"{shop.url}/draft"
    assert "accept_dialog leaves it, dismiss_dialog stays" in answer["dialog"]
    assert asking_tab.look().window["dialog"]["kind"] == "beforeunload"
    with pytest.raises(ToolError, match="accept_dialog or dismiss_dialog answers it"):
        asking_tab.do("back")
    asking_tab.do("accept_dialog")
    asking_tab.wait_for(control="Search")


def test_a_page_stays_when_its_dialog_is_dismissed(asking_tab, shop):
    asking_tab.do("back")
    asking_tab.do("dismiss_dialog")
    assert asking_tab.control("Text").detail["value"] == "unsavedx"
    assert "dismiss_dialog stays" in asking_tab.do("open", address=f"{shop.url}/order")["dialog"]
    asking_tab.do("dismiss_dialog")
    assert "dismiss_dialog stays" in asking_tab.do("back")["dialog"]
    asking_tab.do("accept_dialog")
    asking_tab.wait_for(control="Search")


def test_the_wheel_and_the_pointer_move(visit, shop):
    shop.pages["/far"] = (
        "<title>far</title><div style='height: 3000px' onmousemove=\"document.title = 'moved'\">"
        "<button onmouseenter=\"this.textContent = 'Open'\">Menu</button></div>"
        "<div id='box' style='height: 100px; overflow: auto' role='listbox' aria-label='List'>"
        "<div style='height: 900px'></div></div>"
    )
    tab = visit(f"{shop.url}/far")
    tab.do("hover", "Menu")
    assert tab.control("Open")
    tab.do("scroll", times=2)
    tab.run(tab.tab.page.wait_for_function("scrollY > 1000"))
    tab.do("scroll", "List")
    tab.run(tab.tab.page.wait_for_function("box.scrollTop > 50"))


def test_a_disabled_control_is_scrolled_and_hovered_over(visit, shop):
    shop.pages["/closed"] = (
        "<title>closed</title><textarea id='box' disabled aria-label='Terms' rows='3'>"
        + "<br>\n" * 90
        + "</textarea><button disabled onmouseover=\"document.title = 'over'\">Agree</button>"
    )
    tab = visit(f"{shop.url}/closed")
    tab.do("scroll", "Terms")
    tab.run(tab.tab.page.wait_for_function("box.scrollTop > 20"))
    tab.do("hover", "Agree")
    assert tab.look().window["title"] == "over"
    with pytest.raises(ToolError, match="textbox 'Terms' is disabled; nothing was done"):
        tab.do("fill", "Terms", text="x")


def test_a_control_is_dragged_onto_another(visit, shop):
    shop.pages["/drag"] = (
        "<title>drag</title><button draggable='true'>Card</button> <button ondragover='event.preventDefault()' "
        "ondrop=\"document.title = 'dropped'\">Done</button>"
    )
    tab = visit(f"{shop.url}/drag")
    tab.do("drag", "Card", to=tab.control("Done").id)
    assert tab.look().window["title"] == "dropped"


def test_a_tab_of_a_person_is_not_closed(visit, shop):
    with pytest.raises(ToolError, match="opened by a person"):
        visit(shop.url).do("close")


def test_a_tab_closes_though_the_browser_loses_the_first_command(visit, shop, run, monkeypatch):
    tab = visit(shop.url)
    page = tab.tab.page
    monkeypatch.setattr(page, "close", lambda: page.wait_for_event("close"))
    run(tab.surface.stop(tab.target))
    assert page.is_closed()


def test_a_look_waits_for_a_page_that_has_just_loaded(visit, shop, run, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.browser._tab._STALL_SECONDS", 0.1)
    tab = visit(shop.url).tab
    tab._loads._documents[tab.page.main_frame] = (time.monotonic(), "http://127.0.0.1/")

    async def answer() -> str:
        tab._loads.clear()
        await asyncio.sleep(0.3)
        return "answer"

    assert run(tab.run(answer(), PATIENCE)) == "answer"


def test_a_click_that_a_page_does_not_answer_is_in_doubt(visit, shop, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.browser._control_tools.ACTION_MS", 300)
    shop.pages["/stuck"] = "<button onclick='for (const end = Date.now() + 900; Date.now() < end;);'>Go</button>"
    tab = visit(f"{shop.url}/stuck")
    with pytest.raises(InDoubtError, match="in doubt"):
        tab.do("click", "Go")


def test_an_action_is_known_to_be_done_only_by_its_note(visit, shop, run):
    tab = visit(shop.url)
    intent = Intent(call_id="x", tool="click", arguments={}, fingerprint="f")
    begun = intent.model_copy(update={"noted": ("begun",)})
    assert run(tab.surface.probe(tab.target, intent, (), "f")) is Probe.NOT_DONE
    assert run(tab.surface.probe(tab.target, begun, (), "f")) is Probe.UNKNOWN


@pytest.mark.parametrize("address", ["file:///etc/passwd", "chrome://version", "view-source:http://127.0.0.1/",
                                     "data:text/html,x", "javascript:alert(1)", "http://a:b@127.0.0.1/"])  # fmt: skip
def test_only_addresses_of_pages_are_opened(visit, shop, address):
    tab = visit(shop.url)
    with pytest.raises(ToolError, match="opened"):
        tab.do("open", address=address)
    assert tab.tab.page.url == f"{shop.url}/"


def test_an_address_without_a_server_is_an_error(visit, shop):
    tab = visit(shop.url)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ToolError, match=r"can't be opened: The server does not answer: .*Connect"):
        tab.do("open", address=f"http://127.0.0.1:{port}/")
    tab.do("open", address=shop.url)
    assert tab.look().window["title"] == "Shop"


def test_calls_name_their_pages(visit, shop, run):
    tab = visit(shop.url)
    link = tab.control("Order the kettle")
    resources = run(tab.surface.resources(tab.target, "click", {"control_id": link.id}))
    assert resources == (f"url:{shop.url}/", f"origin:{shop.url}", f"url:{shop.url}/order?item=kettle")
    opening = tab.surface.canonical(None, "open_in_browser", {"arguments": {"address": "Example.com"}})
    assert opening == {"arguments": {"address": "https://example.com/"}}
    named = run(tab.surface.resources(None, "open_in_browser", opening))
    assert named == ("url:https://example.com/", "origin:https://example.com")


def test_the_pages_are_in_a_sandbox(visit, shop):
    """The browser of this file runs as another user if root runs the tests. Source: seccomp(2), its mode 2."""
    visit(shop.url)
    modes = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_text(errors="replace")
            if "--type=renderer" in command and f"{HOME}{os.getpid()}" in command:
                modes |= {
                    line.split()[1] for line in (folder / "status").read_text().splitlines() if "Seccomp:" in line
                }
    assert modes == {"2"}


TRICKY = [
    "a: b",
    "- x",
    "[ref=e1]",
    'say "hi" [disabled]',
    "it's",
    "#1",
    "{a}",
    "x\\",
    "é\u202e日本",
    "null",
    "1e3",
    "&b *c",
    "<i>",
]


def test_names_are_read_as_they_are(visit, shop):
    tab = visit(shop.url)
    tab.script(f"""() => {{ document.body.replaceChildren(); for (const name of {json.dumps(TRICKY)}) {{
        const button = document.body.appendChild(document.createElement('button'));
        button.setAttribute('aria-label', name); button.textContent = name + '!';
        const field = document.body.appendChild(document.createElement('input'));
        field.value = name; field.placeholder = name + '?'; }} }}""")
    controls = tab.look().controls
    buttons = [control for control in controls if control.kind == "button"]
    fields = [control for control in controls if control.kind == "textbox"]
    assert [control.name for control in buttons] == TRICKY
    assert [control.detail["text"] for control in buttons] == [f"{name}!" for name in TRICKY]
    assert [control.detail["value"] for control in fields] == TRICKY
    assert all(control.enabled for control in controls)
