"""The pointer's way to a control, in pages that follow it."""

from __future__ import annotations

import pytest

from callboard.surfaces import ToolError

SUGGESTIONS = """<title>Suggestions</title><style>body { margin: 0 } * { line-height: 30px }
#menu > div { width: 300px }</style><input id="field" aria-label="Name" style="display: block"><div id="menu"></div>
<script>
    var active, isNew;
    function activate(entry) {  // as jQuery UI's: the first event in a new menu counts once the pointer moves
        active = entry;
        if (isNew) {
            isNew = false;
            active = null;
            document.addEventListener('mousemove', () => activate(entry), {once: true});
            window.below = entry.textContent;
        }
    }
    field.oninput = () => {
        menu.innerHTML = ['Ada', 'Alan', 'Barbara', 'Grace'].map(name => `<div role=option>${name}</div>`).join('');
        isNew = true;
        for (const entry of menu.children) {
            entry.onmouseenter = () => activate(entry);
            entry.onclick = () => { field.value = active.textContent; menu.textContent = ''; };
        }
    };
</script>"""
FLYOUT = """<title>Flyout</title><style>body { margin: 0 } li { width: 100px; height: 40px; position: relative }
ul { margin: 0; padding: 0 } li > ul { display: none; position: absolute; left: 100px; top: 0 }
li:hover > ul { display: block }</style><ul><li><button>Kitchen</button><ul><li><button>Pans</button></li>
<li><button>Knives</button></li><li><button onclick="document.title = 'Kettles'">Kettles</button></li></ul></li>
<li><button>Garden</button></li><li><button>Bath</button></li></ul>"""

MENU = """<title>Menu</title><style>body { margin: 0 } nav { height: 40px } nav > div { display: none;
position: absolute; top: 40px; width: 300px; height: 200px; background: #eee } """
BY_STYLE = "nav:hover > div { display: block }</style><nav>Products<div>All products</div></nav>"
BY_SCRIPT = """</style><nav onmouseenter="box.style.display = 'block'" onmouseleave="setTimeout(() => {
box.style.display = 'none' }, 300)">Products<div id="box">All products</div></nav>"""
BELOW = "<button style='margin: 20px' onclick=\"document.title = 'Sent'\">Next</button>"

SORTABLE = """<title>Sortable</title><style>li { height: 40px }</style><ul id="list"><li><button>A</button></li>
<li><button>B</button></li><li><button>C</button></li><li><button>D</button></li></ul><script>
    var held = null;
    addEventListener('mousedown', event => { held = event.target.closest('li') });
    addEventListener('mouseup', () => { held = null; document.title = list.textContent.replace(/\\s/g, '') });
    addEventListener('mousemove', event => {  // one entry further for each move, as lists with animations do
        const next = held?.nextElementSibling;
        if (next && event.clientY > next.offsetTop) list.insertBefore(next, held);
    });
</script>"""


@pytest.fixture
def suggestions(visit, shop):
    """Give a page whose menu has come up below the resting pointer, which is on its second entry."""
    shop.pages["/suggestions"] = SUGGESTIONS
    tab = visit(f"{shop.url}/suggestions")
    tab.do("move_to", x=100, y=80)
    tab.do("type", "Name", text="a")
    tab.run(tab.tab.page.wait_for_function("window.below"))
    return tab


def test_an_entry_of_a_menu_below_the_pointer_is_chosen(suggestions):
    suggestions.do("click", "Grace")
    assert suggestions.control("Name").detail["value"] == "Grace"


def test_click_at_chooses_an_entry_of_a_menu_below_the_pointer(suggestions):
    box = suggestions.control("Barbara").box
    suggestions.do("click_at", x=100, y=box.y + 5)
    assert suggestions.control("Name").detail["value"] == "Barbara"


def test_the_pointer_is_known_after_each_tool(visit, shop):
    shop.pages["/flyout"] = FLYOUT
    tab = visit(f"{shop.url}/flyout")
    for tool in ("click", "hover", "scroll"):
        tab.tab.pointer = None
        tab.do(tool, "Kitchen")
        box = tab.control("Kitchen").box
        x, y = tab.tab.pointer
        assert box.holds(int(x), int(y))


def test_a_menu_stays_open_while_the_pointer_moves_to_its_entry(visit, shop):
    shop.pages["/flyout"] = FLYOUT
    tab = visit(f"{shop.url}/flyout")
    tab.do("hover", "Kitchen")
    tab.do("click", "Kettles")
    assert tab.look().window["title"] == "Kettles"


