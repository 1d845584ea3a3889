"""Fields of pages: where pictures have them, and which hold passwords."""

from __future__ import annotations

import pytest

from callboard.messages import Look, LookBudget

FIELD = "<input aria-label='Code' value='text' style='position: absolute; left: 200px; top: 20px; width: 200px'>"


def test_boxes_in_frames_that_are_scaled_are_those_of_the_picture(visit, shop):
    shop.pages["/inner"] = f"<body style='margin: 0'>{FIELD}"
    shop.pages["/scaled"] = (
        "<body style='margin: 0; transform: scale(1.5); transform-origin: 0 0'>"
        "<iframe src='/inner' style='position: absolute; left: 10px; top: 90px; width: 500px; border: 4px solid'>"
    )
    tab = visit(f"{shop.url}/scaled")
    box = tab.control("Code").box
    true_box = tab.run(tab.tab.page.frames[1].locator("input").bounding_box())
    for edge, true_edge in zip((box.x, box.y, box.width, box.height), true_box.values(), strict=True):
        assert abs(edge - true_edge) <= 3


def test_there_is_no_picture_of_fields_that_move(visit, shop):
    shop.pages["/moves"] = (
        f"{FIELD}<script>const field = document.querySelector('input'), begin = performance.now();"
        "setInterval(() => { field.style.top = `${(performance.now() - begin) % 599}px` }, 5)</script>"
    )
    look = visit(f"{shop.url}/moves").look(picture=True)
    assert look.picture is None
    assert any("fields with texts move" in note for note in look.notes)


def test_of_many_password_fields_none_is_shown(visit, shop):
    shop.pages["/many"] = "".join(f"<input type='password' value='secret{number}'>" for number in range(25))
    look = visit(f"{shop.url}/many").look()
    assert len(look.controls) == 25
    assert "secret" not in repr(look)
    assert all("password" in control.states for control in look.controls)


LOGIN = "<h1>Log in</h1><input type='password' aria-label='Password' value='secret'>"
NOTES = "<h1>Notes</h1><input aria-label='Place' value='Rome'>"


@pytest.fixture
def changing(visit, shop, monkeypatch):
    """Give the function that opens a page, which changes before or after each of its next snapshots."""
    shop.pages.update({"/login": LOGIN, "/notes": NOTES})

    def opened(path, change, *, first, times=1):
        tab = visit(f"{shop.url}{path}")
        page, left = tab.tab.page, [None] * times
        snapshot = page.aria_snapshot

        async def changed(**options):
            if first and left:
                await change(page, left.pop())
            text = await snapshot(**options)
            if not first and left:
                await change(page, left.pop())
            return text

        monkeypatch.setattr(page, "aria_snapshot", changed)
        return tab

    return opened


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("start", "end"), [("/notes", "/login"), ("/login", "/notes")])
def test_a_look_during_a_navigation_is_of_one_document(changing, shop, start, end, first):
    tab = changing(start, lambda page, _: page.goto(f"{shop.url}{end}"), first=first)
    look = tab.look()
    assert "secret" not in repr(look)
    assert look.text.startswith("# Notes" if end == "/notes" else "# Log in")
    assert look.window["url"] == f"{shop.url}{end}"
    (field,) = look.controls
    assert (("password" in field.states), field.detail.get("value")) == (
        (True, None) if end == "/login" else (False, "Rome")
    )


def test_a_page_that_shows_one_document_after_the_other_loads(changing, shop):
    tab = changing("/notes", lambda page, _: page.goto(f"{shop.url}/login"), first=False, times=3)
    look = tab.look()
    assert look.window == {"url": f"{shop.url}/login", "loading": f"{shop.url}/login"}
    assert tab.look().controls[0].states == ("password",)


@pytest.mark.parametrize("count", [1, 30])
def test_a_password_field_that_comes_up_during_a_look_is_not_shown(changing, shop, count):
    def change(page, _):
        return page.evaluate("text => { document.body.innerHTML = text }", LOGIN + NOTES * count)

    look = changing("/notes", change, first=True).look()
    assert "secret" not in repr(look)
    assert [control.detail.get("value") for control in look.controls] == [None, *["Rome"] * count]


def test_parts_of_a_frame_that_does_not_rest_have_ids_of_their_own(changing, shop):
    shop.pages["/framed"] = "<button>Go</button><iframe src='/login'></iframe>"
    reload = "() => new Promise(done => { const frame = document.querySelector('iframe'); frame.onload = done; "
    reload += "frame.src = '/notes?' + Math.random() })"
    tab = changing("/framed", lambda page, _: page.evaluate(reload), first=False, times=6)
    tab.wait_for(text="Go")
    first, second = tab.look(), tab.look()
    assert [control.name for control in first.controls] == ["Go", "Place"]
    assert first.controls[0].id == second.controls[0].id
    assert "Rome" not in repr(first)
    assert "mixed" in first.controls[1].id
    assert first.controls[1].id != second.controls[1].id


def test_an_unchanged_page_is_read_once_for_each_kind_of_look(visit, shop, run):
    shop.pages["/login"] = LOGIN
    tab = visit(f"{shop.url}/login")
    tab.control("Password")
    first, second = (run(tab.tab.snapshot(boxes=True)) for _ in range(2))
    plain = [run(tab.tab.snapshot()) for _ in range(2)]
    assert first is second is run(tab.tab.snapshot(boxes=True))
    assert plain[0] is plain[1] is not first
    tab.script("() => { document.querySelector('input').type = 'text' }")
    shown = run(tab.tab.snapshot())
    assert shown is not plain[0]
    assert shown.controls()[0].detail == {"value": "secret"}


def test_ids_of_a_page_stay_when_a_frame_shows_another_document(visit, shop):
    shop.pages.update({"/login": LOGIN, "/framed": "<button>Go</button><iframe src='/login'></iframe>"})
    tab = visit(f"{shop.url}/login")
    tab.do("open", address=f"{shop.url}/framed")
    inner, button = tab.control("Password"), tab.control("Go")
    tab.script("() => new Promise(done => { frames[0].frameElement.onload = done; frames[0].location = '/login?2' })")
    assert tab.control("Go").id == button.id
    assert tab.control("Password").id != inner.id


def test_a_drawing_alone_has_a_picture_and_no_controls(visit, shop):
    shop.pages["/drawing.svg"] = "<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/></svg>"
    look = visit(f"{shop.url}/drawing.svg").look(picture=True)
    assert (look.controls, look.text) == ((), "")
    assert look.picture.startswith(b"\x89PNG")
    assert "an image or other data" in look.notes[0]


def test_only_a_look_for_an_agent_has_a_part_of_a_long_text(visit, shop, run):
    shop.pages["/long"] = "".join(f"<p>Line {number}" for number in range(2_000)) + "<p>The end"
    tab = visit(f"{shop.url}/long")
    tab.wait_for(text="The end")
    assert not tab.look().text.endswith("The end")
    assert tab.look(shown=False).text.endswith("The end")
    budget = LookBudget(text=100)
    assert len(run(tab.surface.observe(tab.target, Look(picture=False, shown=False, budget=budget))).text) == 100
