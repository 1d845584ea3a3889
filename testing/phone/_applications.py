"""The phone's applications: each shows a screen, and reacts to touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.testing.phone._screen import BAR, KEYBOARD, ROW, View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.testing.phone._phone import Phone


@dataclass
class Field:
    """A text field of an application: it keeps its text, and where the cursor is."""

    id: str
    hint: str
    text: str = ""
    password: bool = False
    lines: int = 1


@dataclass
class Contact:
    """One entry of the contacts."""

    first: str
    last: str = ""
    phone: str = ""
    email: str = ""

    @property
    def name(self) -> str:
        """The whole name."""
        return f"{self.first} {self.last}".strip()


@dataclass
class Note:
    """One note."""

    text: str = ""


class Page:
    """A screen that is being made: views stand below each other, and the list in it scrolls.

    Args:
        phone: The phone.
        title: What its bar says.
    """

    def __init__(self, phone: Phone, title: str) -> None:
        self.phone = phone
        self.views = [View("TextView", (0, 0, phone.width, BAR), title, id="title")]
        self._y = BAR
        self._bottom = phone.height - (KEYBOARD if phone.field else 0)

    def bar(self, text: str, id_: str, tap: Callable[[], None]) -> None:
        """Add a button to the bar."""
        right, width = self.phone.width - 20, max(260, 27 * len(text) + 60)
        self.views.append(View("ImageButton", (right - width, 30, right, BAR - 20), id=id_, description=text, tap=tap))

    def button(self, text: str, id_: str, tap: Callable[[], None], *, enabled: bool = True) -> None:
        """Add a button."""
        self.views.append(View("Button", self._next(ROW), text, id_, tap=tap, enabled=enabled))

    def drop_down(self, name: str, id_: str, value: str, tap: Callable[[], None]) -> None:
        """Add something that opens a list to choose from."""
        self.views.append(View("Spinner", self._next(ROW), value, id_, description=name, tap=tap))

    def text(self, text: str, id_: str = "") -> None:
        """Add a text."""
        self.views.append(View("TextView", self._next(ROW), text, id_))

    def field(self, given: Field) -> None:
        """Add a text field."""
        view = View("EditText", self._next(ROW * given.lines), given.text, given.id, hint=given.hint)
        view.password, view.focused = given.password, self.phone.field is given
        view.tap = lambda: self.phone.focus(given)
        self.views.append(view)

    def check(self, kind: str, text: str, id_: str, tap: Callable[[], None], *, checked: bool) -> None:
        """Add a check box, a switch or a radio button."""
        self.views.append(View(kind, self._next(ROW), text, id_, tap=tap, checked=checked))

    def rows(self, id_: str, entries: Sequence[tuple[str, Callable[[], None], Callable[[], None] | None]]) -> None:
        """Add a list of entries, each with what a touch and a long touch do; it scrolls if it is long."""
        top, fits = self._y, max(1, (self._bottom - self._y) // ROW)
        app = self.phone.app
        app.scrolled = max(0, min(app.scrolled, len(entries) - fits))
        inside = []
        for text, tap, hold in entries[app.scrolled : app.scrolled + fits]:
            box = self._next(ROW)
            label = View("TextView", (box[0], box[1], box[2], box[3] - 20), text)
            inside.append(View("LinearLayout", box, tap=tap, hold=hold, inside=[label]))
        box = (0, top, self.phone.width, self._bottom)
        self.views.append(View("RecyclerView", box, id=id_, scrolls=len(entries) > fits, inside=inside))

    def dialog(self, text: str, answers: list[tuple[str, str, Callable[[], None]]]) -> list[View]:
        """Give a dialog in place of the page: nothing else reacts."""
        top = self.phone.height // 2 - 300
        box = (80, top, self.phone.width - 80, top + 240 + ROW * len(answers))
        views = [View("TextView", (box[0], top + 20, box[2], top + 220), text, id="message")]
        for place, (label, id_, tap) in enumerate(answers):
            at = top + 220 + place * ROW
            views.append(View("Button", (box[0] + 40, at, box[2] - 40, at + ROW), label, id_, tap=tap))
        return [View("FrameLayout", box, id="dialog", inside=views)]

    def _next(self, height: int) -> tuple[int, int, int, int]:
        top, self._y = self._y, self._y + height
        return (0, top, self.phone.width, top + height)


class Application:
    """What all applications have.

    Args:
        phone: The phone.
    """

    package = ""
    activity = ".MainActivity"
    label = ""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.scrolled = 0
        """The first entry of its list that is shown."""
        self.page = "list"

    def views(self) -> list[View]:
        """Make its screen."""
        raise NotImplementedError

    def back(self) -> bool:
        """Go to where one came from; False if that is another application."""
        was, self.page = self.page, "list"
        return was != "list"

    def to(self, page: str) -> None:
        """Show another page."""
        self.page, self.scrolled = page, 0
        self.phone.focus(None)

    def open(self, url: str) -> None:
        """Show an address."""


class Home(Application):
    """The applications, as icons."""

    package, activity, label = "com.android.launcher3", ".uioverrides.QuickstepLauncher", "Home"

    def views(self) -> list[View]:
        step = self.phone.width // 3
        found = [View("TextView", (0, 0, self.phone.width, BAR), "Sunday, 1 March")]
        for place, app in enumerate(each for each in self.phone.apps.values() if each is not self):
            left, top = place % 3 * step, 300 + place // 3 * 400
            tap = lambda app=app: self.phone.start(app.package)  # noqa: E731 - a callback
            found.append(View("Button", (left + 40, top, left + step - 40, top + 260), app.label, tap=tap))
        return found


class Contacts(Application):
    """People, with a form for new ones."""

    package, activity, label = "com.android.contacts", ".activities.PeopleActivity", "Contacts"

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.people = [Contact("Grace", "Hopper", "555-0100"), Contact("Alan", "Turing", "555-0101")]
        self.shown: Contact | None = None
        self._fields: list[Field] = []
        self.to_new()
        self.page = "list"

    def to_new(self) -> None:
        """Show the form for a new entry."""
        self._fields = [
            Field("first_name", "First name"),
            Field("last_name", "Last name"),
            Field("phone", "Phone"),
            Field("email", "Email"),
        ]
        self.to("form")

    def views(self) -> list[View]:
        if self.phone.asks_permission:
            return self._permission()
        if self.page == "form":
            page = Page(self.phone, "Create contact")
            page.bar("Save", "save", self._save)
            for each in self._fields:
                page.field(each)
        elif self.shown is not None and self.page == "delete":
            page = Page(self.phone, self.shown.name)
            answers = [("Delete", "delete_confirm", self._delete), ("Cancel", "cancel", lambda: self.to("person"))]
            return page.dialog(f"Delete {self.shown.name}?", answers)
        elif self.shown is not None and self.page == "person":
            page, person = Page(self.phone, self.shown.name), self.shown
            page.text(person.phone, "phone")
            page.text(person.email, "email")
            page.button("Call", "call", lambda: self.phone.done.append(("call", person.phone)))
            page.button("Message", "message", lambda: self.phone.done.append(("message", person.phone)))
            page.button("Delete", "delete", lambda: self.to("delete"))
        else:
            page = Page(self.phone, "Contacts")
            page.bar("Create contact", "add", self.to_new)
            page.rows(
                "list",
                [(each.name, self._opener(each, "person"), self._opener(each, "delete")) for each in self._sorted()],
            )
        return page.views

    def _sorted(self) -> list[Contact]:
        return sorted(self.people, key=lambda each: each.name.casefold())

    def _opener(self, person: Contact, page: str) -> Callable[[], None]:
        def tap() -> None:
            self.shown = person
            self.to(page)

        return tap

    def _save(self) -> None:
        self.people.append(Contact(*(each.text for each in self._fields)))
        self.shown = self.people[-1]
        self.to("person")

    def _delete(self) -> None:
        if self.shown is not None:
            self.people.remove(self.shown)
        self.shown = None
        self.to("list")

    def _permission(self) -> list[View]:
        def answer(*, allowed: bool) -> Callable[[], None]:
            def tap() -> None:
                self.phone.asks_permission = False
                self.phone.done.append(("permission", str(allowed)))
                if not allowed:
                    self.phone.start(Home.package)

            return tap

        answers = [
            ("Allow", "permission_allow_button", answer(allowed=True)),
            ("Don’t allow", "permission_deny_button", answer(allowed=False)),  # noqa: RUF001 - as Android writes it
        ]
        return Page(self.phone, "").dialog("Allow Contacts to access your contacts?", answers)


class Notes(Application):
    """Texts of several lines."""

    package, label = "org.callboard.notes", "Notes"

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.notes = [Note("Shopping\nmilk, bread")]
        self._field = Field("note", "Note", lines=5)
        self._open: Note | None = None

    def views(self) -> list[View]:
        if self.page == "list":
            page = Page(self.phone, "Notes")
            page.bar("New note", "new", lambda: self._edit(None))
            entries = [(each.text.partition("\n")[0] or "(empty)", self._opener(each), None) for each in self.notes]
            page.rows("notes", entries)
            return page.views
        page = Page(self.phone, "Note")
        page.bar("Done", "done", self._done)
        page.field(self._field)
        return page.views

    def _opener(self, note: Note) -> Callable[[], None]:
        return lambda: self._edit(note)

    def _edit(self, note: Note | None) -> None:
        self._open, self._field.text = note, note.text if note else ""
        self.to("note")

    def _done(self) -> None:
        if self._open is None:
            self._open = Note()
            self.notes.append(self._open)
        self._open.text = self._field.text
        self.to("list")


class Settings(Application):
    """Switches."""

    package, label = "com.android.settings", "Settings"
    NAMES = ("Wi-Fi", "Bluetooth", "Aeroplane mode", "Dark theme", "Location", "Auto-rotate")

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.on = dict.fromkeys(self.NAMES, False) | {"Wi-Fi": True}

    def views(self) -> list[View]:
        page = Page(self.phone, "Settings")
        if self.page == "about":
            page.text("Android 16")
            page.text(self.phone.model, "model")
            return page.views
        for name, on in self.on.items():
            page.check("Switch", name, name.lower().replace("-", "").replace(" ", "_"), self._turner(name), checked=on)
        page.rows("list", [("About phone", lambda: self.to("about"), None)])
        return page.views

    def _turner(self, name: str) -> Callable[[], None]:
        return lambda: self.on.update({name: not self.on[name]})


class Form(Application):
    """One of each kind of control."""

    package, label = "org.callboard.form", "Form"
    COLOURS = ("red", "green", "blue")

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.name = Field("name", "Name (required)")
        self.password = Field("password", "Password", password=True)
        self.news, self.size, self.colour, self.error = False, "small", "red", ""
        self.sent: list[dict[str, object]] = []

    def views(self) -> list[View]:
        page = Page(self.phone, "Form")
        if self.page == "colours":
            page.rows("colours", [(each, self._chooser(each), None) for each in self.COLOURS])
            return page.views
        page.field(self.name)
        page.field(self.password)
        page.check("CheckBox", "Newsletter", "newsletter", self._toggle, checked=self.news)
        for size in ("small", "large"):
            page.check("RadioButton", size, f"size_{size}", self._sizer(size), checked=self.size == size)
        page.drop_down("Colour", "colour", self.colour, lambda: self.to("colours"))
        page.button("Submit", "submit", self._submit)
        page.text(self.error, "error")
        return page.views

    def _toggle(self) -> None:
        self.news = not self.news

    def _sizer(self, size: str) -> Callable[[], None]:
        return lambda: setattr(self, "size", size)

    def _chooser(self, colour: str) -> Callable[[], None]:
        def tap() -> None:
            self.colour = colour
            self.to("list")

        return tap

    def _submit(self) -> None:
        self.error = "" if self.name.text else "Enter a name"
        if not self.error:
            given = {"name": self.name.text, "password": self.password.text, "news": self.news}
            self.sent.append({**given, "size": self.size, "colour": self.colour})


class Browser(Application):
    """Shows the address that it was opened with."""

    package, label = "org.callboard.browser", "Browser"

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.url = "about:blank"

    def open(self, url: str) -> None:
        self.url = url

    def views(self) -> list[View]:
        page = Page(self.phone, "Browser")
        page.text(self.url, "url")
        return page.views


class Dialler(Application):
    """Calls numbers."""

    package, label = "com.android.dialer", "Phone"

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.number = Field("digits", "Number")

    def open(self, url: str) -> None:
        self.number.text = url.partition(":")[2]

    def views(self) -> list[View]:
        page = Page(self.phone, "Phone")
        page.field(self.number)
        page.button("Call", "dial", lambda: self.phone.done.append(("call", self.number.text)))
        return page.views


ALL = (Home, Contacts, Notes, Settings, Form, Browser, Dialler)
