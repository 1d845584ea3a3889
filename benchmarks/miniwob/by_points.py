"""Solvers of pages by points of their picture, as an operator."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from benchmarks.miniwob.oracle import Part, UnsolvedError, film_texts

if TYPE_CHECKING:
    from benchmarks.miniwob.oracle import PageView, Solver

_MOST_TRIES = 40
_SUBMIT = "#area button"
_SHAPES = "#area svg rect, #area svg circle, #area svg polygon"
_PAUSE = "milliseconds => new Promise(done => setTimeout(done, milliseconds))"
_AREA = "#area"


async def visible(page: PageView, selector: str, area: str = _AREA, index: int = 0) -> Part:
    """Scroll an area until a part is in it, and return it."""
    (frame, *_) = await page.parts(area)
    for _ in range(_MOST_TRIES):
        parts = await page.parts(selector)
        if len(parts) <= index:
            msg = f"no part {selector!r}"
            raise UnsolvedError(msg)
        y = parts[index].center[1]
        if frame.y <= y - 5 and y + 5 < frame.y + frame.height:
            return parts[index]
        await page.do(("scroll_at", {"x": frame.x + 20, "y": frame.y + 80, "dy": 1 if y > frame.y + 80 else -1}))
        await page.facts(_PAUSE, 250)
    msg = f"{selector!r} is not scrolled to"
    raise UnsolvedError(msg)


async def agreement(page: PageView) -> None:
    """Read an agreement to its end, and sign it."""
    if "Click the cancel button" in page.query:
        await page.click_part("#cancel")
        return
    name, button = page.words(r'enter the name "([^"]*)" then press "(\w+)"')
    (text,) = await page.parts("#text-area")
    await page.do(("scroll_at", {"x": text.center[0], "y": text.center[1], "dy": 50}))
    await page.click_part("#name")
    await page.do(("type_text", {"text": name}))
    await page.click_part("#agree" if button == "Agree" else "#cancel")


async def ascending_numbers(page: PageView) -> None:
    """Click on 1, then on the squares that hide other numbers."""
    numbers = sorted(await page.parts("#area_svg text"), key=lambda part: int(part.text))
    await page.click_at(numbers[0])
    await page.click_at(*numbers[1:])


Point = tuple[int, int]
_CENTERS = "selector => [...document.querySelectorAll(selector)].map(c => [c.cx.baseVal.value, c.cy.baseVal.value])"
_TOP = 50
"""The place of a drawing in its page: a click at (x, 50 + y) counts as one at (x, y) of the drawing."""


async def _centers(page: PageView, selector: str) -> list[Point]:
    """Look up the middles of circles, in the picture."""
    return [(round(x), round(y) + _TOP) for x, y in await page.facts(_CENTERS, selector)]


async def bisect_angle(page: PageView) -> None:
    """Click on a point of the line that halves an angle."""
    (vertex,), (first, second) = await _centers(page, ".init-blue"), await _centers(page, ".init-black")
    whole = _angle(vertex, first, second)

    def error(point: Point) -> float:
        angles = [_angle(vertex, other, point) for other in (first, second)]
        return abs(angles[0] - angles[1]) + 10 * max(0.0, max(angles) - whole)

    await page.click_at(min(_points_around(vertex), key=error))
    await page.click_part(_SUBMIT)


def _points_around(vertex: Point) -> list[Point]:
    """List the points of a drawing that are not too near."""
    return [(x, y) for x in range(4, 150) for y in range(56, 170) if math.dist(vertex, (x, y)) > 20]


def _angle(vertex: Point, first: Point, second: tuple[float, float]) -> float:
    """Return an angle in degrees."""
    a, b = (math.atan2(point[1] - vertex[1], point[0] - vertex[0]) for point in (first, second))
    turn = abs(math.degrees(a - b)) % 360
    return min(turn, 360 - turn)


async def circle_center(page: PageView) -> None:
    """Click on the middle of a circle."""
    await page.click_at(*await _centers(page, ".black-circle"))
    await page.click_part(_SUBMIT)


async def find_midpoint(page: PageView) -> None:
    """Click between two points."""
    (a, b), (c, d) = await _centers(page, ".black-circle")
    await page.click_at((round((a + c) / 2), round((b + d) / 2)))
    await page.click_part(_SUBMIT)


async def right_angle(page: PageView) -> None:
    """Click on a point that makes a right angle."""
    (other,), (vertex,) = await _centers(page, "#init-black"), await _centers(page, "#init-blue")

    def error(point: Point) -> float:  # the page draws this point smaller, and compares corners: half a pixel off
        return abs(90 - _angle(vertex, other, (point[0] + 0.5, point[1] + 0.5)))

    await page.click_at(min(_points_around(vertex), key=error))
    await page.click_part(_SUBMIT)


async def button_delay(page: PageView) -> None:
    """Wait between two clicks."""
    (seconds,) = page.words(r"wait (\d+) seconds")
    parts = [(await page.parts(selector))[0] for selector in ("#subbtn", "#subbtn2")]
    points = [dict(zip("xy", part.center, strict=True)) for part in parts]
    await page.do(("click_at", points[0]), ("wait", {"seconds": float(seconds)}), ("click_at", points[1]))


async def pie(page: PageView) -> None:
    """Open a pie menu, and choose an item."""
    (name,) = page.words(r'"([^"]*)"')
    texts = await page.parts("#divWheel text")
    await page.click_at(next(part for part in texts if part.text == "+"))
    await page.do(("wait", {"seconds": 2}))
    await page.click_at(next(part for part in await page.parts("#divWheel text") if part.text == name))
    await page.do(("wait", {"seconds": 1}))


async def chase_circle(page: PageView) -> None:
    """Follow a circle with the pointer."""
    for _ in range(400):
        parts = await page.parts("#circ")
        if not parts or await page.facts("() => WOB_DONE_GLOBAL"):
            return
        await page.do(("move_to", dict(zip("xy", parts[0].center, strict=True))))


async def color_box(page: PageView) -> None:
    """Click on the box of a colour."""
    colour = (await page.facts("() => core.getUtterance()")).split()[3]
    await page.click_part(f"#area .color[data-color={colour}]")


async def shades(page: PageView) -> None:
    """Select the shades of a colour."""
    (colour,) = page.words(r"shades of (\w+)")
    await page.click_at(*await page.parts(f"#area span[data-color={colour}]"))
    await page.click_part(_SUBMIT)


async def link(page: PageView) -> None:
    """Click on a word that looks like a link."""
    (word,) = page.words(r'link "([^"]*)"')
    if not await _clicked_word(page, word):
        msg = f"no link {word!r}"
        raise UnsolvedError(msg)


async def _clicked_word(page: PageView, word: str) -> bool:
    parts = [part for part in await page.parts(".alink") if part.text == word and part.width]
    if not parts:
        return False
    index = [part.text == word and bool(part.width) for part in await page.parts(".alink")].index(True)
    await page.click_at(await visible(page, ".alink", index=index))
    return True


async def collapsible_links(page: PageView) -> None:
    """Open sections until a link is there."""
    (word,) = page.words(r'link "([^"]*)"')
    for index in range(3):
        await page.click_at((await page.parts(".ui-accordion-header"))[index])
        await page.facts(_PAUSE, 700)
        if await _clicked_word(page, word):
            return
    msg = f"no link {word!r}"
    raise UnsolvedError(msg)


async def tab_links(page: PageView) -> None:
    """Switch between tabs until a link is there."""
    (word,) = page.words(r'link "([^"]*)"')
    tabs = await page.parts(".ui-tab")
    for index, tab in enumerate(tabs):
        if index:
            await page.click_at(tab)
            if await page.facts("() => WOB_DONE_GLOBAL"):
                return
        if await _clicked_word(page, word):
            return
    msg = f"no link {word!r}"
    raise UnsolvedError(msg)


async def daily_calendar(page: PageView) -> None:
    """Drag over free time of a calendar, and name the event."""
    amount, unit, name, start, _ = page.words(
        r'Create a ([\d.]+) (hour|min)s? event named "(\w+)", between (\d+[AP]M) and (\d+[AP]M)'
    )
    halves = round(float(amount) * (2 if unit == "hour" else 1 / 30))
    first = {"8AM": 16, "12PM": 24, "4PM": 32}[start]
    events = await page.facts(
        "() => [...document.querySelectorAll('.event')].map(e => [Math.round((parseFloat(e.style.top) - 4) / 20.42),"
        " +e.dataset.duration])"
    )
    free = [
        begin
        for begin in range(first, first + 9 - halves)
        if all(begin + halves < other or begin > other + length for other, length in events)
    ]
    begin = free[0]
    part = await visible(page, f"#hh-{begin}")
    if halves > 1:
        await visible(page, f"#hh-{begin + halves - 1}")
        part = (await page.parts(f"#hh-{begin}"))[0]
    (last,) = await page.parts(f"#hh-{begin + halves - 1}")
    x = part.center[0]
    await page.drag_at((x, part.y + 6, x, last.y + 12))
    await visible(page, "#event-name")
    await page.click_part("#event-name")
    await page.do(("type_text", {"text": name}))
    await page.click_at(await visible(page, "#controls .create"))


async def drag_box(page: PageView) -> None:
    """Drag a small box into a large one."""
    (small,), (large,) = await page.parts("#draggableSmall"), await page.parts("#draggableLarge")
    await page.drag_at((*small.center, *large.center))
    await page.click_part(_SUBMIT)


async def drag_aside(page: PageView) -> None:
    """Drag a shape in a direction."""
    (direction,) = page.words(r"Drag the \w+ (\w+) then")
    (part, *_) = await page.parts(_SHAPES)
    dx, dy = {"left": (-25, 0), "right": (25, 0), "up": (0, -25), "down": (0, 25)}[direction]
    x, y = part.center
    await page.drag_at((x, y, x + dx, y + dy))
    await page.click_part(_SUBMIT)


async def drag_cube(page: PageView) -> None:
    """Turn a cube until a side is in front."""
    (side,) = page.words(r'"(\d)"')
    for _ in range(_MOST_TRIES):
        active = await page.facts("() => document.querySelector('.active').textContent")
        if active == side:
            await page.facts(_PAUSE, 1500)
            if await page.facts("() => document.querySelector('.active').textContent") == side:
                await page.click_part("#subbtn")
                return
            continue
        vertical, up = side in "16" or active in "16", side == "1" or active == "6"
        await page.drag_at((80, 120, 80, 90 if up else 150) if vertical else (60, 120, 95, 120))
        await page.facts(_PAUSE, 900)
    msg = "the side did not come to the front"
    raise UnsolvedError(msg)


async def drag_item(page: PageView) -> None:
    """Drag an item of a list to a position."""
    name, where = page.words(r"Drag (\S+) (.*)")
    items = await page.parts("#sortable li")
    index = [item.text for item in items].index(name)
    match = re.search(r"to the (\d)\w\w position", where)
    grid = len(items) == 9
    names = ("top left", "top center", "top right", "center left", "center", "center right", "bottom left",
             "bottom center", "bottom right")  # fmt: skip
    if match:
        goal = int(match[1]) - 1
    elif "by one" in where:
        width = 3 if grid else 1
        goal = index + {"up": -width, "down": width, "left": -1, "right": 1}[where.split()[0]]
    else:
        goal = (
            names.index(where.removeprefix("to the ").rstrip(".")) if grid else 0 if "top" in where else len(items) - 1
        )
    (x, y), (to_x, to_y) = items[index].center, items[goal].center
    if grid:
        is_right = to_x > x or (to_x == x and goal > index)
        await page.drag_at((x, y, to_x + (3 if is_right else -3), to_y))
    else:
        await page.drag_at((x, y, to_x, to_y + (6 if goal > index else -6)))


async def sort_numbers(page: PageView) -> None:
    """Sort a list by dragging."""
    for goal in range(4):
        items = await page.parts("#sortable li")
        numbers = [int(item.text) for item in items]
        index = numbers.index(sorted(numbers)[goal])
        if index != goal:
            (x, y), (to_x, to_y) = items[index].center, items[goal].center
            await page.drag_at((x, y, to_x, to_y - 6))
            await page.facts(_PAUSE, 200)
    await page.click_part("#subbtn")


_FILLED = """() => [...document.querySelectorAll('#area svg > *:not(#shape-container)')].map(part => {
    const box = part.getBoundingClientRect();
    return [part.tagName, part.getAttribute('fill'), Math.round(box.x + box.width / 2),
            Math.round(box.y + box.height / 2 + (part.tagName === 'polygon' ? 2 : 0))];
})"""


async def drag_shapes(page: PageView) -> None:
    """Drag shapes into boxes."""
    two = "left box" in page.query
    wanted = page.words(r"Drag all (\w+)")[0]
    tag = {"rectangles": "rect", "circles": "circle", "triangles": "polygon"}.get(wanted)
    boxes = await page.parts("#shape-container")
    places = {0: 0, 1: 0}
    for shape, fill, x, y in await page.facts(_FILLED):
        fits = shape == tag if tag else fill == wanted
        if not fits and not two:
            continue
        box = boxes[0 if fits or not two else 1]
        number = places[0 if fits else 1]
        places[0 if fits else 1] += 1
        await page.drag_at((x, y, box.x + 16 + number % 3 * 18, box.y + 16 + number // 3 * 16))
    await page.click_part(_SUBMIT)


async def email(page: PageView) -> None:
    """Delete, mark, answer or forward a letter."""
    fields = await page.facts("() => core.currentFields ?? null")
    if not fields or "by" not in fields:
        name = re.search(r"(?:by|from) (\w[\w-]*)", page.query)[1]  # type: ignore[index]
        task = next(
            task
            for task, words in {"delete": "trash", "star": "star icon", "reply": "reply", "forward": "forward"}.items()
            if words in page.query
        )
        fields = {"by": name, "task": task}
        fields["message"] = (re.search(r'text "([^"]*)"', page.query) or ["", ""])[1]
        fields["to"] = (re.search(r"email to (\w[\w-]*)", page.query) or ["", ""])[1]
    task = fields.get("task", "forward")
    senders = await page.parts("#main .email-thread .email-sender")
    index = [part.text for part in senders].index(fields["by"])
    if task in {"delete", "star"}:
        icon = "trash" if task == "delete" else "star"
        await page.click_at(await visible(page, f"#main .email-thread .{icon}", index=index))
        return
    await page.click_at(await visible(page, "#main .email-thread .email-sender", index=index))
    await page.click_at(await visible(page, f"#email .email-{task}"))
    await page.click_part("#reply-text" if task == "reply" else ".forward-sender")
    await page.do(("type_text", {"text": fields["message"] if task == "reply" else fields["to"]}))
    await page.click_part(f"#send-{task}")


async def film(page: PageView) -> None:
    """Fill a form that looks different each time."""
    texts = await film_texts(page)
    for field, text in zip(await page.parts("#area input"), texts, strict=True):
        await page.click_at(field)
        await page.do(("type_text", {"text": text}))
    await page.click_part("#area button, #area .final, #area .ui-submit")


async def grid_coordinate(page: PageView) -> None:
    """Click on a point of a grid."""
    x, y = map(int, page.words(r"\((-?\d),(-?\d)\)"))
    points = await page.parts("#area circle")
    await page.click_at(points[(x + 2) * 5 + 2 - y])


async def highlight(page: PageView) -> None:
    """Select a text by dragging over it."""
    match = re.search(r"(\d)\w\w paragraph", page.query)
    script = """index => {
        const part = index ? document.querySelectorAll('#randomText p')[index - 1]
            : document.querySelector('#randomText');
        const range = document.createRange();
        range.selectNodeContents(part);
        const lines = [...range.getClientRects()].filter(line => line.width > 2);
        const first = lines[0], last = lines.at(-1);
        return [first.left, first.top + first.height / 2, last.right, last.top + last.height / 2].map(Math.round);
    }"""
    x, y, to_x, to_y = await page.facts(script, int(match[1]) if match else 0)
    await page.drag_at((x, y, min(to_x + 4, 158), to_y))
    await page.click_part("#subbtn")


async def hot_cold(page: PageView) -> None:
    """Find a place by moving the pointer."""
    for y in range(56, 172, 7):
        for x in range(6, 156, 7):
            await page.do(("move_to", {"x": x, "y": y}))
            if "HOT" in await page.facts("() => document.querySelector('#display').textContent"):
                await page.click_at((x, y))
                return


async def hover_shape(page: PageView) -> None:
    """Keep the pointer over the lit square."""
    for _ in range(20):
        if await page.facts("() => WOB_DONE_GLOBAL"):
            return
        (part,) = await page.parts("#highlight")
        await page.do(("move_to", dict(zip("xy", part.center, strict=True))))


async def moving_items(page: PageView) -> None:
    """Click on circles that move."""
    script = """async seconds => {
        const middles = () => [...document.querySelectorAll('#area .item')].map(item => {
            const box = item.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        });
        const before = middles();
        await new Promise(done => setTimeout(done, 100));
        return middles().map(([x, y], i) => [x + (x - before[i]?.[0] || 0) * 10 * seconds,
            y + (y - before[i]?.[1] || 0) * 10 * seconds]).filter(([x, y]) => x > 3 && x < 155 && y > 53 && y < 205);
    }"""
    delay = 0.2
    while not await page.facts("() => WOB_DONE_GLOBAL"):
        places = await page.facts(script, delay)
        if places:
            x, y = places[0]
            await page.click_at((round(x), round(y)))


async def order_food(page: PageView) -> None:
    """Order dishes by name or kind."""
    match = re.search(r"Order (\d+) items that are (\S+)", page.query)
    if match:
        menu = await page.facts("() => MENU.map(item => [item.id, item.types])")
        dish = next(number for number, types in menu if match[2] in types)
        orders = [dish] * int(match[1])
    else:
        names = page.words(r"each item: (.*)")[0].split(", ")
        menu = await page.facts("() => MENU.map(item => [item.id, item.name.trim()])")
        orders = [number for number, name in menu if name in [wanted.strip() for wanted in names]]
    for number in orders:
        await page.click_at(await visible(page, f".food-item[data-id='{number}'] .add"))
    await page.click_at(await visible(page, "#submit-order button"))


async def phone_book(page: PageView) -> None:
    """Page to a person, and click on a fact."""
    name, kind = page.words(r"Find (\S+) in the contact book and click on their (phone|email|address)")
    for _ in range(6):
        (shown,) = await page.parts("#contact h2")
        if shown.text == name:
            await page.click_part(f"#contact .{kind}")
            return
        await page.click_part("#pagination .next a")
    msg = f"no person {name!r}"
    raise UnsolvedError(msg)


async def resize(page: PageView) -> None:
    """Drag the corner of a field."""
    side, size = page.words(r"that the (\w+) is (\w+) than")
    (corner,) = await page.parts(".ui-resizable-se")
    x, y = corner.center
    step = 20 if size == "larger" else -20
    await page.drag_at((x, y, x + (step if side == "width" else 0), y + (step if side == "height" else 0)))
    await page.click_part("#submit")


async def _hovered_click(page: PageView, part: Part) -> None:
    """Click on a picture that becomes another below the pointer."""
    point = dict(zip("xy", part.center, strict=True))
    await page.do(("move_to", point))
    await page.do(("click_at", point))


async def social_media(page: PageView) -> None:
    """Press a button of one or several posts."""
    user = page.words(r"(@\S+?),? (?:click|and)")[0]
    (action,) = page.words(r'"([^"]*)"')
    users = [part.text for part in await page.parts(".media .username")]
    posts = [index for index, name in enumerate(users) if name == user]
    match = re.search(r"on (\d+) posts?", page.query)
    direct = {"Reply": "reply", "Retweet": "retweet", "Like": "like"}
    several = "Submit" in page.query
    if several:
        direct["Share"] = "share"
    for index in posts[: int(match[1]) if match else None if several else 1]:
        if action in direct:
            part = await visible(page, f".media .controls > .{direct[action]}", index=index)
            await _hovered_click(page, part)
        else:
            part = await visible(page, ".media .more", index=index)
            await _hovered_click(page, part)
            items = ("Share via DM", "Copy link to Tweet", "Embed Tweet", "Mute", "Block", "Report")
            row = items.index(action)
            await page.click_at(await visible(page, ".media ul li", index=index * len(items) + row))
    if several:
        await page.click_at(await visible(page, "#submitRow button"))


async def text_editor(page: PageView) -> None:
    """Select a text in an editor, and give it a style."""
    text = (re.search(r"give the text (\S+) the", page.query) or [None, None])[1]
    style = (re.search(r"style (\w+)", page.query) or [None, ""])[1]
    colour = (re.search(r"color (\w+)", page.query) or [None, ""])[1]
    script = """text => {
        const node = document.querySelector('.ql-editor p').firstChild, range = document.createRange();
        const start = text ? (' ' + node.data + ' ').indexOf(' ' + text + ' ') : 0;
        range.setStart(node, start);
        range.setEnd(node, text ? start + text.length : node.data.length);
        const lines = [...range.getClientRects()].filter(line => line.width > 1), last = lines.at(-1);
        const ends = [lines[0].left, lines[0].top + lines[0].height / 2, last.right, last.top + last.height / 2];
        return ends.map(Math.round);
    }"""
    if text:
        x, y, to_x, to_y = await page.facts(script, text)
        await page.drag_at((x, y, to_x, to_y))
    else:
        await page.click_part(".ql-editor p")
        await page.do(("press_keys", {"keys": "ctrl+a"}))
    if style:
        name = {"bold": "bold", "italics": "italic", "underlined": "underline"}[style]
        await page.click_part(f"button.ql-{name}")
    else:
        await page.click_part(".ql-color .ql-picker-label")
        values = await page.facts("colour => COLOR_MAP[colour]", colour)
        await page.click_part(", ".join(f'.ql-color .ql-picker-item[data-value="{value}"]' for value in values))
    await page.click_part("#subbtn")


_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


async def tic_tac_toe(page: PageView) -> None:
    """Win a game."""
    for _ in range(5):
        cells = await page.parts(".ttt-row span")
        marks = [{"mark-x": "x", "mark-o": "o"}.get(cell.name, "") for cell in cells]
        await page.click_at(cells[_best_cell(marks)])
        if await page.facts("() => WOB_DONE_GLOBAL"):
            return


def _best_cell(marks: list[str]) -> int:
    """Return the cell to play: win, block, or the most open lines."""

    def value(cell: int) -> int:
        lines = [[marks[other] for other in line] for line in _LINES if cell in line]
        values = {("x", "x"): 1000, ("o", "o"): 100, ("x",): 10, (): 1}
        return sum(values.get(tuple(sorted(filter(None, line))), 0) for line in lines)

    return max((cell for cell, mark in enumerate(marks) if not mark), key=value)


async def draw_line(page: PageView) -> None:
    """Draw a line through a point."""
    (dot,) = await page.parts("#circ")
    x, y = dot.center
    vertical = "vertical" in page.query
    await page.drag_at((x, y - 28, x, y + 40) if vertical else (x - 25, y, x + 60, y))
    await page.click_part("#controls button")


SOLVERS: dict[str, Solver] = {
    "ascending-numbers": ascending_numbers,
    "bisect-angle": bisect_angle,
    "button-delay": button_delay,
    "chase-circle": chase_circle,
    "click-pie": pie,
    "click-pie-nodelay": pie,
    "circle-center": circle_center,
    "click-collapsible-2": collapsible_links,
    "click-collapsible-2-nodelay": collapsible_links,
    "click-color": color_box,
    "click-link": link,
    "click-shades": shades,
    **dict.fromkeys(("click-tab-2", "click-tab-2-easy", "click-tab-2-hard", "click-tab-2-medium"), tab_links),
    "daily-calendar": daily_calendar,
    "drag-box": drag_box,
    "drag-circle": drag_aside,
    "drag-cube": drag_cube,
    "drag-items": drag_item,
    "drag-items-grid": drag_item,
    "drag-shapes": drag_shapes,
    "drag-shapes-2": drag_shapes,
    "drag-single-shape": drag_aside,
    "drag-sort-numbers": sort_numbers,
    "draw-line": draw_line,
    **dict.fromkeys(
        (
            "email-inbox",
            "email-inbox-delete",
            "email-inbox-forward",
            "email-inbox-forward-nl",
            "email-inbox-forward-nl-turk",
            "email-inbox-important",
            "email-inbox-nl-turk",
            "email-inbox-noscroll",
            "email-inbox-reply",
            "email-inbox-star-reply",
        ),
        email,
    ),
    "find-midpoint": find_midpoint,
    "grid-coordinate": grid_coordinate,
    "highlight-text": highlight,
    "highlight-text-2": highlight,
    "hot-cold": hot_cold,
    "hover-shape": hover_shape,
    "moving-items": moving_items,
    "multi-layouts": film,
    "order-food": order_food,
    "phone-book": phone_book,
    "resize-textarea": resize,
    "right-angle": right_angle,
    "sign-agreement": agreement,
    "social-media": social_media,
    "social-media-all": social_media,
    "social-media-some": social_media,
    "text-editor": text_editor,
    "tic-tac-toe": tic_tac_toe,
}
