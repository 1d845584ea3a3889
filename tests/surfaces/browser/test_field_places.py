"""Fields of pages: where pictures have them, and which hold passwords."""

from __future__ import annotations

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
