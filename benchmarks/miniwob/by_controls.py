"""Solvers of pages by their controls: the agent is an AppAgent."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from benchmarks.miniwob.oracle import UnsolvedError, film_texts

if TYPE_CHECKING:
    from benchmarks.miniwob.oracle import PageView, Solver

_MOST_CLICKS = 30
_ORDINALS = {"1st": 0, "2nd": 1, "3rd": 2}
_QUOTED = r'"([^"]*)"'


async def button_sequence(page: PageView) -> None:
    """Click ONE, then TWO."""
    await page.click("ONE", "TWO")


async def quoted_button(page: PageView) -> None:
    """Click the button that the query quotes."""
    (name,) = page.words(_QUOTED)
    await page.click(page.control(" ".join(name.split()), "button"))


async def button_one(page: PageView) -> None:
    """Click the button that the query names."""
    (name,) = page.words(r"Click button (\w+)\.")
    await page.click(name)


async def only_button(page: PageView) -> None:
    """Click the only button."""
    await page.click(page.of_kind("button")[0])


async def dialog(page: PageView) -> None:
    """Click a button of a dialog."""
    (name,) = page.words(_QUOTED)
    await page.click("Close" if name == "x" else name)


async def buy_ticket(page: PageView) -> None:
    """Buy the ticket with the least or largest price or duration."""
    prices = [int(control.name.partition("$")[2]) for control in page.of_kind("button")]
    durations = [60 * int(h) + int(m) for h, m in re.findall(r"(\d+)h (\d+)m", page.observation.text)]
    values = prices if "cost" in page.query else durations
    wanted = (min if "cheapest" in page.query or "shortest" in page.query else max)(values)
    await page.click(page.of_kind("button")[values.index(wanted)])


async def checkboxes(page: PageView) -> None:
    """Check the boxes that the query names."""
    (names,) = page.words(r"Select (.*) and click Submit")
    boxes = [] if names == "nothing" else [page.control(name, "checkbox") for name in names.split(", ")]
    if boxes:
        await page.do(*(("check", {"control_id": box.id}) for box in boxes))
    await page.click("Submit")


async def similar_words(page: PageView) -> None:
    """Check the boxes with words of the same meaning."""
    (words,) = page.words(r"similar to (.*) and click")
    groups = await page.facts("() => SYNONYMS")
    wanted = {word for name in words.split(", ") for group in groups if name in group for word in group}
    boxes = [box for box in page.of_kind("checkbox") if box.name in wanted]
    await page.do(*(("check", {"control_id": box.id}) for box in boxes))
    await page.click("Submit")


async def radio(page: PageView) -> None:
    """Choose a radio button."""
    (name,) = page.words(r"Select (.*) and click Submit")
    await page.do(("check", {"control_id": page.control(name, "radio").id}))
    await page.click("Submit")


async def list_options(page: PageView) -> None:
    """Choose options of a list."""
    (names,) = page.words(r"Select (.*) from the (?:scroll )?list")
    control = page.of_kind("combobox", "listbox")[0]
    options = control.detail.get("options") or [option.name for option in page.of_kind("option")]
    chosen = [name for name in names.split(", ") if name in options] or [names]
    await page.do(("select", {"control_id": control.id, "options": chosen}))
    await page.click("Submit")


async def collapsible(page: PageView) -> None:
    """Open a section, and submit."""
    await page.click(page.of_kind("tab")[0])
    await page.click("Submit")


async def tabs(page: PageView) -> None:
    """Click on a tab."""
    (name,) = page.words(r"Click on (Tab #\d)")
    await page.click(page.control(name, "link"))


async def menu(page: PageView) -> None:
    """Choose an item of a menu with submenus."""
    (path,) = page.words(r"Select (.*)")
    *groups, item = path.split(">")
    for group in groups:
        await page.do(("hover", {"control_id": page.control(group, "menuitem").id}))
        await page.facts("() => new Promise(done => setTimeout(done, 500))")
        await page.do(("wait_for", {"control": path.split(">")[path.split(">").index(group) + 1]}))
    await page.click(page.control(item, "menuitem"))


async def menu_with_icons(page: PageView) -> None:
    """Choose an item of a menu by its label or icon."""
    icon = await page.facts("() => [...document.querySelectorAll('#query .ui-icon')].map(part => part.className)[0]")
    labels = await page.facts("() => Object.fromEntries(Object.entries(PROBLEM_SET).map(([a, b]) => [b, a]))")
    label = labels[icon.split()[-1]] if icon else page.words(r'labeled "([^"]*)"')[0]
    await page.click("Menu")
    if label in {"Prev", "Stop", "Play", "Next"}:
        await page.do(("hover", {"control_id": page.control("Playback", "menuitem").id}))
        await page.do(("wait_for", {"control": label}))
    await page.click(page.control(label, "menuitem"))


async def shape(page: PageView) -> None:
    """Click on a shape of an image."""
    size, colour, kind = await page.facts("""() => {
        const words = core.getUtterance().replace('Click on a ', '').split(' ');
        return [['large', 'small'].find(size => words.includes(size)) ?? '',
                shapes.COLORS.find(colour => words.includes(colour)) ?? '', words.at(-1)];
    }""")
    parts = await page.parts("#area_svg > *")
    colours = await page.facts("() => [...document.querySelectorAll('#area_svg > *')].map(p => p.getAttribute('fill'))")
    sizes = [part.height if part.tag != "text" else part.height // 2 * 2 for part in parts]
    controls = [control for control in page.of_kind("clickable") if control.box is not None]
    for part, other, height in zip(parts, colours, sizes, strict=True):
        large = height > (13 if part.tag != "text" else 16)
        types = {"rect": "rectangle", "circle": "circle", "polygon": "triangle"}
        names = {"item", types.get(part.tag, ""), part.text, "shape" if part.tag != "text" else ""}
        names |= {"digit" if part.text.isdigit() else "letter"} if part.tag == "text" else set()
        if colour in {"", other} and kind in names and size in {"", "large" if large else "small"}:
            near = [c for c in controls if c.box and abs(c.box.x - part.x) < 3 and abs(c.box.y - part.y) < 3]
            await page.click(near[0])
            return
    msg = f"no shape fits {page.query!r}"
    raise UnsolvedError(msg)


async def count_shapes(page: PageView) -> None:
    """Count shapes of an image."""
    words = page.words(r"How many (.*)s are there")[0].split()
    parts = await page.parts("#area_svg > *")
    colours = await page.facts("() => [...document.querySelectorAll('#area_svg > *')].map(p => p.getAttribute('fill'))")
    count = 0
    for part, colour in zip(parts, colours, strict=True):
        large = part.height > (13 if part.tag != "text" else 16)
        types = {"rect": "rectangle", "circle": "circle", "polygon": "triangle"}
        names = {"item", types.get(part.tag, ""), part.text, "shape" if part.tag != "text" else ""}
        names |= {"digit" if part.text.isdigit() else "letter"} if part.tag == "text" else set()
        fits = {"large" if large else "small", colour}
        count += words[-1] in names and all(word in fits for word in words[:-1])
    await page.click(page.control(str(count), "button"))


async def identify_shape(page: PageView) -> None:
    """Name a shape."""
    (part,) = await page.parts("#area_svg > *")
    names = {"rect": "Rectangle", "circle": "Circle", "polygon": "Triangle"}
    await page.click(names.get(part.tag) or ("Number" if part.text.isdigit() else "Letter"))


async def count_sides(page: PageView) -> None:
    """Count the sides of a drawing by the corners in its pixels."""
    sides = await page.facts("""() => {
        const {width, height, data} = document.getElementById('c').getContext('2d').getImageData(0, 0, 150, 100);
        const distances = [];
        for (let degree = 0; degree < 360; degree++) {
            const angle = degree * Math.PI / 180;
            let far = 0;
            for (let length = 10; length < 45; length += 0.25) {
                const x = Math.round(75 + length * Math.cos(angle)), y = Math.round(50 + length * Math.sin(angle));
                if (data[4 * (y * width + x) + 3] > 100) far = length;
            }
            distances.push(far);
        }
        const smooth = distances.map((_, i) => [-3, -2, -1, 0, 1, 2, 3].reduce(
            (sum, step) => sum + distances[(i + step + 360) % 360], 0) / 7);
        let best = 3, most = -1;
        for (const count of [3, 4, 5, 6, 7]) {
            let cos = 0, sin = 0;
            smooth.forEach((value, degree) => {
                cos += value * Math.cos(count * degree * Math.PI / 180);
                sin += value * Math.sin(count * degree * Math.PI / 180);
            });
            if (Math.hypot(cos, sin) > most) { most = Math.hypot(cos, sin); best = count; }
        }
        return best;
    }""")
    await page.click(page.control(str(sides), "button"))


async def widget(page: PageView) -> None:
    """Click on a kind of control."""
    (kind,) = page.words(_QUOTED)
    if kind in {"radio", "checkbox", "button"}:
        await page.click(page.of_kind(kind)[0])
        return
    parts = await page.parts("#area input[data-type=text], #area textarea")
    fields = page.of_kind("textbox")
    tag = "TEXTAREA" if kind == "textarea" else "INPUT"
    await page.click(next(field for field, part in zip(fields, parts, strict=True) if part.tag == tag))


async def copy_paste(page: PageView) -> None:
    """Copy a text from one field to another."""
    areas = await page.facts("() => [...document.querySelectorAll('#area textarea')].map(area => area.value)")
    parts = await page.parts("#area textarea, #area input")
    match = re.search(r"the (\dst|\dnd|\drd) text area", page.query)
    index = _ORDINALS[match[1]] if match else 0
    fields = page.of_kind("textbox")
    tags = [part.tag for part in parts]
    area = fields[[i for i, tag in enumerate(tags) if tag == "TEXTAREA"][index]]
    answer = fields[tags.index("INPUT")]
    text = str(area.detail.get("value", ""))
    if text != areas[index]:  # the snapshot has no blanks at the end of a text: the keyboard copies them
        await page.do(
            ("press", {"keys": "ctrl+a", "control_id": area.id}),
            ("press", {"keys": "ctrl+c", "control_id": area.id}),
            ("press", {"keys": "ctrl+v", "control_id": answer.id}),
        )
        await page.click("Submit")
        return
    await page.do(("fill", {"control_id": answer.id, "text": text}))
    await page.click("Submit")


async def enter_quoted(page: PageView) -> None:
    """Enter the quoted text."""
    (text,) = page.words(_QUOTED)
    if "upper case" in page.query:
        text = text.upper()
    elif "lower case" in page.query:
        text = text.lower()
    await page.fill(text)


async def enter_password(page: PageView) -> None:
    """Enter a password twice."""
    (text,) = page.words(_QUOTED)
    await page.fill(text, text)


async def login(page: PageView) -> None:
    """Enter a name and a password."""
    user, password = re.findall(_QUOTED, page.query)
    button = page.of_kind("button")[-1].name
    for index, text in enumerate((user, password)):
        field = page.of_kind("textbox")[index]
        if "Cancel" not in [control.name for control in page.controls]:
            await page.click(field)
        if "Cancel" in [control.name for control in page.controls]:
            await page.click("Cancel")
        await page.do(("fill", {"control_id": page.of_kind("textbox")[index].id, "text": text}))
    await page.click(button)


async def enter_date(page: PageView) -> None:
    """Enter a date into a field of the browser."""
    month, day, year = page.words(r"(\d\d)/(\d\d)/(\d{4})")
    await page.fill(f"{year}-{month}-{day}")


async def enter_time(page: PageView) -> None:
    """Enter a time into a field of the browser."""
    (text,) = page.words(r"Enter (.*) as the time")
    await page.fill(datetime.strptime(" ".join(text.split()), "%I:%M %p").strftime("%H:%M"))  # noqa: DTZ007 - no zone


async def choose_date(page: PageView) -> None:
    """Choose a date in a calendar."""
    month, day, year = map(int, page.words(r"(\d\d)/(\d\d)/(\d{4})"))
    await page.click(page.of_kind("textbox")[0])
    await pick_date(page, month, day, year)
    await page.click("Submit")


async def pick_date(page: PageView, month: int, day: int, year: int) -> None:
    """Go to a month of the open calendar, and choose a day."""
    for _ in range(_MOST_CLICKS):
        match = re.search(r"([A-Z][a-z]+) (\d{4})\b", page.observation.text)
        if match is None:
            await page.do(("wait_for", {"text": str(year)}))
            continue
        shown = datetime.strptime(f"{match[1]} {match[2]}", "%B %Y")  # noqa: DTZ007 - no zone
        months = 12 * (year - shown.year) + month - shown.month
        if months == 0:
            await page.click(page.control(str(day), "link"))
            return
        await page.click("Prev" if months < 0 else "Next")
    msg = "the month was not found"
    raise UnsolvedError(msg)


async def book_flight(page: PageView) -> None:
    """Book the cheapest or shortest flight."""
    which, origin, goal, month, day, year = page.words(
        r"Book the (\w+) one-way flight from: (.*) to: (.*) on (\d\d)/(\d\d)/(\d{4})"
    )
    for index, place in enumerate((origin, goal)):
        field = page.of_kind("textbox")[index]
        await page.do(("type", {"control_id": field.id, "text": place}))
        await page.do(("wait_for", {"text": "result"}))
        items = page.of_kind("listitem", "clickable")
        fitting = [item for item in items if item.name.startswith(f"{place} (") or f"({place})" in item.name]
        await page.click(fitting[0])
    await page.click(page.of_kind("textbox")[2])
    await pick_date(page, int(month), int(day), int(year))
    await page.click(page.control("Search", "button"))
    buttons = [button for button in page.of_kind("button") if "Book flight" in button.name]
    prices = [int(button.name.partition("$")[2]) for button in buttons]
    durations = [60 * int(h) + int(m) for h, m in re.findall(r"(\d+)h (\d+)m", page.observation.text)]
    values = prices if which == "cheapest" else durations
    await page.click(buttons[values.index(min(values))])


async def find_word(page: PageView) -> None:
    """Enter a word of a text."""
    (number,) = page.words(r"Find the (\d+)\w\w word")
    text = await page.facts("() => document.querySelector('#area p').innerText")
    word = re.sub(r"[^a-zA-Z]", "", text.split()[int(number) - 1])
    await page.fill(word)


async def last_word(page: PageView) -> None:
    """Enter the last word of a field."""
    field, answer = page.of_kind("textbox")
    word = str(field.detail["value"]).split()[-1].rstrip(".")
    await page.do(("fill", {"control_id": answer.id, "text": word}))
    await page.click("Submit")


async def focus_text(page: PageView) -> None:
    """Focus a field."""
    match = re.search(r"(1st|2nd|3rd)", page.query)
    await page.click(page.of_kind("textbox")[_ORDINALS[match[1]] if match else 0])


async def find_greatest(page: PageView) -> None:
    """Turn cards, and choose the one with the greatest number."""
    cards = [control for control in page.of_kind("clickable") if control.name.isdigit()]
    await page.click(max(cards, key=lambda card: int(card.name)))
    await page.click("Submit")


async def form_with_radio(page: PageView) -> None:
    """Choose a radio button, and fill a field."""
    number, text, place = page.words(r'the (\w+) radio button and enter the number "(-?\d+)" into the (\w+) textbox')
    await page.do(
        ("check", {"control_id": page.of_kind("radio")[_ORDINALS[number]].id}),
        ("fill", {"control_id": page.of_kind("textbox")[_ORDINALS[place]].id, "text": text}),
    )
    await page.click("Submit")


async def form_with_list(page: PageView) -> None:
    """Choose an option of a list that the page draws itself."""
    option, button = page.words(r'Choose (.*) from the dropdown, then click the button labeled "(\w+)"')
    await page.click(page.of_kind("clickable")[0])
    items = [control for control in page.controls if control.name == option and control.kind != "option"]
    await page.click(items[0])
    await page.click(button)


async def form_with_slider(page: PageView) -> None:
    """Move a slider with the keyboard, and check a box."""
    number, place = page.words(r"Select (-?\d+) with the slider, click the (\w+) checkbox")
    await page.do(("press", {"keys": "Tab"}))
    await move_slider(page, int(number), "#val")
    await page.do(("check", {"control_id": page.of_kind("checkbox")[_ORDINALS[place]].id}))
    await page.click("Submit")


async def move_slider(page: PageView, number: int, shown: str) -> None:
    """Move the focused slider to a number."""
    current = int(await page.facts("shown => document.querySelector(shown).textContent", shown))
    if current != number:
        keys = "ArrowRight" if number > current else "ArrowLeft"
        for _ in range(abs(number - current)):
            await page.do(("press", {"keys": keys}))


async def slider(page: PageView) -> None:
    """Move a slider with the keyboard."""
    (number,) = page.words(r"Select (-?\d+) with the slider")
    await page.do(("press", {"keys": "Tab"}))
    await move_slider(page, int(number), "#val")
    await page.click("Submit")


async def sliders(page: PageView) -> None:
    """Move three sliders with the keyboard."""
    numbers = page.words(r"\[(\d+),(\d+),(\d+)\]")
    for index, number in enumerate(numbers):
        await page.do(("press", {"keys": "Tab"}))
        await move_slider(page, int(number), f"#val-{index + 1}")
    await page.click("Submit")


async def spinner(page: PageView) -> None:
    """Press the arrows of a number's field."""
    (number,) = map(int, page.words(r"Select (-?\d+) with the spinner"))
    up, down = page.of_kind("button")[:2]
    for _ in range(abs(number)):
        await page.click(up if number > 0 else down)
    await page.click("Submit")