def test_a_list_follows_a_dragged_control(visit, shop):
    shop.pages["/sortable"] = SORTABLE
    tab = visit(f"{shop.url}/sortable")
    tab.do("drag", "A", to=tab.control("D").id)
    assert tab.look().window["title"] == "BCDA"


def test_a_list_follows_drag_at(visit, shop):
    shop.pages["/sortable"] = SORTABLE
    tab = visit(f"{shop.url}/sortable")
    first, last = tab.control("A").box, tab.control("D").box
    tab.do("drag_at", x=first.x + 5, y=first.y + 5, to_x=last.x + 5, to_y=last.y + 5)
    assert tab.look().window["title"] == "BCDA"


@pytest.mark.parametrize("menu", [BY_STYLE, BY_SCRIPT], ids=["style", "script"])
@pytest.mark.parametrize("tool", ["click", "hover"])
def test_a_menu_that_the_pointer_opens_covers_no_control(visit, shop, menu, tool):
    shop.pages["/menu"] = MENU + menu + BELOW
    tab = visit(f"{shop.url}/menu")
    tab.tab.pointer = (50, 20)  # where it was on the page before
    tab.do(tool, "Next")
    assert tab.look().window["title"] == ("Sent" if tool == "click" else "Menu")
    x, y = tab.tab.pointer
    assert tab.control("Next").box.holds(int(x), int(y))


def test_a_control_that_stays_covered_is_not_pressed(visit, shop):
    shop.pages["/menu"] = f"{MENU}nav > div {{ display: block }}</style><nav><div>All products</div></nav>{BELOW}"
    tab = visit(f"{shop.url}/menu")
    tab.tab.pointer = (50, 20)
    with pytest.raises(ToolError, match="covered by another part"):
        tab.do("click", "Next")
    assert tab.look().window["title"] == "Menu"


@pytest.mark.parametrize("tool", ["click", "check"])
@pytest.mark.parametrize(
    "change", ["this.ariaLabel = 'Next (Ctrl+N)'", "this.title = 'Goes on'", "this.append(' page')"]
)
def test_a_control_whose_text_changes_under_the_pointer_is_pressed(visit, shop, tool, change):
    part = "<button {}>Next</button>" if tool == "click" else "<div role='checkbox' tabindex='0' {}>Next</div>"
    listeners = f"onmouseenter=\"{change}\" onclick=\"document.title = 'Sent'; this.ariaChecked = 'true'\""
    shop.pages["/tooltip"] = f"<title>Tooltip</title>{part.format(listeners)}"
    tab = visit(f"{shop.url}/tooltip")
    control = tab.control("Next")
    tab.hazards(tool, control)
    tab.do(tool, control)
    assert tab.look().window["title"] == "Sent"


LOOK_ALIKES = {
    "another element": ("this.replaceWith(this.cloneNode(true))", "gone, or was replaced|covered"),
    "another role": ("this.role = 'link'", "gone, or was replaced"),
    "a disabled control": ("this.disabled = true", "disabled"),
    "a hidden control": ("this.style.visibility = 'hidden'", "gone|hidden"),
    "a form": ("this.outerHTML = '<form method=post>' + this.outerHTML + '</form>'", "gone, or was replaced"),
    "its form": ("this.setAttribute('form', 'f')", "now it sends"),
    "its words": ("this.textContent = 'Buy now'", "now it sends to|now it spends"),
}


@pytest.mark.parametrize(("change", "reason"), LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_a_control_that_is_another_under_the_pointer_is_not_pressed(visit, shop, change, reason):
    button = f'<button onpointerenter="{change}">Next</button>'
    script = "<script>onclick = () => { document.title = 'Sent' }</script>"
    shop.pages["/alike"] = f"<title>Alike</title><form id='f' method='post'></form>{button}{script}"
    tab = visit(f"{shop.url}/alike")
    button = tab.control("Next")
    assert tab.hazards("click", button) == set()
    with pytest.raises(ToolError, match=reason):
        tab.do("click", button)
    assert tab.look().window["title"] == "Alike"


def test_a_question_that_changes_under_the_pointer_is_ruled_on(visit, shop):
    shop.pages["/ask"] = """<title>Ask</title><div role="dialog" aria-label="Ask"><p id="text">Go on?</p>
        <button onmouseenter="text.textContent = 'Delete all files?'" onclick="document.title = 'Sent'">OK</button>"""
    tab = visit(f"{shop.url}/ask")
    button = tab.control("OK")
    assert tab.hazards("click", button) == set()
    with pytest.raises(ToolError, match="now it deletes"):
        tab.do("click", button)
    assert tab.look().window["title"] == "Ask"