async def generate_number(page: PageView) -> None:
    """Generate numbers until one fits."""
    match = re.search(r"(less|greater) than (\d+)", page.query)
    for _ in range(_MOST_CLICKS):
        await page.click("Generate")
        number = int(await page.facts("() => document.querySelector('#display-number').textContent"))
        if match:
            fits = number < int(match[2]) if match[1] == "less" else number > int(match[2])
        else:
            fits = number % 2 == (" odd " in page.query)
        if fits:
            await page.click("Submit")
            return


async def guess_number(page: PageView) -> None:
    """Guess a number by halving."""
    low, high = 0, 9
    while low <= high:
        guess = (low + high) // 2
        await page.fill(str(guess))
        if f"lower than {guess}" in page.observation.text:
            high = guess - 1
        elif f"higher than {guess}" in page.observation.text:
            low = guess + 1
        else:
            return


async def film(page: PageView) -> None:
    """Fill a form whose fields are in any order."""
    await page.fill(*await film_texts(page))


async def tree(page: PageView) -> None:
    """Find a file in a tree."""
    (name,) = page.words(_QUOTED)
    for _ in range(_MOST_CLICKS):
        items = page.of_kind("listitem", "clickable")
        exact = [control for control in items if control.name == name]
        if exact:
            await page.click(exact[-1])
            return
        opened = await page.facts("""() => [...document.querySelectorAll('#tree li.expandable')].filter(
            item => item.offsetParent).map(item => item.querySelector('span').textContent)""")
        folder = next((control for control in items if control.name in opened), None)
        if folder is None:
            break
        await page.click(folder)
    msg = f"no file {name!r}"
    raise UnsolvedError(msg)


async def number_of_boxes(page: PageView) -> None:
    """Draw a digit with boxes."""
    (number,) = page.words(_QUOTED)
    pattern = await page.facts("number => PATTERNS[number].flat()", int(number))
    boxes = page.of_kind("checkbox")
    await page.do(
        *(("check", {"control_id": box.id}) for box, checked in zip(boxes, pattern, strict=True) if checked)
    )  # fmt: skip
    await page.click("Submit")


async def odd_or_even(page: PageView) -> None:
    """Mark numbers as odd or even."""
    numbers = await page.facts("() => [...document.querySelectorAll('.display-number')].map(part => +part.textContent)")
    buttons = page.of_kind("button")
    await page.click(*(buttons[2 * index + (number % 2 == 0)] for index, number in enumerate(numbers)))
    await page.click("Submit")


async def table_value(page: PageView) -> None:
    """Enter a value of a table."""
    (label,) = page.words(r"Enter the value of (.*) into")
    await extract(page)
    rows = dict(page.request.memory[-1].results[-1].value["rows"])
    await page.fill(rows[label])


async def table_values(page: PageView) -> None:
    """Enter two values of a table."""
    await extract(page)
    rows = dict(page.request.memory[-1].results[-1].value["rows"])
    labels = await page.facts("() => ['ll1', 'll2'].map(id => document.getElementById(id).innerText)")
    await page.fill(*(rows[label.rstrip(":")] for label in labels))


async def extract(page: PageView) -> None:
    """Extract the table."""
    await page.do(("extract_table", {"control_id": page.of_kind("table")[0].id}))


async def scroll_text(page: PageView) -> None:
    """Scroll a field to its end or its beginning."""
    field = page.of_kind("textbox")[0]
    direction = "down" if "bottom" in page.query else "up"
    await page.do(("scroll", {"control_id": field.id, "direction": direction, "times": 20}))
    await page.click("Submit")


async def search_engine(page: PageView) -> None:
    """Search, page to a result, and click on it."""
    text, number = page.words(r'enter "([^"]*)" and press "Search", then find and click the (\d+)\w\w search result')
    await page.fill(text, submit="Search")
    index = int(number) - 1
    if index >= 3:
        await page.click(page.control(str(index // 3 + 1), "link"))
    links = [link for link in page.of_kind("link") if link.name not in {"<", ">", "1", "2", "3"}]
    await page.click(links[index % 3])


async def algebra(page: PageView) -> None:
    """Solve an equation."""
    text = await page.facts("() => document.querySelector('#math-problem').textContent")
    left, sign, right, answer = [*re.findall(r"x|[-+]|\d+", text)[:3], text.partition("= ")[2]]
    if left == "x":
        value = int(answer) - int(right) if sign == "+" else int(answer) + int(right)
    else:
        value = int(answer) - int(left) if sign == "+" else int(left) - int(answer)
    await page.fill(str(value))


async def arithmetic(page: PageView) -> None:
    """Solve a sum."""
    left, sign, right = re.search(r"(\d+) ([-+x]) (\d+) =", page.observation.text).groups()  # type: ignore[union-attr]
    values = {"+": int(left) + int(right), "-": int(left) - int(right), "x": int(left) * int(right)}
    await page.fill(str(values[sign]))


async def stock_market(page: PageView) -> None:
    """Buy when the price is low."""
    (limit,) = page.words(r"less than \$(\d+\.\d+)")
    await page.facts(
        """limit => new Promise(done => { const begin = Date.now(), timer = setInterval(() => {
        const price = +document.querySelector('#stock-price').textContent.slice(1);
        const margin = Date.now() - begin < 5000 ? 3 : 0;
        if (price && price < limit - margin) { clearInterval(timer); done() } }, 20) })""",
        float(limit),
    )  # the price changes ten times a second, and a click takes a while
    await page.click("Buy")


async def simon_says(page: PageView) -> None:
    """Push buttons in the order in which they were lit."""
    order = await page.facts("""() => new Promise(done => {
        const order = [];
        let last = Date.now();
        const timer = setInterval(() => {
            const lit = document.querySelector('#area button.push');
            if (lit && !lit.seen) { order.push(+lit.dataset.button); last = Date.now(); }
            document.querySelectorAll('#area button').forEach(button => button.seen = button === lit);
            if (order.length && Date.now() - last > 1500) { clearInterval(timer); done(order) }
        }, 20);
    })""")
    buttons = page.of_kind("button")
    await page.click(*(buttons[number - 1] for number in order))


async def terminal(page: PageView) -> None:
    """Delete a file in a terminal that the page draws."""
    await page.do(("type", {"control_id": page.of_kind("textbox")[0].id, "text": "ls"}), ("press", {"keys": "Enter"}))
    match = re.search(r"extension \.(\S+)$", page.query)
    lines = page.observation.text.splitlines()
    files = lines[next(index for index, line in enumerate(lines) if "user$ ls" in line) + 1].split()
    wanted = [name for name in files if (name.endswith(f".{match[1]}") if match else "." not in name)]
    field = page.of_kind("textbox")[0]
    await page.do(("type", {"control_id": field.id, "text": f"rm {wanted[0]}"}), ("press", {"keys": "Enter"}))


async def captcha(page: PageView) -> None:
    """Type slanted letters."""
    await page.fill("".join(await page.facts("() => document.querySelector('#captcha').textContent")))


async def autocomplete(page: PageView) -> None:
    """Choose a suggestion of a field."""
    start = page.words(r'starts with "([^"]*)"')[0]
    match = re.search(r'ends with "([^"]*)"', page.query)
    await page.do(("type", {"control_id": page.of_kind("textbox", "combobox")[0].id, "text": start}))
    await page.facts("() => new Promise(done => setTimeout(done, 600))")
    names = await page.facts(
        "() => [...document.querySelectorAll('.ui-autocomplete .ui-menu-item')].map(item => item.textContent)"
    )
    name = next(name for name in names if name.startswith(start) and (not match or name.endswith(match[1])))
    await page.do(("wait_for", {"text": name}))
    await page.click(next(control for control in page.controls if control.name == name))
    await page.click("Submit")


async def colour(page: PageView) -> None:
    """Enter a colour into its field."""
    value = await page.facts("""() => {
        const box = document.querySelector('#query .cc');
        if (!box) return ui_utils.colorNameToHex(core.getUtterance().split(' ')[1]).slice(1);
        return getComputedStyle(box).backgroundColor.match(/\\d+/g).slice(0, 3)
            .map(part => (+part).toString(16).padStart(2, '0')).join('');
    }""")
    field = page.of_kind("textbox")[0]
    await page.do(("fill", {"control_id": field.id, "text": value}), ("press", {"keys": "Escape"}))
    await page.click("Submit")


async def visual_addition(page: PageView) -> None:
    """Count blocks."""
    await page.fill(str(len(await page.parts("#math-problem .addition-block"))))


SOLVERS: dict[str, Solver] = {
    "book-flight": book_flight,
    "book-flight-nodelay": book_flight,
    "buy-ticket": buy_ticket,
    **dict.fromkeys(("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay"), choose_date),
    "choose-list": list_options,
    "click-button": quoted_button,
    "click-button-sequence": button_sequence,
    "click-checkboxes": checkboxes,
    "click-checkboxes-large": checkboxes,
    "click-checkboxes-soft": similar_words,
    "click-checkboxes-transfer": checkboxes,
    "click-collapsible": collapsible,
    "click-collapsible-nodelay": collapsible,
    "click-dialog": dialog,
    "click-dialog-2": dialog,
    "click-menu": menu,
    "click-menu-2": menu_with_icons,
    "click-option": radio,
    "click-scroll-list": list_options,
    "click-shape": shape,
    "click-tab": tabs,
    "click-test": only_button,
    "click-test-2": button_one,
    "click-test-transfer": button_one,
    "click-widget": widget,
    "copy-paste": copy_paste,
    "copy-paste-2": copy_paste,
    "count-shape": count_shapes,
    "count-sides": count_sides,
    "enter-date": enter_date,
    "enter-password": enter_password,
    "enter-text": enter_quoted,
    "enter-text-2": enter_quoted,
    "enter-text-dynamic": enter_quoted,
    "enter-time": enter_time,
    "find-greatest": find_greatest,
    "find-word": find_word,
    "focus-text": focus_text,
    "focus-text-2": focus_text,
    "form-sequence": form_with_slider,
    "form-sequence-2": form_with_radio,
    "form-sequence-3": form_with_list,
    "generate-number": generate_number,
    "guess-number": guess_number,
    "identify-shape": identify_shape,
    "login-user": login,
    "login-user-popup": login,
    "multi-orderings": film,
    "navigate-tree": tree,
    "number-checkboxes": number_of_boxes,
    "odd-or-even": odd_or_even,
    "read-table": table_value,
    "read-table-2": table_values,
    "scroll-text": last_word,
    "scroll-text-2": scroll_text,
    "search-engine": search_engine,
    "simon-says": simon_says,
    "simple-algebra": algebra,
    "simple-arithmetic": arithmetic,
    "stock-market": stock_market,
    "terminal": terminal,
    "text-transform": captcha,
    "unicode-test": quoted_button,
    "use-autocomplete": autocomplete,
    "use-autocomplete-nodelay": autocomplete,
    "use-colorwheel": colour,
    "use-colorwheel-2": colour,
    "use-slider": slider,
    "use-slider-2": sliders,
    "use-spinner": spinner,
    "visual-addition": visual_addition,
}
